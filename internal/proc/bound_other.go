//go:build !linux && !darwin

package proc

import "github.com/seed-dec29ce4/eca/internal/sandbox"

// unbound says why children cannot be bound.
func unbound(bool) string { return sandbox.Probe().Without }

// wrap is not called: nothing is bound here.
func (*Spec) wrap() {}
