package heldback

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Item is a protected file or folder that was moved away.
type Item struct {
	root, name string // its former path
	at         string // its path in the store
}

const maxCopied = 1 << 30 // bytes that are copied for one item to another file system

// moveAway moves a protected file to its own folder in the store.
func (s *Store) moveAway(places sandbox.Places, change sandbox.Change) (Item, error) {
	root, ok := places.Root(change.Path)
	if !ok {
		return Item{}, errors.New("it is outside the workspace")
	}
	name, err := filepath.Rel(root, change.Path)
	if err != nil {
		return Item{}, err
	}
	from, err := openParent(root, name)
	if err != nil {
		return Item{}, err
	}
	defer from.close()
	if now, err := from.dir.Lstat(from.name); err != nil {
		return Item{}, err
	} else if !os.SameFile(now, change.Info) {
		return Item{}, errors.New("it was replaced meanwhile")
	}
	if err := os.MkdirAll(s.movedDir, 0o700); err != nil {
		return Item{}, err
	}
	dir, err := os.MkdirTemp(s.movedDir, namePrefix(root)+"-*")
	if err != nil {
		return Item{}, err
	}
	to, err := openParent(dir, filepath.Base(name))
	if err != nil {
		return Item{}, err
	}
	defer to.close()
	if err := move(from, to); err != nil {
		_ = os.Remove(dir) // removed only if nothing was copied
		return Item{}, err
	}
	if filepath.Base(name) == "commondir" && filepath.Base(filepath.Dir(filepath.Dir(name))) == "worktrees" {
		_ = from.dir.WriteFile(from.name, []byte("../..\n"), 0o644) // git's usual content, without which the worktree does not work
	}
	return Item{root, name, filepath.Join(dir, filepath.Base(name))}, nil
}

// namePrefix returns the beginning of a folder name in the store, made from the name of root.
func namePrefix(root string) string {
	const maxLen = 60
	name := strings.Map(func(r rune) rune {
		if r == filepath.Separator || r == '*' {
			return -1
		}
		return r
	}, filepath.Base(root))
	return name[:min(len(name), maxLen)]
}

// Restore moves the item back, unless its former path is in use.
func (i Item) Restore() error {
	from, err := openParent(filepath.Dir(i.at), filepath.Base(i.at))
	if err != nil {
		return err
	}
	defer from.close()
	to, err := openParent(i.root, i.name)
	if err != nil {
		return err
	}
	defer to.close()
	return move(from, to)
}

// parent is the open folder of a file to move. No symlinks were followed to open it.
type parent struct {
	dir     *os.Root
	name    string   // of the file
	restore []func() // restore the permissions of folders
}

func (p *parent) close() {
	_ = p.dir.Close()
	for i := len(p.restore) - 1; i >= 0; i-- {
		p.restore[i]()
	}
}

// openParent opens the folder of a path below a root. A command may have removed permissions of the
// folders below the root; the user gets all permissions for them until the parent is closed.
func openParent(root, path string) (*parent, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	p := &parent{dir: dir, name: filepath.Base(path)}
	folder := filepath.Dir(path)
	if folder == "." {
		return p, nil
	}
	for name := range strings.SplitSeq(folder, string(filepath.Separator)) {
		if err := p.enter(name); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *parent) enter(name string) error {
	info, err := p.dir.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", name)
	}
	modeChanged := makeAccessible(p.dir, name, info)
	next, err := p.dir.OpenRoot(name)
	if err != nil {
		return err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = next.Close()
		return errors.Join(fmt.Errorf("%s was replaced meanwhile", name), err)
	}
	if modeChanged {
		folder, err := next.Open(".")
		if err != nil {
			_ = next.Close()
			return err
		}
		p.restore = append(p.restore, func() {
			_ = folder.Chmod(mode(info))
			_ = folder.Close()
		})
	}
	_ = p.dir.Close()
	p.dir = next
	return nil
}

// makeAccessible gives the user all permissions for a folder, if some are missing.
func makeAccessible(dir *os.Root, name string, info fs.FileInfo) (changed bool) {
	const all = 0o700
	return info.IsDir() && info.Mode()&all != all && dir.Chmod(name, mode(info)|all) == nil
}

// mode returns the settable mode bits of a file.
func mode(info fs.FileInfo) fs.FileMode {
	return info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

// move moves a file or folder to an unused path.
func move(from, to *parent) error {
	if _, err := to.dir.Lstat(to.name); err == nil {
		return fmt.Errorf("%s exists already", to.name)
	}
	info, err := from.dir.Lstat(from.name)
	if err != nil {
		return err
	}
	modeChanged := makeAccessible(from.dir, from.name, info) // moving a folder changes its entry "..", which needs write permission
	err = rename(from.dir, from.name, to.dir, to.name)
	if err == nil {
		if modeChanged {
			_ = to.dir.Chmod(to.name, mode(info))
		}
		return nil
	}
	remaining := int64(maxCopied)
	if err := copyTo(from.dir, from.name, to.dir, to.name, &remaining); err != nil {
		return errors.Join(err, to.dir.RemoveAll(to.name))
	}
	return from.dir.RemoveAll(from.name)
}

// copyTo copies a file, symlink or folder.
func copyTo(from *os.Root, fromName string, to *os.Root, toName string, remaining *int64) error {
	info, err := from.Lstat(fromName)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		return copyFile(from, fromName, to, toName, info, remaining)
	case info.Mode()&os.ModeSymlink != 0:
		link, err := from.Readlink(fromName)
		if err != nil {
			return err
		}
		return to.Symlink(link, toName)
	case !info.IsDir():
		return nil // pipes and sockets are not kept
	}
	makeAccessible(from, fromName, info)
	if err := to.Mkdir(toName, 0o700); err != nil {
		return err
	}
	below, err := from.OpenRoot(fromName)
	if err != nil {
		return err
	}
	defer below.Close()
	target, err := to.OpenRoot(toName)
	if err != nil {
		return err
	}
	defer target.Close()
	entries, err := fs.ReadDir(below.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyTo(below, e.Name(), target, e.Name(), remaining); err != nil {
			return err
		}
	}
	return to.Chmod(toName, info.Mode().Perm())
}

func copyFile(from *os.Root, fromName string, to *os.Root, toName string, info fs.FileInfo, remaining *int64) error {
	if info.Size() > *remaining {
		return errors.New("it is too large to be copied to eca's state folder")
	}
	if info.Mode()&0o400 == 0 {
		_ = from.Chmod(fromName, mode(info)|0o400)
	}
	source, err := from.Open(fromName)
	if err != nil {
		return err
	}
	defer source.Close()
	if now, err := source.Stat(); err != nil || !os.SameFile(info, now) {
		return errors.Join(errors.New("it was replaced meanwhile"), err)
	}
	copied, err := to.OpenFile(toName, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	n, err := io.Copy(copied, io.LimitReader(source, *remaining))
	*remaining -= n
	return errors.Join(err, copied.Chmod(info.Mode().Perm()), copied.Close())
}
