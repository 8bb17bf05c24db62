package undo

import (
	"io/fs"
	"syscall"
)

// identity returns the inode number of a file and the time of the last change of its content or
// attributes (ctime), in nanoseconds.
func identity(info fs.FileInfo) (inode uint64, changed int64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, s.Ctimespec.Nano()
	}
	return 0, 0
}
