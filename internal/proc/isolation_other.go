//go:build !linux

package proc

import (
	"runtime"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Isolation reports that children cannot have namespaces on this system.
func (*Pool) Isolation() sandbox.Isolation {
	return sandbox.Isolation{Without: "eca knows no namespaces on " + runtime.GOOS}
}
