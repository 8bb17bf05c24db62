//go:build !linux

package repomap

import (
	"io"
	"os"
	"slices"
)

// read reads a file into a reused buffer; ok is false if that fails, or if the file is not regular or too
// large.
func read(path string, buf *[]byte) (src []byte, size, mtime int64, ok bool) {
	if size, mtime, ok = stat(path); !ok {
		return nil, 0, 0, false
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, 0, false
	}
	defer f.Close()
	*buf = slices.Grow((*buf)[:0], int(size)+1)[:size]
	n, err := io.ReadFull(f, *buf)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF { //nolint:errorlint // ReadFull returns them as they are
		return nil, 0, 0, false
	}
	return (*buf)[:n], size, mtime, true
}
