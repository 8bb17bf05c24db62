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
	} else if a.out.Agent.ProtocolVersion, err = agree(r.ProtocolVersion); err != nil {
		return err
	}
	return a.checkCapabilities(r)
}

// maxName limits the names of agents in messages, in bytes.
const maxName = 80

// agree returns the protocol version that both sides support.
func agree(version string) (string, error) {
	parts := strings.SplitN(version, ".", 2)
	agreed, ok := ecp.Version{Major: parts[0], Minor: parts[len(parts)-1]}.Negotiate()
	if !ok {
		return version, unsupported(ecp.MethodInitialize, fmt.Sprintf("the agent speaks protocol version %s, this runtime %s", clip(version, maxName), ecp.ProtocolVersion), "")
	}
	return agreed, nil
}

// need is a capability that a grader relies on, and a description of the grader.
type need struct{ capability, by string }

// needsOf lists the capabilities that the graders of a manifest rely on, each once.
func needsOf(m *Manifest, o Options) (out []need) {
	for _, sc := range m.Scenarios {
		for _, step := range sc.Steps {
			specs := step.Graders
			if !o.Reference {
				specs = slices.Concat(specs, step.Constraints.Checks)
			}
			for _, s := range specs {
				n := need{capability: capabilityFor(s), by: s.Type}
				if s.Type == grade.TextMatch || s.Type == grade.LLMJudge {
					n.by += " on " + s.Field
				}
				if n.capability != "" && !slices.ContainsFunc(out, func(known need) bool { return known.capability == n.capability }) {
					out = append(out, n)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b need) int { return strings.Compare(a.capability, b.capability) })
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
	for _, n := range a.needs {
		if _, declared := r.Capabilities[n.capability]; !declared {
			missing = append(missing, fmt.Sprintf("%s (for %s)", n.capability, n.by))
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
