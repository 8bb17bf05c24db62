// Package bug reports broken invariants: states that are impossible unless eca itself has a bug. In
// production a report is one log line with a stack, and the program continues; under `go test` it
// panics, so that no test passes with a broken invariant.
//
// It is not for bad input, which requires an error with a message for the user.
package bug

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"testing"
)

// Reportf reports a broken invariant.
func Reportf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if testing.Testing() {
		panic("bug: " + msg)
	}
	slog.Error("bug in eca, please report it", "what", msg, "stack", string(debug.Stack()))
}
