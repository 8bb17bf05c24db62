//go:build unix

package search

import (
	"errors"
	"syscall"
)

// file is an open file. It asks the system for nothing but to open, read and close: the
// waiting that os prepares for is a third of the time that a small file takes.
type file int

// openFile opens a regular file and returns its size; ok is false if it cannot be opened,
// or is something else.
func openFile(path string, follow bool) (f file, size int64, ok bool) {
	flags := syscall.O_RDONLY | syscall.O_CLOEXEC | syscall.O_NONBLOCK // a pipe would hold us up
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	fd, err := retry(func() (int, error) { return syscall.Open(path, flags, 0) })
	if err != nil {
		return 0, 0, false
	}
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		file(fd).close()
		return 0, 0, false
	}
	return file(fd), st.Size, true
}

// read returns how much was read; 0 at the end, and if no more can be read.
func (f file) read(buf []byte) int {
	n, err := retry(func() (int, error) { return syscall.Read(int(f), buf) })
	if err != nil {
		return 0
	}
	return n
}

func (f file) close() { _ = syscall.Close(int(f)) }

func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
