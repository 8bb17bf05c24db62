//go:build !linux && !darwin

package sandbox

import "runtime"

// Probe says what this system can hold: nothing.
func Probe() Support { return Support{Without: "eca knows no sandbox on " + runtime.GOOS} }

// Gaps names what the bounds do not hold here; Probe says all.
func Gaps() []string { return nil }
