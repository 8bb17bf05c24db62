package safeio

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Entry is the name of a file in an open folder. The file need not exist. OpenEntry has checked that the
// path of the folder has no symlinks, below the folder where it started. Read and Replace
// accept only regular files, and Read fails if another process replaces the file at the same time.
// The caller must call Close.
type Entry struct {
	dir  *os.Root
	name string // in dir
	path string // absolute
}

// OpenEntry opens the folder of an absolute path. It opens one folder after the other, starting at
// base, a folder above the path, and fails at a symlink. With create, it creates missing folders. If
// base is empty, it starts at the highest folder from which the process can open each folder of the
// path. It does not check the folders above that one.
func OpenEntry(base, path string, create bool) (Entry, error) {
	if base != "" {
		return openBelow(base, path, create)
	}
	parents := []string{filepath.Dir(path)}
	for dir := parents[0]; filepath.Dir(dir) != dir; {
		dir = filepath.Dir(dir)
		parents = append(parents, dir)
	}
	for i := len(parents) - 1; ; i-- {
		e, err := openBelow(parents[i], path, create)
		if i == 0 || !errors.Is(err, fs.ErrPermission) {
			return e, err
		}
	}
}

func openBelow(base, path string, create bool) (Entry, error) {
	dir, err := os.OpenRoot(base)
	if err != nil {
		return Entry{}, err
	}
	rel, err := filepath.Rel(base, filepath.Dir(path))
	if err != nil {
		_ = dir.Close()
		return Entry{}, err
	}
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if name == "." {
			continue
		}
		next, err := openSubfolder(dir, name, create)
		_ = dir.Close()
		if err != nil {
			return Entry{}, err
		}
		dir = next
	}
	return Entry{dir: dir, name: filepath.Base(path), path: path}, nil
}

// Path returns the path given to OpenEntry.
func (e Entry) Path() string { return e.path }

// Close closes the folder.
func (e Entry) Close() { _ = e.dir.Close() }

// Move renames the file, folder or symlink at from to an entry that does not exist yet.
func Move(from, to Entry) error {
	switch existing, _, err := to.Stat(); {
	case err != nil:
		return err
	case existing != nil:
		return fmt.Errorf("%s: %w", to.path, fs.ErrExist)
	}
	return rename(from, to)
}

// Stat describes the entry, which may have any type. target is the target of a symlink. info is nil
// if the entry does not exist.
func (e Entry) Stat() (info fs.FileInfo, target string, err error) {
	info, err = e.dir.Lstat(e.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err = e.dir.Readlink(e.name)
	}
	return info, target, err
}

// Unlink deletes the entry: a file, a symlink (not its target), or an empty folder.
func (e Entry) Unlink() error { return e.dir.Remove(e.name) }

// Link creates a symlink at the entry, which must not exist.
func (e Entry) Link(target string) error { return e.dir.Symlink(target, e.name) }

// Folder creates a folder at the entry unless it exists, and sets its permissions.
func (e Entry) Folder(mode fs.FileMode) error {
	dir, err := openSubfolder(e.dir, e.name, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(mode), f.Close())
}

// Remove deletes the regular file.
func (e Entry) Remove() error {
	if _, err := e.statRegular(); err != nil {
		return err
	}
	return e.dir.Remove(e.name)
}

// openSubfolder opens a subfolder, which must not be a symlink.
func openSubfolder(dir *os.Root, name string, create bool) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		const mode = 0o755
		if err := dir.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = dir.Lstat(name)
	}
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is %w", name, ErrNotFolder)
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = errSwapped
	}
	if err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}

// ErrNotFolder means that there is something other than a folder at a path.
var ErrNotFolder = errors.New("not a directory")

// errSwapped means that another process changed a path while it was used.
var errSwapped = errors.New("another process replaced it at the same time")

// statRegular describes the file. It returns nil if the file does not exist, and fails if there is
// something other than a regular file.
func (e Entry) statRegular() (fs.FileInfo, error) {
	info, err := e.dir.Lstat(e.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", e.path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", e.path)
	}
	return info, nil
}

// Read returns the content of the file, and an error if it has more than limit bytes. If the file
// does not exist, the error is fs.ErrNotExist.
func (e Entry) Read(limit int64) ([]byte, error) {
	info, err := e.statRegular()
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return nil, fmt.Errorf("%s: %w", e.path, fs.ErrNotExist)
	}
	f, err := OpenIn(e.dir, e.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(err, errSwapped)
	}
	data, err := ReadOpen(f, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.path, Cause(err))
	}
	return data, nil
}

// Replace atomically replaces or creates the file. It writes a temporary file, calls beforeRename,
// and renames the file unless beforeRename fails. Other hard links to the old file keep the old
// content. If mode is zero, an existing file keeps its permissions.
func (e Entry) Replace(content []byte, mode fs.FileMode, beforeRename func() error) error {
	info, err := e.statRegular()
	switch {
	case err != nil:
		return err
	case mode != 0:
	case info != nil:
		mode = info.Mode().Perm()
	default:
		mode = 0o644
	}
	name := ".eca-write-" + rand.Text()
	const private = 0o600
	f, err := e.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, private)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = beforeRename()
	}
	if err == nil {
		_, err = e.statRegular() // check again that the file may be replaced
	}
	if err == nil {
		err = e.dir.Rename(name, e.name)
	}
	if err != nil {
		_ = e.dir.Remove(name)
	}
	return err
}
