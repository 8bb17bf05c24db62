package mcp

import "golang.org/x/sys/unix"

// pipeHolds reports whether a pipe contains unread data (left), if that can be determined (known).
func pipeHolds(fd uintptr) (left, known bool) {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	return n > 0, err == nil
}
