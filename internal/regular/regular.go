// Package regular reads files that somebody else may have put there: a workspace's, above
// all. What is no regular file (a pipe, a device, a folder) and what is too large is an
// error, and nothing waits for it. Links are followed.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNot says that there is something else than a regular file.
var ErrNot = errors.New("it is no regular file")

// Read returns the content of a file, at most limit bytes. Errors are those of the file
// system, with the path; ErrNot; or that the file is larger.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, limit)
}

// Open opens a file without waiting for what else it may be.
func Open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|noWait, 0) }

// OpenIn is Open for a path relative to a folder that links must not lead out of.
func OpenIn(folder, rel string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(rel, os.O_RDONLY|noWait, 0)
}

// ReadOpen is Read for a file of Open or OpenIn.
func ReadOpen(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: %w", f.Name(), ErrNot)
	case info.Size() > limit:
		return nil, tooLarge(f, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, tooLarge(f, limit)
	}
	return data, err
}

// WithoutPath drops the path from an error of the file system, for who has named it already.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func tooLarge(f *os.File, limit int64) error {
	return fmt.Errorf("read %s: it has more than %d bytes", f.Name(), limit)
}
