//go:build !unix

package search

import "os"

// file is an open file.
type file struct{ *os.File }

// openFile opens a regular file and returns its size; ok is false if it cannot be opened or is not
// a regular file.
func openFile(path string, follow bool) (f file, size int64, ok bool) {
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	if info, err := stat(path); err != nil || !info.Mode().IsRegular() {
		return file{}, 0, false
	}
	opened, err := os.Open(path)
	if err != nil {
		return file{}, 0, false
	}
	info, err := opened.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = opened.Close()
		return file{}, 0, false
	}
	return file{opened}, info.Size(), true
}

// read returns the number of bytes read; 0 at the end of the file and on errors.
func (f file) read(buf []byte) int {
	n, _ := f.Read(buf)
	return n
}

func (f file) close() { _ = f.Close() }
