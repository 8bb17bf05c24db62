package proc

import (
	"os/exec"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// whyUnbounded returns why children cannot be bounded, or "" if they can be.
func whyUnbounded(bool) string { return sandbox.Probe().Without }

// wrap replaces the command with one that runs it in sandbox-exec.
func (s *Spec) wrap() {
	path := s.Path
	if full, err := exec.LookPath(path); err == nil {
		path = full
	}
	s.Path, s.Args = sandbox.Wrap(s.Sandbox, path, s.Args)
}
