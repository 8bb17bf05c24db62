package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// near says whether a place can still be made read-only: the search has not gone beyond its bounds.
func (f *finder) near() bool {
	return f.folders <= maxFolders && f.repositories <= maxRepositories
}

// countFolder says whether a folder is looked at.
func (f *finder) countFolder(dir string) bool {
	f.folders++
	return f.within(dir, "folders", f.folders, maxFolders)
}

// countRepository says whether a repository is looked at.
func (f *finder) countRepository(dir string) bool {
	f.repositories++
	return f.within(dir, "repositories", f.repositories, maxRepositories)
}

func (f *finder) within(dir, what string, count, most int) bool {
	if count <= most {
		return true
	}
	f.places.Whole = false
	if f.places.guard.far && count <= farther*most {
		return true
	}
	f.places.missed = "there are too many " + what + " (" + filepath.Dir(dir) + ")"
	return false
}

// readOnly keeps a file or folder as it is.
func (f *finder) readOnly(at string) {
	if f.near() {
		f.places.Keep = append(f.places.Keep, at)
	}
}

// pin keeps a folder from being moved away.
func (f *finder) pin(dir string) {
	if f.near() {
		f.places.Pins = append(f.places.Pins, dir)
	}
}

// fix keeps the folders above some places from being moved away.
func (f *finder) fix(at ...string) {
	if f.near() {
		f.places.Fixed = append(f.places.Fixed, at...)
	}
}

// list lists a folder, in no order. One that cannot be listed is noted.
func (f *finder) list(dir string) []os.DirEntry {
	entries, err := readDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.places.closed[fileID(dir)] = dir
	}
	return entries
}

// readDir lists a folder without sorting it.
func readDir(dir string) ([]os.DirEntry, error) {
	d, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// open lets the user list and enter a folder of their own until done is called: a command can take
// these rights away from it, to hide what is in it.
func (f *finder) open(dir string) (done func()) {
	nothing := func() {}
	if !f.places.guard.far {
		return nothing
	}
	info, err := os.Lstat(dir)
	const needed = 0o500
	if err != nil || !info.IsDir() || info.Mode()&needed == needed || !mine(info) {
		return nothing
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nothing
	}
	defer parent.Close()
	name := filepath.Base(dir)
	if err := parent.Chmod(name, info.Mode().Perm()|needed); err != nil {
		return nothing
	}
	folder, err := openFolder(dir)
	if err != nil {
		return nothing
	}
	if now, err := folder.Stat(); err != nil || !os.SameFile(info, now) { // replaced meanwhile
		_ = folder.Close()
		return nothing
	}
	const all = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return func() {
		_ = folder.Chmod(info.Mode() & all)
		_ = folder.Close()
	}
}
