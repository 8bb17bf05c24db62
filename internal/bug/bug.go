// Package bug reports broken invariants: things that cannot happen unless eca
// itself is wrong. In production a report is one log line with a stack and the
// program goes on; under `go test` it panics, so that no broken invariant passes
// a test run unseen.
//
// It is not for bad input: that is an error with a message for the user.
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
