package mcp

import "golang.org/x/sys/unix"

// pipeHolds says whether there is something in a pipe that its reader has not taken.
func pipeHolds(fd uintptr) (left, known bool) {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	return n > 0, err == nil
}
