//go:build unix

package search

import (
	"errors"
	"syscall"
)

// file is an open file descriptor. It uses only the system calls to open, read and close: the setup
// for polling in os.Open takes a third of the time of reading a small file.
type file int

// openFile opens a regular file and returns its size; ok is false if it cannot be opened or is not
// a regular file.
func openFile(path string, follow bool) (f file, size int64, ok bool) {
	flags := syscall.O_RDONLY | syscall.O_CLOEXEC | syscall.O_NONBLOCK // opening a pipe would block
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

// read returns the number of bytes read; 0 at the end of the file and on errors.
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
