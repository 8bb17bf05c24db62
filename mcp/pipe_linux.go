package mcp

import "golang.org/x/sys/unix"

// pipeHasData reports whether a pipe contains unread data (pending), if that can be determined (known).
func pipeHasData(fd uintptr) (pending, known bool) {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	return n > 0, err == nil
}
