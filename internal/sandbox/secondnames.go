package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A file can have several names (hard links). A child could change it by a name in the workspace
// although another one is protected, or outside of the workspace. So such names are read-only.

const (
	maxSecondNames = 64     // that become read-only; beyond, the search was not whole
	maxSought      = 20_000 // entries among which the other names of files are looked for
	maxFetched     = 64     // folders that are looked at in what tools fetched
	maxSampled     = 4      // files of each of them
)

// nodeID is what all names of a file have in common.
type nodeID struct{ device, number uint64 }

// fileNames are the names of a file that were found: whether each is protected.
type fileNames struct {
	all   uint64 // how many it has
	found map[string]bool
}

func (n *fileNames) protected() bool {
	for _, is := range n.found {
		if is {
			return true
		}
	}
	return false
}

// severalNames are the files with several names.
type severalNames map[nodeID]*fileNames

func (s severalNames) add(at string, info fs.FileInfo, protected bool) {
	if id, all := linkCount(info); all > 1 && info.Mode().IsRegular() {
		s.addNode(at, id, all, protected)
	}
}

func (s severalNames) addNode(at string, id nodeID, all uint64, protected bool) {
	if s[id] == nil {
		s[id] = &fileNames{all, map[string]bool{}}
	}
	s[id].found[at] = s[id].found[at] || protected
}

// elsewhere says whether files have names that were not found.
func (s severalNames) elsewhere() bool {
	for _, n := range s {
		if uint64(len(n.found)) < n.all {
			return true
		}
	}
	return false
}

// secondNames keeps the names of files that have others which are protected, or not in the roots.
func (f *finder) secondNames() {
	left := maxSought
	for _, root := range f.roots {
		if !f.files.elsewhere() {
			break
		}
		_ = filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err != nil || !e.Type().IsRegular() {
				return nil //nolint:nilerr // what cannot be read has no names here
			}
			if info, err := e.Info(); err == nil {
				if id, _ := linkCount(info); f.files[id] != nil {
					f.files.add(at, info, false)
				}
			}
			return nil
		})
	}
	var keep []string
	for _, n := range f.files {
		if uint64(len(n.found)) == n.all && !n.protected() {
			continue
		}
		for at, protected := range n.found {
			if !protected {
				keep = append(keep, at)
			}
		}
	}
	if len(keep) > maxSecondNames {
		f.places.Whole = false
		slices.Sort(keep)
		keep = keep[:maxSecondNames]
	}
	f.places.Keep = append(f.places.Keep, keep...)
}

// fetched says which folders hold what tools fetched, and may share with a store.
func fetched(name string) bool {
	return slices.Contains([]string{"node_modules", "vendor", ".venv", "venv"}, name)
}

// shared keeps folders of what tools fetched that share their files with a store outside: these are
// too many to be kept one by one. A tool shares all files of a folder or none, so a few are looked
// at.
func (f *finder) shared(top string) {
	folders := maxFetched
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

// storeFolder returns the folder in which a tool puts the files that it shares: not that in which
// others keep caches.
func storeFolder(top, at string) string {
	dir := top
	for name := range strings.SplitSeq(strings.TrimPrefix(filepath.Dir(at), top), "/") {
		if dir = filepath.Join(dir, name); name == ".pnpm" || name == "site-packages" {
			return dir
		}
	}
	return top
}
