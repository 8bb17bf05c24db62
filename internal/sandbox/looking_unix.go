//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFolder opens a folder. It does not wait for a pipe that has taken its place.
func openFolder(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

// mine says whether a file is the user's own.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// fileID tells a file from others, also after it was moved.
func fileID(path string) string {
	if info, err := os.Lstat(path); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return strconv.FormatUint(st.Ino, 10)
		}
	}
	return path
}
