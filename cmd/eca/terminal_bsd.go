//go:build unix && !linux

package main

import "golang.org/x/sys/unix"

// discardInput drops what was typed on a terminal and not read.
func discardInput(fd uintptr) error {
	const read = 1 // FREAD: what was typed, not what is to be shown
	return unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, read)
}
