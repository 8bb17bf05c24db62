package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// SeeDoctor ends the errors that `eca doctor` explains further.
const SeeDoctor = "; see `eca doctor`"

// diskError is an error of the file system. Its text omits SQLite's message and code.
type diskError struct {
	path, text string
	advice     string
	cause      error
}

func (e *diskError) Error() string { return e.path + ": " + e.text + e.advice }

func (e *diskError) Unwrap() error { return e.cause }

// explain turns disk errors into text for users. It returns other errors unchanged.
func (s *Store) explain(err error) error {
	s.mu.Lock()
	path := filepath.Join(s.dir, File)
	s.mu.Unlock()
	return explain(err, path, Writable)
}

// explain calls writable on the file's folder if SQLite's error code is ambiguous.
func explain(err error, path string, writable func(dir string) error) error {
	if err == nil || errors.As(err, new(*diskError)) {
		return err
	}
	text, advice := safeio.DiskCause(err), SeeDoctor
	var pathed *fs.PathError
	if errors.As(err, &pathed) {
		path = pathed.Path
	}
	switch code := safeio.SQLiteCode(err); {
	case safeio.DatabaseDamaged(err):
		text, advice = "the file is damaged", moveAwayAdvice(path)
	case code == lib.SQLITE_FULL:
		text = safeio.NoSpace
	case code == lib.SQLITE_READONLY:
		text = "the file system or file is read-only"
	case code == lib.SQLITE_IOERR, code == lib.SQLITE_CANTOPEN:
		text = cmp.Or(safeio.DiskCause(writable(filepath.Dir(path))), text)
	}
	if text == "" {
		return err
	}
	return &diskError{path, text, advice, err}
}

// moveAwayAdvice tells users how to continue without the stored chats.
func moveAwayAdvice(path string) string {
	return fmt.Sprintf("; restore it from a backup, or move it, %[1]s-wal and %[1]s-shm away: eca then creates an empty one, without the earlier chats", filepath.Base(path))
}

// writeSize is the size of Writable's trial file: a full disk may still accept an empty file.
const writeSize = 64 << 10

// Writable tests whether a directory can be written to: it creates a file and removes it.
func Writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, writeSize))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// Remedy returns advice for a directory that cannot be written to. variable is the environment
// variable that sets the directory; err is the error from Writable.
func Remedy(err error, variable string) string {
	if cause := safeio.DiskCause(err); cause == safeio.NoSpace || errors.Is(err, syscall.EDQUOT) {
		return fmt.Sprintf("free some space or set %s to a folder on another disk", variable)
	}
	return fmt.Sprintf("set %s to a writable folder", variable)
}
