//go:build !linux

package proc

import (
	"errors"
	"runtime"
)

// MemoryLimit returns how much memory a bounded child may use: here, there is no limit.
func (*Pool) MemoryLimit() (int64, error) {
	return 0, errors.New("eca knows no limits on memory on " + runtime.GOOS)
}
