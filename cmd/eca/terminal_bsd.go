//go:build unix && !linux

package main

import "golang.org/x/sys/unix"

// discardInput discards input that was typed on a terminal and not read.
func discardInput(fd uintptr) error {
	const read = 1 // FREAD: the input, not the output
	return unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, read)
}
