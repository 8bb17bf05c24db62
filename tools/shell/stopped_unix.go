//go:build unix

package shell

import "golang.org/x/sys/unix"

// nonBlocking prevents that opening a pipe waits for its other end.
const nonBlocking = unix.O_NONBLOCK

// writableDir reports whether files can be made in a directory.
func writableDir(path string) bool { return unix.Access(path, unix.W_OK) == nil }
