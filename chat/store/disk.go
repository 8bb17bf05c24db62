package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// SeeDoctor ends error messages about problems that `eca doctor` explains.
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
	return Explain(err, path)
}

// Explain turns disk errors of the SQLite file at path into text for users. It returns other errors
// unchanged.
func Explain(err error, path string) error { return explain(err, path, probe) }

// CheckWritable returns an error if the store's files cannot be read and written.
func (s *Store) CheckWritable() error { return Explain(probe(s.Path()), s.Path()) }

// probe returns why the file at path, its log or its folder cannot be read and written.
func probe(path string) error {
	dir := filepath.Dir(path)
	for _, file := range []string{dir, path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(file); err == nil && file != dir && info.IsDir() {
			return &fs.PathError{Op: "open", Path: file, Err: syscall.EISDIR}
		}
		if err := checkAccess(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "open", Path: file, Err: err}
		}
	}
	return safeio.Cause(Writable(dir))
}

// explain implements Explain. It calls probe if SQLite's error code is ambiguous.
func explain(err error, path string, probe func(path string) error) error {
	if err == nil || errors.As(err, new(*diskError)) {
		return err
	}
	text, cause := "", err
	switch code := safeio.SQLiteCode(err); {
	case safeio.DatabaseDamaged(err):
		text = damagedText
	case code == lib.SQLITE_FULL:
		text = safeio.NoSpace
	case code == lib.SQLITE_READONLY, code == lib.SQLITE_IOERR, code == lib.SQLITE_CANTOPEN:
		if found := probe(path); found != nil {
			cause = found
		} else if code == lib.SQLITE_READONLY {
			text = "the file system or file is read-only"
		}
	}
	text = cmp.Or(text, safeio.DiskCause(cause))
	var pathed *fs.PathError
	if errors.As(cause, &pathed) {
		path = pathed.Path
	}
	advice := SeeDoctor
	switch {
	case errors.Is(cause, syscall.EISDIR):
		text, advice = "a folder is in the place of the file", moveAwayAdvice(path)
	case text == damagedText:
		advice = moveAwayAdvice(path)
	case text == "":
		return err
	case errors.Is(cause, fs.ErrPermission):
		if info, err := os.Stat(path); err == nil {
			files := path
			if !info.IsDir() {
				files = strings.TrimSuffix(strings.TrimSuffix(path, "-wal"), "-shm") + "*" // SQLite copies the file's permissions
			}
			advice = fmt.Sprintf("; run `chmod u+rwX %s`, or `chown` if it belongs to another user", files)
		}
	}
	return &diskError{path, text, advice, err}
}

const damagedText = "the file is damaged"

// moveAwayAdvice tells users how to continue without the stored chats.
func moveAwayAdvice(path string) string {
	return fmt.Sprintf("; restore it from a backup, or move it, %[1]s-wal and %[1]s-shm away: eca then creates an empty one, without the earlier chats", filepath.Base(path))
}

// writeSize is the size of Writable's trial file: a full disk may still accept an empty file.
const writeSize = 64 << 10

// Writable tests whether a directory can be written to: it creates a file and removes it. The error names
// the directory and the cause.
func Writable(dir string) error {
	if err := tryWriting(dir); err != nil {
		return fmt.Errorf("cannot write to %s: %w", dir, safeio.Cause(err))
	}
	return nil
}

func tryWriting(dir string) error {
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
