package sandbox

import (
	"os"
	"path/filepath"
	"strings"
)

// ResolvedPath is a path with its symlinks resolved.
type ResolvedPath struct {
	Links []string // the symlinks in the order in which they are followed, each by its real path
	Real  string   // the target, without symlinks; it need not exist
}

// maxFollowed is the most symlinks that are followed for one path, as in the Linux kernel.
const maxFollowed = 40

// ResolvePath resolves an absolute path as the operating system does, one element after the other.
func ResolvePath(path string) ResolvedPath {
	var w ResolvedPath
	sep := string(filepath.Separator)
	top := filepath.VolumeName(path) + sep
	w.Real = top
	for rest := strings.TrimPrefix(path, top); rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, sep)
		switch name {
		case "", ".":
			continue
		case "..":
			w.Real = filepath.Dir(w.Real)
			continue
		}
		at := filepath.Join(w.Real, name)
		target, err := os.Readlink(at)
		if err != nil || len(w.Links) == maxFollowed {
			w.Real = at
			continue
		}
		w.Links = append(w.Links, at)
		if filepath.IsAbs(target) {
			top = filepath.VolumeName(target) + sep
			w.Real, target = top, strings.TrimPrefix(target, top)
		}
		rest = target + sep + rest
	}
	return w
}

// Within reports whether the target, or a symlink on the way to it, is in dir, which must not
// contain symlinks.
func (w ResolvedPath) Within(dir string) bool {
	for _, at := range append(w.Links, w.Real) {
		if within(dir, at) {
			return true
		}
	}
	return false
}
