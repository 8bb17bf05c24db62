// Package safeio reads and writes files, such as those of a workspace, that other programs may have
// created or may replace at the same time.
//
// It reads only regular files, up to a limit, and never blocks on a pipe or a device; the exception is
// ReadInput, for files that the user names. Writes are atomic: readers see either the old or the new
// content. Write also syncs the content to the disk before it replaces the file. An Entry keeps its
// checked folder open: it uses that folder even if the path later leads to another one. The package
// does not decide which paths are allowed, and does not lock files.
//
// Errors are those of the file system and contain the path. Cause removes the path.
package safeio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotRegular means that there is something other than a regular file at a path.
var ErrNotRegular = errors.New("it is not a regular file")

// Read returns the content of a file. It fails if the file has more than limit bytes. It follows
// symlinks.
func Read(path string, limit int64) ([]byte, error) { return ReadWithin("", path, limit) }

// ReadWithin is Read for a file in a folder. If folder is not empty, it fails if a symlink leads out
// of the folder.
func ReadWithin(folder, path string, limit int64) ([]byte, error) {
	f, err := Open(folder, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, limit)
}

// Open opens a regular file for reading. If folder is not empty, it fails if a symlink leads out of
// the folder.
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
		return os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
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
		buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
		_, err = buf.ReadFrom(io.LimitReader(f, limit+1))
		data = buf.Bytes()
	}
	if err == nil && max(info.Size(), int64(len(data))) > limit {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("it is larger than %d bytes", limit)}
	}
	return data, err
}

// OpenIn opens a path in an open folder without blocking. The caller checks what kind of file it
// is.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
}

// Same reports whether a file is unchanged between two Stat calls; nil means that there was no file.
// It also compares the identity of the file: a writer that replaces the file (Write) is detected even
// if the modification times are equal.
func Same(before, now fs.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size() && before.Mode() == now.Mode()
}

// Within reports whether path is the folder itself or below it. It compares the paths as they are
// written: resolve symlinks first.
func Within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// Cause removes the path from a file system error, for callers that add it themselves.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Write atomically replaces or creates the file at path. It writes a temporary file in the same
// folder, syncs it to the disk, and renames it. It replaces a symlink instead of following it.
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

// SQLiteCode returns SQLite's primary result code of an error; 0 if it has none.
func SQLiteCode(err error) int {
	var sqlite interface {
		error
		Code() int
	}
	if !errors.As(err, &sqlite) {
		return 0
	}
	return sqlite.Code() & 0xff // the other bits are the extended code
}

// DatabaseDamaged reports whether an error means that a file is not an intact SQLite database.
func DatabaseDamaged(err error) bool {
	const corrupt, notDatabase = 11, 26 // SQLITE_CORRUPT, SQLITE_NOTADB
	code := SQLiteCode(err)
	return code == corrupt || code == notDatabase
}

// NoSpace is the result of DiskCause for a full disk.
const NoSpace = "no space left on device"

// DiskCause returns the reason for a failed write, in words for the user. It returns "" if neither
// the state of the disk nor a permission is the reason.
func DiskCause(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return NoSpace
	case errors.Is(err, syscall.EDQUOT):
		return "the disk quota is used up"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	return ""
}

// Unwritable wraps the error of a failed write. The text has the path, the cause and, if DiskCause
// knows the cause, a pointer to eca doctor. It returns nil if err is nil.
func Unwritable(path string, err error) error {
	if err == nil {
		return nil
	}
	if cause := DiskCause(err); cause != "" {
		return &unwritableError{fmt.Sprintf("cannot write %s: %s; see `eca doctor`", path, cause), err}
	}
	return fmt.Errorf("cannot write %s: %w", path, Cause(err))
}

type unwritableError struct {
	text  string
	cause error
}

func (e *unwritableError) Error() string { return e.text }
func (e *unwritableError) Unwrap() error { return e.cause }
