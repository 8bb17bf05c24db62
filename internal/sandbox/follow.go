package sandbox

import (
	"os"
	"path/filepath"
	"strings"
)

// Way is where a path leads, and over which links.
type Way struct {
	Links []string // each where it really is, in the order in which they are followed
	Real  string   // the target, without links; if it does not exist, where it would be
}

// maxFollowed bounds the links of one path, as the system does.
const maxFollowed = 40

// Follow follows an absolute path as the system does, one name after the other.
func Follow(path string) Way {
	var w Way
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

// Within says whether a path, or a link that it leads over, is in a folder, which is given without
// links.
func (w Way) Within(dir string) bool {
	for _, at := range append(w.Links, w.Real) {
		if within(dir, at) {
			return true
		}
	}
	return false
}
