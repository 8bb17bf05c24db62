//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFolder opens a folder. It does not block on a pipe that has replaced the folder.
func openFolder(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

// mine reports whether a file belongs to the current user.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// fileID returns an ID that a file keeps when it is moved.
func fileID(path string) string {
	if info, err := os.Lstat(path); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return strconv.FormatUint(st.Ino, 10)
		}
	}
	return path
}
