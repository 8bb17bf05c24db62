package safeio

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write atomically replaces or creates the file at path, through a temporary file in the same
// folder that is synced to the disk before the rename. A symlink is replaced, not followed.
func Write(path string, data []byte, mode fs.FileMode) error {
	return WriteFrom(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFrom is Write for content that a function writes piece by piece.
func WriteFrom(path string, mode fs.FileMode, content func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = content(f)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
