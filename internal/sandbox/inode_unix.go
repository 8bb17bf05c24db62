//go:build linux || darwin

package sandbox

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// linkCount returns the identity of a file and the number of its hard links.
func linkCount(info fs.FileInfo) (id nodeID, links uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return nodeID{uint64(st.Dev), st.Ino}, uint64(st.Nlink) //nolint:unconvert // of another type on macOS
	}
	return nodeID{}, 1
}

// eachHardLinked calls fn for the regular files of a folder that have several hard links. It is
// faster than an Lstat of each path.
func eachHardLinked(dir string, files []string, fn func(name string, id nodeID, links uint64)) {
	if len(files) == 0 {
		return
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(at)
	for _, name := range files {
		var st unix.Stat_t
		if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Nlink > 1 && st.Mode&unix.S_IFMT == unix.S_IFREG {
			fn(name, nodeID{uint64(st.Dev), st.Ino}, uint64(st.Nlink)) //nolint:unconvert // of another type on macOS
		}
	}
}
