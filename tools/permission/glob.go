package permission

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Limits of globs, so that judging a command does not read a whole disk.
const (
	maxGlobMatches = 500    // matches
	maxEntriesRead = 20_000 // entries of folders that are read
)

// expandGlob returns the paths that an absolute glob matches. Only * and ? are special. Unlike in a shell,
// hidden files match. ok is false if a limit is exceeded.
func expandGlob(glob string) (found []string, ok bool) {
	volume := filepath.VolumeName(glob)
	found = []string{volume + string(filepath.Separator)}
	remaining := maxEntriesRead
	for name := range strings.FieldsFuncSeq(glob[len(volume):], func(r rune) bool { return r == filepath.Separator }) {
		var next []string
		for _, dir := range found {
			names, ok := matchComponent(dir, name, &remaining)
			if !ok {
				return nil, false
			}
			next = append(next, names...)
		}
		found = next
	}
	return found, len(found) <= maxGlobMatches
}

// matchComponent returns the paths in a folder whose names match one component of a glob. remaining is
// the number of entries that may still be read.
func matchComponent(dir, part string, remaining *int) (paths []string, ok bool) {
	if !strings.ContainsAny(part, "*?") {
		path := joinPath(dir, part) // after a symlink, .. is the parent of its target
		if _, err := os.Lstat(path); err != nil {
			return nil, true
		}
		return []string{path}, true
	}
	pattern := part
	if strings.ContainsAny(part, `[\`) {
		pattern = strings.NewReplacer(`[`, `\[`, `\`, `\\`).Replace(part)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, true // opening a special file may block
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, true // the command cannot read it either
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(min(*remaining+1, 1000))
		if *remaining -= len(names); *remaining < 0 {
			return nil, false
		}
		for _, name := range names {
			if matches, _ := filepath.Match(pattern, name); matches {
				paths = append(paths, joinPath(dir, name))
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
