package mcp

import "golang.org/x/sys/unix"

// pipeHolds reports whether a pipe contains data that its reader has not read.
func pipeHolds(fd uintptr) (left, known bool) {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	return n > 0, err == nil
}
