//go:build !linux

package proc

import (
	"runtime"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Isolation says which namespaces children of the pool can have here: none.
func (*Pool) Isolation() sandbox.Isolation {
	return sandbox.Isolation{Without: "eca knows no namespaces on " + runtime.GOOS}
}
