// Package ignore implements git's ignore rules: .gitignore files in every folder, the repository's
// info/exclude, and the user's core.excludesFile, with git's precedence and patterns.
//
// Like git it does not follow ignore files that are symlinks, and starts again in a nested
// repository. Unlike git it does not read the index: tracked files that match a pattern are
// ignored. It does not follow conditional includes in git's configuration. Outside of repositories,
// .gitignore files apply from the top of the walk on, and the user's excludes do not apply.
//
// Rules are immutable and safe for concurrent use.
package ignore

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// maxFile is the largest ignore file, in bytes; a larger one is skipped.
const maxFile = 1 << 20

// FileName is the name of the ignore files in folders.
const FileName = ".gitignore"

// Rules are the rules in one folder: the patterns of its own ignore file, and the parent's rules
// for names that match none of these. Folders without an ignore file share the rules of their
// parent.
type Rules struct {
	parent   *Rules
	dir      string // the patterns are relative to it; with slashes, none at the end
	patterns []pattern
	fold     bool // ignore case (core.ignoreCase)
}

// ForTree returns the rules in dir (absolute, without symlinks), including those of the folders
// above it up to the root of its git work tree.
func ForTree(dir string) *Rules {
	var above []string
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		if isRepository(p) {
			r := repository(p)
			for i := len(above) - 1; i >= 0; i-- {
				r = r.withIgnoreFile(above[i])
			}
			return r
		}
		above = append(above, p)
		if filepath.Dir(p) == p {
			return (&Rules{}).withIgnoreFile(filepath.Clean(dir))
		}
	}
}

// Below returns the rules in a subfolder. git and file report whether the subfolder has an entry
// .git, or a regular file .gitignore.
func (r *Rules) Below(dir string, git, file bool) *Rules {
	switch {
	case git && isRepository(dir):
		return repository(dir)
	case file:
		return r.withIgnoreFile(dir)
	}
	return r
}

// withIgnoreFile adds the rules of a folder's own ignore file.
func (r *Rules) withIgnoreFile(dir string) *Rules {
	return r.withFile(dir, filepath.Join(dir, FileName))
}

// withFile adds the patterns of a file, relative to dir.
func (r *Rules) withFile(dir, path string) *Rules {
	patterns := parse(readFile(path, false), r.fold)
	if len(patterns) == 0 {
		return r
	}
	return &Rules{parent: r, dir: strings.TrimSuffix(filepath.ToSlash(dir), "/"), patterns: patterns, fold: r.fold}
}

// Ignored reports whether an absolute path with slashes, directly in the folder of these rules, is
// ignored. Like git, walks do not descend into ignored folders.
func (r *Rules) Ignored(path string, isDir bool) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if name == ".git" {
		return true
	}
	if r.fold {
		name = lower(name)
	}
	// The deepest file with a matching pattern wins, and in it the last line.
	for rules := r; rules != nil; rules = rules.parent {
		rel := ""
		for i := len(rules.patterns) - 1; i >= 0; i-- {
			p := &rules.patterns[i]
			if p.dirOnly && !isDir {
				continue
			}
			subject := name
			if !p.nameOnly {
				if rel == "" {
					rel = path[min(len(rules.dir)+1, len(path)):]
					if rules.fold {
						rel = lower(rel)
					}
				}
				subject = rel
			}
			if p.match(subject) {
				return !p.negate
			}
		}
	}
	return false
}

// readFile returns the content of an ignore file, or nil. Callers follow symlinks only outside work
// trees: a symlink in a work tree could lead to any file of the user.
func readFile(path string, followLinks bool) []byte {
	if info, err := os.Lstat(path); err != nil || !followLinks && !info.Mode().IsRegular() {
		return nil
	}
	data, err := safeio.Read(path, maxFile)
	if err != nil {
		return nil
	}
	return data
}
