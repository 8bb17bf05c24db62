//go:build !linux

package proc

import (
	"errors"
	"runtime"
)

// MemoryLimit returns an error: there is no memory limit on this system.
func (*Pool) MemoryLimit() (int64, error) {
	return 0, errors.New("eca knows no limits on memory on " + runtime.GOOS)
}
