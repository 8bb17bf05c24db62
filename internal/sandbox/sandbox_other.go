//go:build !linux && !darwin

package sandbox

import "runtime"

// Probe reports that no bounds can be enforced on this system.
func Probe() Support { return Support{Without: "eca knows no sandbox on " + runtime.GOOS} }

// Gaps returns nothing: Probe already reports that there is no sandbox.
func Gaps() []string { return nil }
