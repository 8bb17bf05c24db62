//go:build unix

package shell

import "golang.org/x/sys/unix"

// nonBlocking is the flag with which opening a pipe does not wait for its other end.
const nonBlocking = unix.O_NONBLOCK

// writableDir reports whether files can be created in a directory.
func writableDir(path string) bool { return unix.Access(path, unix.W_OK) == nil }
