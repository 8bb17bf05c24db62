package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// initialize negotiates the protocol version with the agent, and checks that the agent declares the
// capabilities that the manifest needs. After a CallError of the kind version or capability, the agent
// cannot be evaluated at all.
func (a *attempt) initialize(ctx context.Context, limit time.Duration) error {
	raw, err := a.call(ctx, limit, ecp.MethodInitialize, ecp.InitializeParams{ProtocolVersion: ecp.ProtocolVersion, Config: a.config()})
	if err != nil {
		return err
	}
	r, err := ecp.ParseInitializeResult(raw)
	if err != nil {
		return callError(kindProtocol, ecp.MethodInitialize, "%v: %s", err, clip(string(raw), maxShown))
	}
	a.out.Agent = &report.Agent{Name: r.Name, Version: r.Version, ProtocolVersion: ecp.LegacyVersion, Capabilities: r.Capabilities}
	if r.ProtocolVersion == "" {
		a.warn(fmt.Sprintf("agent %q names no protocol version and is taken for one of protocol %s, up to 0.4", clip(r.Name, maxName), ecp.LegacyVersion))
	} else if a.out.Agent.ProtocolVersion, err = negotiateVersion(r.ProtocolVersion); err != nil {
		return err
	}
	return a.checkCapabilities(r)
}

// maxName limits the names of agents in messages, in bytes.
const maxName = 80

// negotiateVersion returns the protocol version that both sides support.
func negotiateVersion(version string) (string, error) {
	parts := strings.SplitN(version, ".", 2)
	agreed, ok := ecp.Version{Major: parts[0], Minor: parts[len(parts)-1]}.Negotiate()
	if !ok {
		return version, unsupported(ecp.MethodInitialize, fmt.Sprintf("the agent speaks protocol version %s, this runtime %s", clip(version, maxName), ecp.ProtocolVersion), "")
	}
	return agreed, nil
}

// requiredCapability is a capability that a grader relies on, and a description of the grader.
type requiredCapability struct{ name, grader string }

// requiredCapabilities lists the capabilities that the graders of a manifest rely on, each once.
func requiredCapabilities(m *Manifest, o Options) (out []requiredCapability) {
	for _, sc := range m.Scenarios {
		for _, step := range sc.Steps {
			specs := step.Graders
			if !o.Reference {
				specs = slices.Concat(specs, step.Constraints.Checks)
			}
			for _, s := range specs {
				n := requiredCapability{name: capabilityFor(s), grader: s.Type}
				if s.Type == grade.TextMatch || s.Type == grade.LLMJudge {
					n.grader += " on " + s.Field
				}
				if n.name != "" && !slices.ContainsFunc(out, func(known requiredCapability) bool { return known.name == n.name }) {
					out = append(out, n)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b requiredCapability) int { return strings.Compare(a.name, b.name) })
	return out
}

// capabilityFor returns the capability of agents that a grader depends on, or "".
func capabilityFor(s grade.Spec) string {
	switch s.Type {
	case grade.ToolUsage, grade.ToolCount, grade.Trajectory:
		return ecp.CanReportTools
	case grade.TextMatch, grade.LLMJudge:
		if s.Field == grade.EvaluationContext || s.Field == grade.PrivateThought {
			return ecp.CanGiveEvidence
		}
	}
	return ""
}

// checkCapabilities checks that the agent declares the capabilities that the manifest needs. A
// capability may exist without a declaration, so a missing one is an error only if the manifest
// requires declarations.
func (a *attempt) checkCapabilities(r ecp.InitializeResult) error {
	var missing []string
	for _, n := range a.requiredCapabilities {
		if _, declared := r.Capabilities[n.name]; !declared {
			missing = append(missing, fmt.Sprintf("%s (for %s)", n.name, n.grader))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	declared := "nothing"
	if names := slices.Sorted(maps.Keys(r.Capabilities)); len(names) > 0 {
		declared = clip(strings.Join(names, ", "), maxShown)
	}
	text := fmt.Sprintf("agent %q does not declare capabilities that the manifest needs: %s; it declares %s", clip(r.Name, maxName), strings.Join(missing, ", "), declared)
	if a.requireDeclared {
		return callError(kindCapability, ecp.MethodInitialize, "%s (require_capabilities)", text)
	}
	a.warn(text)
	return nil
}
