package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// ResolvedPath is a path with its symlinks resolved.
type ResolvedPath struct {
	Links []string // the symlinks in the order in which they are followed, each by its real path
	Real  string   // the target, without symlinks; it need not exist
}

// maxFollowed bounds the number of symlinks that are followed for one path, as in the Linux kernel.
const maxFollowed = 40

// ResolvePath resolves the symlinks of an absolute path one element at a time, as the operating
// system does. The path need not exist.
func ResolvePath(path string) ResolvedPath {
	var r ResolvedPath
	sep := string(filepath.Separator)
	top := filepath.VolumeName(path) + sep
	r.Real = top
	for rest := strings.TrimPrefix(path, top); rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, sep)
		switch name {
		case "", ".":
			continue
		case "..":
			r.Real = filepath.Dir(r.Real)
			continue
		}
		at := filepath.Join(r.Real, name)
		target, err := os.Readlink(at)
		if err != nil || len(r.Links) == maxFollowed {
			r.Real = at
			continue
		}
		r.Links = append(r.Links, at)
		if filepath.IsAbs(target) {
			top = filepath.VolumeName(target) + sep
			r.Real, target = top, strings.TrimPrefix(target, top)
		}
		rest = target + sep + rest
	}
	return r
}

// Within reports whether the target, or one of the followed symlinks, is dir or below it. The path
// dir must not contain symlinks.
func (r ResolvedPath) Within(dir string) bool {
	for _, at := range append(r.Links, r.Real) {
		if safeio.Within(dir, at) {
			return true
		}
	}
	return false
}
