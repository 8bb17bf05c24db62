package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Manifest is an evaluation: an agent, and scenarios to run it on (ECP, manifest v1).
type Manifest struct {
	Path      string // absolute
	Name      string
	Target    string // a command line, or an http(s) URL
	Scenarios []Scenario

	RequireCapabilities bool   // agents must declare the capabilities that the graders rely on
	Digest              string // of the file's bytes, sha256:HEX; empty if it was not loaded from a file
}

// Scenario is one conversation with a fresh agent.
type Scenario struct {
	Name  string
	Steps []Step
	Rows  *Rows // the dataset that provides the steps; nil if the manifest lists them
	Setup Setup
	Line  int // line of the name in the manifest
}

// Step is one message to the agent, and the expectations for its answer.
type Step struct {
	Input       string
	Constraints Constraints
	Graders     []grade.Spec
}

// Constraints are the limits of a step, and graders with options beyond manifest v1. The reference
// accepts and ignores any mapping here, so a manifest works with both runtimes.
type Constraints struct {
	TimeoutS       float64  // seconds; 0 is the run's limit for calls
	ForbiddenTools []string // must not be called
	MaxToolCalls   *int64
	MaxTokens      *int64 // as reported by the agent
	MaxCostUSD     *float64
	Checks         []grade.Spec
}

// Setup is the starting point of a scenario: constraints.scenario of its first step.
type Setup struct {
	Workspace *Fixture

	Environment *Environment // where programs run; nil is the environment of ecp itself
	Tests       string       // a folder, relative to the manifest, copied over the workspace when the agent has ended

	Config   map[string]any // for agent/initialize
	ID       string         // identifies the scenario when it is renamed; empty uses the name
	Aliases  []string       // earlier ids
	Dataset  string         // CSV or JSONL, relative to the manifest: the scenario runs once per record
	IDField  string         // column of the dataset that identifies a record; empty uses the whole record
	Repeat   int64          // 0 means the command line decides
	TimeoutS float64        // for the whole scenario; 0 is unlimited
}

// Fixture is the initial content of a workspace; each attempt works in a fresh copy.
type Fixture struct {
	Copy string // a folder, relative to the manifest; empty for an empty workspace
	Git  bool   // make the copy a git repository with everything committed
}

// Problem is a problem of a manifest and its location.
type Problem struct {
	File         string
	Line, Column int
	Key          string // scenarios.0.steps.0.input; empty for the file
	Message      string
	Warning      bool
}

// Error implements error: file:line:column: key: message.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are the errors of a manifest that cannot be used, without warnings.
type Problems []Problem

// Error implements error.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// maxManifest limits the size of a manifest, in bytes.
const maxManifest = 32 << 20

// Load reads a manifest, which may be a stream (see safeio.ReadInput), and returns its warnings. The
// error is of type Problems if the manifest is invalid.
func Load(ctx context.Context, path string) (*Manifest, []Problem, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("manifest: %w", err)
	case info.IsDir():
		return nil, nil, fmt.Errorf("manifest: %s is a folder", path)
	case info.Size() > maxManifest:
		return nil, nil, fmt.Errorf("manifest: %s is larger than %d MiB", path, maxManifest>>20)
	}
	data, err := safeio.ReadInput(ctx, abs, maxManifest)
	if err != nil {
		return nil, nil, fmt.Errorf("manifest: %w", err)
	}
	m, problems := Parse(data, path)
	m.Path, m.Digest = abs, fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	errs := slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Warning })
	warnings := slices.DeleteFunc(problems, func(p Problem) bool { return !p.Warning })
	if len(errs) == 0 {
		errs = m.readRows(filepath.Dir(abs))
		for i := range errs {
			errs[i].File = path
		}
	}
	if len(errs) > 0 {
		return nil, warnings, Problems(errs)
	}
	return m, warnings, nil
}

// Parse parses a manifest; file is its name in problems. The manifest is usable only if all problems
// are warnings.
func Parse(data []byte, file string) (*Manifest, []Problem) {
	m := &Manifest{}
	d := &decoder{}
	root, duplicates, err := parseYAML(data)
	d.problems = duplicates
	switch {
	case err != nil:
		var p *Problem
		if !errors.As(err, &p) {
			p = &Problem{Message: err.Error()}
		}
		d.problems = append(d.problems, *p)
	case root.kind == kindNull:
		d.problem(root, "", "the manifest is empty; `ecp init` writes an example")
	case root.kind != kindMap:
		d.problem(root, "", "a manifest is a mapping, not %s", root.kind)
	default:
		d.manifest(m, element{root, d, ""})
		if !slices.ContainsFunc(d.problems, func(p Problem) bool { return !p.Warning }) {
			d.warnSuspicious(m, root)
		}
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for i := range d.problems {
		d.problems[i].File = file
	}
	return m, d.problems
}

// Summary counts the scenarios, steps and graders of a manifest.
func (m *Manifest) Summary() (scenarios, steps, graders int) {
	for _, sc := range m.Scenarios {
		steps += len(sc.Steps)
		for _, st := range sc.Steps {
			graders += len(st.Graders) + len(st.Constraints.Checks)
		}
	}
	return len(m.Scenarios), steps, graders
}

// hasChecks reports whether a step has graders or limits.
func (s Step) hasChecks() bool {
	c := s.Constraints
	return len(s.Graders) > 0 || len(c.Checks) > 0 || len(c.ForbiddenTools) > 0 || c.MaxToolCalls != nil || c.MaxTokens != nil || c.MaxCostUSD != nil
}

// Checks reports whether any step of the manifest has graders or limits.
func (m *Manifest) Checks() bool {
	return slices.ContainsFunc(m.Scenarios, func(s Scenario) bool {
		return slices.ContainsFunc(s.Steps, Step.hasChecks) || s.Rows != nil && len(s.Steps) == 0 // they are not read yet
	})
}
