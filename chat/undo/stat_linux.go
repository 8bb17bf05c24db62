package undo

import (
	"io/fs"
	"syscall"
)

// identity returns what tells a file from another one in its place, and from itself before
// a change: its number, and when its content or its attributes changed last.
func identity(info fs.FileInfo) (inode uint64, changed int64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, s.Ctim.Nano()
	}
	return 0, 0
}
