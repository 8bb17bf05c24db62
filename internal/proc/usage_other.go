//go:build !linux

package proc

// Memory returns the resident memory of the processes of a group. On this system, ok is always false.
func Memory(int) (size int64, ok bool) { return 0, false }
