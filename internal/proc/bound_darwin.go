package proc

import (
	"os/exec"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// unbound returns why children cannot be bounded; empty if they can.
func unbound(bool) string { return sandbox.Probe().Without }

// wrap makes the system's sandbox-exec bound the child.
func (s *Spec) wrap() {
	path := s.Path
	if full, err := exec.LookPath(path); err == nil {
		path = full
	}
	s.Path, s.Args = sandbox.Wrap(s.Sandbox, path, s.Args)
}
