package watch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folders are the folders to watch, each with the names in it that matter. Their paths contain no
// symlinks.
type folders map[string]map[string]bool

func foldersOf(paths []string) folders {
	f := folders{}
	for _, p := range paths {
		f.follow(p)
	}
	return f
}

// maxLinks is the most symlinks in one path, as in common systems.
const maxLinks = 40

// follow resolves an absolute path name by name, as the system does, and notes each name whose
// change would make it lead elsewhere.
func (f folders) follow(path string) {
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
			f.note(dir, name)
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
			f.note(dir, name) // the file, or something in place of a folder
			return
		}
	}
}

// all stands for all names in a folder.
const all = "*"

func (f folders) note(dir, name string) {
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

// concerns reports whether an event at a path matters. Events of other names in a watched folder do
// not, unless all its names matter. All other events, such as those of a folder itself or of one
// that was renamed since, require resolving the paths again.
func (f folders) concerns(path string) bool {
	if _, ok := f[path]; ok {
		return true
	}
	names, ok := f[filepath.Dir(path)]
	return !ok || names[all] || names[filepath.Base(path)]
}
