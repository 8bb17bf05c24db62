package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// withinLimits reports whether the search is still within its normal limits. Paths that are found
// beyond them do not become read-only.
func (f *finder) withinLimits() bool {
	return f.folders <= maxFolders && f.repositories <= maxRepositories
}

// countFolder counts a folder, and reports whether the limits allow searching it.
func (f *finder) countFolder(dir string) bool {
	f.folders++
	return f.checkLimit(dir, "folders", f.folders, maxFolders)
}

// countRepository counts a repository, and reports whether the limits allow searching it.
func (f *finder) countRepository(dir string) bool {
	f.repositories++
	return f.checkLimit(dir, "repositories", f.repositories, maxRepositories)
}

func (f *finder) checkLimit(dir, what string, count, limit int) bool {
	if count <= limit {
		return true
	}
	f.places.Whole = false
	if f.places.guard.wide && count <= wideFactor*limit {
		return true
	}
	f.places.incompleteReason = "there are too many " + what + " (" + filepath.Dir(dir) + ")"
	return false
}

// addReadOnly makes a file or folder read-only.
func (f *finder) addReadOnly(at string) {
	if f.withinLimits() {
		f.places.Keep = append(f.places.Keep, at)
	}
}

// pin prevents a folder from being moved.
func (f *finder) pin(dir string) {
	if f.withinLimits() {
		f.places.Pins = append(f.places.Pins, dir)
	}
}

// pinParentsOf prevents the folders above the given paths from being moved.
func (f *finder) pinParentsOf(at ...string) {
	if f.withinLimits() {
		f.places.PinParents = append(f.places.PinParents, at...)
	}
}

// list returns the entries of a folder, in no particular order. It records folders that cannot be
// listed.
func (f *finder) list(dir string) []os.DirEntry {
	entries, err := readDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.places.unlisted[fileID(dir)] = dir
	}
	return entries
}

// readDir lists a folder without sorting its entries.
func readDir(dir string) ([]os.DirEntry, error) {
	d, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// makeReadable makes one of the user's own folders readable for the search, until done is called. A
// command may have removed the permissions to hide the contents.
func (f *finder) makeReadable(dir string) (done func()) {
	nothing := func() {}
	if !f.places.guard.wide {
		return nothing
	}
	info, err := os.Lstat(dir)
	const needed = 0o500
	if err != nil || !info.IsDir() || info.Mode()&needed == needed || !ownedByUser(info) {
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
	if now, err := folder.Stat(); err != nil || !os.SameFile(info, now) { // replaced in the meantime
		_ = folder.Close()
		return nothing
	}
	const all = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return func() {
		_ = folder.Chmod(info.Mode() & all)
		_ = folder.Close()
	}
}
