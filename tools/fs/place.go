package fs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// place is a file by its folder, which is held open: what is done happens there, wherever
// the folder's name leads by then. Close it.
type place struct {
	dir  *os.Root
	name string // in dir; no link when it was looked at
	path string // absolute, links resolved
}

func (p place) close() { _ = p.dir.Close() }

// open opens the place of a path, which must be where it was when the call was judged; n
// is its number in the plan. No folder on the way may be a link by now. Missing folders
// are made if create is set.
func open(call tools.Call, n int, path string, create bool) (place, error) {
	real, err := call.Place(n, path)
	if err != nil {
		return place{}, err
	}
	base := baseOf(call.Roots, real)
	dir, err := os.OpenRoot(base)
	if err != nil {
		return place{}, err
	}
	rel, err := filepath.Rel(base, filepath.Dir(real))
	if err != nil {
		_ = dir.Close()
		return place{}, err
	}
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if name == "." {
			continue
		}
		next, err := enter(dir, name, create)
		_ = dir.Close()
		if err != nil {
			return place{}, fmt.Errorf("%s: %w", path, err)
		}
		dir = next
	}
	return place{dir: dir, name: filepath.Base(real), path: real}, nil
}

// baseOf is the folder from which a path is followed step by step: its workspace folder,
// else what exists of its way.
func baseOf(roots []string, real string) string {
	for _, root := range roots {
		root = workspace.Resolve(root)
		if rel, err := filepath.Rel(root, filepath.Dir(real)); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return root
		}
	}
	dir := filepath.Dir(real)
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
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
		return nil, fmt.Errorf("%s is not a directory", name)
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

// errSwapped says that somebody changed a path while it was used.
var errSwapped = errors.New("it was replaced by something else in between; nothing was done")

// look describes what is at the place; nil if there is nothing. Devices, pipes and links
// are errors.
func (p place) look() (fs.FileInfo, error) {
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

// read reads the file at the place.
func (p place) read() ([]byte, error) {
	info, err := p.look()
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return nil, fmt.Errorf("%s does not exist", p.path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, which is more than the limit of %d", p.path, info.Size(), maxFile)
	}
	flags := os.O_RDONLY
	if runtime.GOOS != "windows" {
		flags |= syscall.O_NONBLOCK // a pipe that took its place must not hold us up
	}
	f, err := p.dir.OpenFile(p.name, flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(err, errSwapped)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes, which is the limit", p.path, maxFile)
	}
	return data, err
}

// replace puts a file with new content in the place, which gets its name when all of it
// is written and told has agreed. Other names of an old file (hard links) keep the old
// content.
func (p place) replace(content string, told func() error) error {
	mode := fs.FileMode(0o644)
	info, err := p.look()
	if err != nil {
		return err
	}
	if info != nil {
		mode = info.Mode().Perm()
	}
	name := ".eca-write-" + rand.Text()
	const private = 0o600
	f, err := p.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, private)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
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
