package permission

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of what a glob may match, and of the entries of folders that are looked at for
// that: judging a command must not read a whole disk.
const (
	maxGlob   = 500
	maxLooked = 20_000
)

// expand returns the paths that a glob matches, an absolute one in which * and ? alone mean
// something; hidden files too, which a shell leaves out. ok is false if there are too many,
// or it would take too long to find out.
func expand(glob string) (found []string, ok bool) {
	volume := filepath.VolumeName(glob)
	found = []string{volume + string(filepath.Separator)}
	left := maxLooked
	for name := range strings.FieldsFuncSeq(glob[len(volume):], func(r rune) bool { return r == filepath.Separator }) {
		var next []string
		for _, dir := range found {
			names, ok := matching(dir, name, &left)
			if !ok {
				return nil, false
			}
			next = append(next, names...)
		}
		found = next
	}
	return found, len(found) <= maxGlob
}

// matching returns the paths in a folder whose names match one part of a glob. left are the
// entries that may still be looked at.
func matching(dir, part string, left *int) (paths []string, ok bool) {
	if !strings.ContainsAny(part, "*?") {
		path := under(dir, part) // after a link, .. is not the folder that the link is in
		if _, err := os.Lstat(path); err != nil {
			return nil, true
		}
		return []string{path}, true
	}
	pattern := strings.NewReplacer(`[`, `\[`, `\`, `\\`).Replace(part)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, true // opening anything else may block
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, true // nor can who runs the command read it
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(min(*left+1, 1000))
		if *left -= len(names); *left < 0 {
			return nil, false
		}
		for _, name := range names {
			if matches, _ := filepath.Match(pattern, name); matches {
				paths = append(paths, under(dir, name))
			}
		}
		if errors.Is(err, io.EOF) {
			return paths, true
		}
		if err != nil {
			return nil, false
		}
	}
}
