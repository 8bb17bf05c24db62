package watch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folders has the folders to watch and, for each of them, the names that matter. The paths contain
// no symlinks.
type folders map[string]map[string]bool

func foldersOf(paths []string) folders {
	f := folders{}
	for _, p := range paths {
		f.addPath(p)
	}
	return f
}

// maxLinks is the maximum number of symlinks in one path, as in common systems.
const maxLinks = 40

// addPath resolves an absolute path name by name, as the system does. It adds each name whose change
// would make the path lead elsewhere.
func (f folders) addPath(path string) {
	dir, rest := split(path)
	for links := 0; len(rest) > 0 && links <= maxLinks; {
		name := rest[0]
		if name == ".." {
			dir, rest = filepath.Dir(dir), rest[1:]
			continue
		}
		full := filepath.Join(dir, name)
		info, err := os.Lstat(full)
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			f.add(dir, name)
			target, err := os.Readlink(full)
			if err != nil {
				return
			}
			links++
			root, names := split(target)
			if filepath.IsAbs(target) {
				dir = root
			}
			rest = append(names, rest[1:]...)
		case err == nil && info.IsDir() && len(rest) > 1:
			dir, rest = full, rest[1:]
		default:
			f.add(dir, name) // the file, or something in place of a folder
			return
		}
	}
}

// allNames stands for all names in a folder.
const allNames = "*"

func (f folders) add(dir, name string) {
	if f[dir] == nil {
		f[dir] = map[string]bool{}
	}
	f[dir][name] = true
}

// split returns a path's root and its elements.
func split(path string) (root string, names []string) {
	volume := filepath.VolumeName(path)
	for name := range strings.SplitSeq(filepath.ToSlash(path[len(volume):]), "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return volume + string(filepath.Separator), names
}

// matters reports whether an event at a path requires resolving the paths again. It returns false only
// for a name in a watched folder that is not among the names to watch. Events of a folder itself matter,
// and so do events under an unknown path, for example of a watched folder that was renamed.
func (f folders) matters(path string) bool {
	if _, ok := f[path]; ok {
		return true
	}
	names, ok := f[filepath.Dir(path)]
	return !ok || names[allNames] || names[filepath.Base(path)]
}
