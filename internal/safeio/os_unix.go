//go:build unix

package safeio

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlocking is a flag for opening files: opening a pipe returns immediately, even if no process writes
// to it.
const nonBlocking = unix.O_NONBLOCK

// duplicate duplicates the open file of this process that a path names, such as /dev/stdout. It returns
// nil for other paths.
func duplicate(path string) (*os.File, error) {
	dir, name := filepath.Split(path)
	number := slices.Index([]string{"/dev/stdin", "/dev/stdout", "/dev/stderr"}, path)
	if n, err := strconv.Atoi(name); err == nil && (dir == "/dev/fd/" || dir == "/proc/self/fd/") {
		number = n
	}
	if number < 0 {
		return nil, nil
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Dup(number)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), path), nil
}

// rename moves between two open folders, even if these were renamed in the meantime.
func rename(from, to Entry) error {
	src, err := from.dir.Open(".")
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.dir.Open(".")
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := unix.Renameat(int(src.Fd()), from.name, int(dst.Fd()), to.name); err != nil {
		return &os.LinkError{Op: "rename", Old: from.path, New: to.path, Err: err}
	}
	return nil
}
