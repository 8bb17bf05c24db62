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

// Entry is where a file is or may be, by its folder, which is kept open. No step on the way
// to the folder was a link when it was opened, only regular files are read and replaced, and
// it is an error if the file was replaced by another meanwhile. Close it.
type Entry struct {
	dir  *os.Root
	name string // in dir; no link when it was looked at
	path string // absolute
}

// OpenEntry opens the entry of a path (absolute, without links). Its folder is found step by
// step from base, a folder above it; missing folders are made if create is set. Without a
// base it begins as far above as folders can be opened: those that only others may read
// (/home) are taken as they are.
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
		p, err := openBelow(parents[i], path, create)
		if i == 0 || !errors.Is(err, fs.ErrPermission) {
			return p, err
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
		next, err := enter(dir, name, create)
		_ = dir.Close()
		if err != nil {
			return Entry{}, err
		}
		dir = next
	}
	return Entry{dir: dir, name: filepath.Base(path), path: path}, nil
}

// Path is the path it was opened with.
func (p Entry) Path() string { return p.path }

// Close lets the folder go.
func (p Entry) Close() { _ = p.dir.Close() }

// Move renames what is at from, which may also be a folder or a link, to an entry that does not exist.
func Move(from, to Entry) error {
	switch there, _, err := to.Stat(); {
	case err != nil:
		return err
	case there != nil:
		return fmt.Errorf("%s: %w", to.path, fs.ErrExist)
	}
	return rename(from, to)
}

// Stat describes the entry, of any type, and its target if it is a link; nil if it does not exist.
func (p Entry) Stat() (info fs.FileInfo, target string, err error) {
	info, err = p.dir.Lstat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err = p.dir.Readlink(p.name)
	}
	return info, target, err
}

// Unlink deletes the entry: a file, a link (not its target), or an empty folder.
func (p Entry) Unlink() error { return p.dir.Remove(p.name) }

// Link makes the entry, which must not exist, a symbolic link.
func (p Entry) Link(target string) error { return p.dir.Symlink(target, p.name) }

// Folder makes the entry a folder, unless it is one, and sets its permissions.
func (p Entry) Folder(mode fs.FileMode) error {
	dir, err := enter(p.dir, p.name, true)
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

// Remove deletes the file.
func (p Entry) Remove() error {
	if _, err := p.look(); err != nil {
		return err
	}
	return p.dir.Remove(p.name)
}

// enter opens a folder in another, if it is one and no link.
func enter(dir *os.Root, name string, create bool) (*os.Root, error) {
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

// ErrNotFolder says that something else is where a folder should be.
var ErrNotFolder = errors.New("not a directory")

// errSwapped says that somebody changed a path while it was used.
var errSwapped = errors.New("it was replaced by something else in between; nothing was done")

// look describes the file; nil if it does not exist. Anything but a regular file is an error.
func (p Entry) look() (fs.FileInfo, error) {
	info, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", p.path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", p.path)
	}
	return info, nil
}

// Read reads the file at the place, which is an error if it has more than limit bytes. None
// is fs.ErrNotExist.
func (p Entry) Read(limit int64) ([]byte, error) {
	info, err := p.look()
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return nil, fmt.Errorf("%s: %w", p.path, fs.ErrNotExist)
	}
	f, err := OpenIn(p.dir, p.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(err, errSwapped)
	}
	data, err := ReadOpen(f, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, Cause(err))
	}
	return data, nil
}

// Replace puts a file with new content in the place, which gets its name when all of it
// is written and told has agreed. Other names of an old file (hard links) keep the old
// content. A file that is there keeps its mode, unless mode (permissions) is not zero.
func (p Entry) Replace(content []byte, mode fs.FileMode, told func() error) error {
	info, err := p.look()
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
	f, err := p.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, private)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = told()
	}
	if err == nil {
		_, err = p.look() // still something that may be replaced
	}
	if err == nil {
		err = p.dir.Rename(name, p.name)
	}
	if err != nil {
		_ = p.dir.Remove(name)
	}
	return err
}
