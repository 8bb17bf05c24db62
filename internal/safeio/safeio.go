// Package safeio reads and writes files that other programs may have created or may replace at the
// same time, above all those of a workspace.
//
// Only regular files are read, up to a limit, and reading never blocks on a pipe or a device.
// Writes are atomic: readers see the old content or the new (Write also syncs it to the disk
// first). An Entry stays in the folder that was checked, even if the path of the folder leads
// elsewhere later. The package does not decide which paths may be used, and does not lock.
//
// Errors are those of the file system, with the path; see Cause.
package safeio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotRegular means that there is something other than a regular file at a path.
var ErrNotRegular = errors.New("it is not a regular file")

// Read returns the content of a file of at most limit bytes. Symlinks are followed.
func Read(path string, limit int64) ([]byte, error) { return ReadWithin("", path, limit) }

// ReadWithin is Read for a file in a folder. If folder is not empty, symlinks must not lead out of
// it.
func ReadWithin(folder, path string, limit int64) ([]byte, error) {
	f, err := Open(folder, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, limit)
}

// Open opens a regular file for reading. If folder is not empty, symlinks must not lead out of it.
func Open(folder, path string) (*os.File, error) {
	f, err := open(folder, path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func open(folder, path string) (*os.File, error) {
	if folder == "" {
		return os.OpenFile(path, os.O_RDONLY|noWait, 0)
	}
	rel, err := filepath.Rel(folder, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return OpenIn(root, rel)
}

// ReadOpen is Read for a file that Open returned.
func ReadOpen(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var data []byte
	if size := info.Size(); size <= limit {
		data, err = io.ReadAll(io.LimitReader(f, limit+1))
	}
	if err == nil && max(info.Size(), int64(len(data))) > limit {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("it is larger than %d bytes", limit)}
	}
	return data, err
}

// OpenIn opens a path in an open folder without blocking. The caller checks what kind of file it
// is.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(path, os.O_RDONLY|noWait, 0)
}

// Same reports whether a file has not changed between two Stat calls; nil means that there was no
// file. Since writers replace files, it also detects changes within the resolution of the
// modification time.
func Same(before, now fs.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size() && before.Mode() == now.Mode()
}

// Cause removes the path from a file system error, for callers that add it themselves.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
