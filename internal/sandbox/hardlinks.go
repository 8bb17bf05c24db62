package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A file may have a hard link in the workspace and another one that is protected or outside the
// workspace. The child could change the file through the first, so the first becomes read-only.

const (
	maxProtected         = 64     // hard links that become read-only; if there are more, the search counts as incomplete
	maxScanned           = 20_000 // entries that are searched for further hard links
	maxDependencyFolders = 64     // folders that are sampled within one folder of fetched dependencies
	maxSampled           = 4      // files that are sampled in each of them
)

// nodeID identifies a file. All hard links to the file have the same nodeID.
type nodeID struct{ device, number uint64 }

// linkedFile is a file with several hard links.
type linkedFile struct {
	links uint64          // the number of hard links
	found map[string]bool // the hard links that were found; true if the link is protected
}

func (n *linkedFile) protected() bool {
	for _, protected := range n.found {
		if protected {
			return true
		}
	}
	return false
}

// hardLinks holds the files that have several hard links.
type hardLinks map[nodeID]*linkedFile

func (s hardLinks) add(at string, info fs.FileInfo, protected bool) {
	if id, all := linkCount(info); all > 1 && info.Mode().IsRegular() {
		s.addNode(at, id, all, protected)
	}
}

func (s hardLinks) addNode(at string, id nodeID, all uint64, protected bool) {
	if s[id] == nil {
		s[id] = &linkedFile{all, map[string]bool{}}
	}
	s[id].found[at] = s[id].found[at] || protected
}

// hasUnfoundLinks reports whether any file has hard links that were not found.
func (s hardLinks) hasUnfoundLinks() bool {
	for _, n := range s {
		if uint64(len(n.found)) < n.links {
			return true
		}
	}
	return false
}

// protectHardLinks protects each hard link in the roots to a file that also has a hard link at a
// protected path or outside the roots.
func (f *finder) protectHardLinks() {
	left := maxScanned
	for _, root := range f.roots {
		if !f.linkedFiles.hasUnfoundLinks() {
			break
		}
		_ = filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err != nil || !e.Type().IsRegular() {
				return nil //nolint:nilerr // an unreadable entry is skipped
			}
			if info, err := e.Info(); err == nil {
				if id, _ := linkCount(info); f.linkedFiles[id] != nil {
					f.linkedFiles.add(at, info, false)
				}
			}
			return nil
		})
	}
	var keep []string
	for _, n := range f.linkedFiles {
		if uint64(len(n.found)) == n.links && !n.protected() {
			continue
		}
		for at, protected := range n.found {
			if !protected {
				keep = append(keep, at)
			}
		}
	}
	if len(keep) > maxProtected {
		f.places.Whole = false
		slices.Sort(keep)
		keep = keep[:maxProtected]
	}
	f.places.Keep = append(f.places.Keep, keep...)
}

// isDependencyFolder reports whether a folder of this name contains fetched dependencies, which may be hard
// links into a shared store.
func isDependencyFolder(name string) bool {
	return slices.Contains([]string{"node_modules", "vendor", ".venv", "venv"}, name)
}

// protectSharedFolders protects folders of fetched dependencies whose files are hard links into a
// store outside the workspace. These files are too many to protect one by one. A tool links all
// files of a folder or none, so a few samples suffice.
func (f *finder) protectSharedFolders(top string) {
	folders := maxDependencyFolders
	var look func(dir string) (stop bool)
	look = func(dir string) bool {
		if folders--; folders < 0 {
			return true
		}
		entries, _ := readDir(dir)
		files := maxSampled
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if e.IsDir() {
				if look(at) {
					return true
				}
				continue
			}
			if files--; files < 0 || !e.Type().IsRegular() {
				continue
			}
			info, err := e.Info()
			if err != nil {
				continue
			}
			if _, all := linkCount(info); all > 1 {
				f.places.Keep = append(f.places.Keep, storeFolder(top, at))
				return true
			}
		}
		return false
	}
	look(top)
}

// storeFolder returns the folder to protect for a shared file: the innermost .pnpm or site-packages
// folder that contains the file; without such a folder, top. Sibling folders, such as caches, stay
// writable.
func storeFolder(top, at string) string {
	dir := top
	for name := range strings.SplitSeq(strings.TrimPrefix(filepath.Dir(at), top), "/") {
		if dir = filepath.Join(dir, name); name == ".pnpm" || name == "site-packages" {
			return dir
		}
	}
	return top
}
