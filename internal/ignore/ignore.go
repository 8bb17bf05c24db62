// Package ignore applies git's rules about files that do not count: .gitignore files in
// every folder, the repository's info/exclude, and the user's core.excludesFile, in git's
// order of precedence and with its patterns.
//
// Like git it takes no ignore file that is a link, and starts again in a repository
// inside another. Unlike git it does not read the index: what is tracked although a pattern names
// it is ignored here. Conditional includes of git's configuration are not followed. Outside
// of repositories, .gitignore files count from the top of the walk on, the user's excludes
// do not.
//
// Rules are immutable and safe for concurrent use.
package ignore

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// maxFile bounds an ignore file; a larger one is skipped.
const maxFile = 1 << 20

// FileName is the name of the ignore files in folders.
const FileName = ".gitignore"

// Rules are the rules in one folder: what its own ignore file says, and what is asked when
// that says nothing. Folders without an ignore file share the rules of their parent.
type Rules struct {
	parent   *Rules
	dir      string // which the patterns are relative to; with slashes, none at the end
	patterns []pattern
	fold     bool // case does not count (core.ignoreCase)
}

// ForTree returns the rules in dir (absolute, without links), including what the folders
// above it state, up to the root of its git work tree.
func ForTree(dir string) *Rules {
	var above []string
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		if isRepository(p) {
			r := repository(p)
			for i := len(above) - 1; i >= 0; i-- {
				r = r.with(above[i])
			}
			return r
		}
		above = append(above, p)
		if filepath.Dir(p) == p {
			return (&Rules{}).with(filepath.Clean(dir))
		}
	}
}

// Below returns the rules in a folder inside the one these are for. git and file say
// whether that has an entry .git, or a regular file .gitignore.
func (r *Rules) Below(dir string, git, file bool) *Rules {
	switch {
	case git && isRepository(dir):
		return repository(dir)
	case file:
		return r.with(dir)
	}
	return r
}

// with adds what a folder's own ignore file says.
func (r *Rules) with(dir string) *Rules { return r.file(dir, filepath.Join(dir, FileName)) }

// file adds the patterns of a file, relative to dir.
func (r *Rules) file(dir, path string) *Rules {
	patterns := parse(readFile(path, false), r.fold)
	if len(patterns) == 0 {
		return r
	}
	return &Rules{parent: r, dir: strings.TrimSuffix(filepath.ToSlash(dir), "/"), patterns: patterns, fold: r.fold}
}

// Ignored reports whether an absolute path with slashes, directly in the folder of these
// rules, is ignored. Walks do not descend into ignored folders, as git does not.
func (r *Rules) Ignored(path string, isDir bool) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if name == ".git" {
		return true
	}
	if r.fold {
		name = lower(name)
	}
	// The deepest file that says something wins, and in it the last line.
	for l := r; l != nil; l = l.parent {
		rel := ""
		for i := len(l.patterns) - 1; i >= 0; i-- {
			p := &l.patterns[i]
			if p.dirOnly && !isDir {
				continue
			}
			against := name
			if !p.base {
				if rel == "" {
					rel = path[min(len(l.dir)+1, len(path)):]
					if l.fold {
						rel = lower(rel)
					}
				}
				against = rel
			}
			if p.match(against) {
				return !p.negate
			}
		}
	}
	return false
}

// readFile returns what is in an ignore file; or nothing. Links count only
// outside of work trees: the author of a work tree chose its contents.
func readFile(path string, links bool) []byte {
	if info, err := os.Lstat(path); err != nil || !links && !info.Mode().IsRegular() {
		return nil
	}
	data, err := safeio.Read(path, maxFile)
	if err != nil {
		return nil
	}
	return data
}
