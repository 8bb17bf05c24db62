//go:build !linux && !darwin

package proc

import "github.com/seed-dec29ce4/eca/internal/sandbox"

// whyUnbounded returns why children cannot be bounded.
func whyUnbounded(bool) string { return sandbox.Probe().Without }

// wrap is never called: children are not bounded on this system.
func (*Spec) wrap() {}
