// Package safeio reads and writes files that somebody else may have put there, or may
// replace meanwhile: a workspace's, above all.
//
// It guarantees: only regular files are read, up to a limit, and nothing waits for a pipe
// or a device; what is written gets its name when it is whole, so that readers see the old
// content or the new (Write also has it on the disk by then); an Entry stays in the folder
// that was judged, wherever the folder's name leads by then. It does not decide which paths
// may be used, and does not lock.
//
// Errors are those of the file system, with the path, see Cause.
package safeio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotRegular says that there is something else than a regular file.
var ErrNotRegular = errors.New("it is not a regular file")

// Read returns the content of a file, which must not have more than limit bytes. Links are
// followed.
func Read(path string, limit int64) ([]byte, error) { return ReadWithin("", path, limit) }

// ReadWithin is Read for a file in a folder that links must not lead out of; an empty folder
// means unbounded.
func ReadWithin(folder, path string, limit int64) ([]byte, error) {
	f, err := Open(folder, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, limit)
}

// Open opens a regular file to read it. If folder is not empty, links must not lead out of it.
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

// ReadOpen is Read for a file of Open.
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

// OpenIn opens what is at a path in a folder that is open, without waiting for what it may be:
// the caller looks at that.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(path, os.O_RDONLY|noWait, 0)
}

// Same says whether a file has not changed between two looks at it; nil stands for no file.
// Writers replace files, so that a change within the resolution of their time shows too.
func Same(before, now fs.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size() && before.Mode() == now.Mode()
}

// Cause drops the path from an error of the file system, for callers that name it themselves.
func Cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
