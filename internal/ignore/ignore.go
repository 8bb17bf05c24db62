// Package ignore applies .gitignore files as git does: nested files, negation,
// anchored and folder-only patterns, `**`.
//
// It reads .gitignore files only; global and info excludes are not considered.
package ignore

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxFile bounds a .gitignore; a larger one is no ignore file.
const maxFile = 1 << 20

// Rules answers whether paths below a folder are ignored. It reads ignore files as
// it meets their folders and is not safe for concurrent use.
type Rules struct {
	top  string
	dirs map[string][]pattern
}

type pattern struct {
	glob    string
	negate  bool
	dirOnly bool
	base    bool // matches the name alone, at any depth
}

// ForTree returns the rules for what lies below dir, including those that folders
// above dir state, up to the root of its git work tree.
func ForTree(dir string) *Rules {
	top := dir
	for p := dir; ; p = filepath.Dir(p) {
		if _, err := os.Lstat(filepath.Join(p, ".git")); err == nil {
			top = p
			break
		}
		if filepath.Dir(p) == p {
			break
		}
	}
	return &Rules{top: top, dirs: map[string][]pattern{}}
}

// Ignored says whether a path is ignored by itself. The caller does not descend
// into ignored folders, as git does not.
func (r *Rules) Ignored(path string, isDir bool) bool {
	if filepath.Base(path) == ".git" {
		return true
	}
	// The deepest file that says something wins, and in it the last line.
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return false
		}
		rel = filepath.ToSlash(rel)
		patterns := r.patterns(dir)
		for i := len(patterns) - 1; i >= 0; i-- {
			if patterns[i].match(rel, isDir) {
				return !patterns[i].negate
			}
		}
		if dir == r.top || filepath.Dir(dir) == dir {
			return false
		}
	}
}

func (p pattern) match(rel string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	name := rel
	if p.base {
		name = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	ok, err := doublestar.Match(p.glob, name)
	return err == nil && ok
}

func (r *Rules) patterns(dir string) []pattern {
	if ps, ok := r.dirs[dir]; ok {
		return ps
	}
	ps := read(filepath.Join(dir, ".gitignore"))
	r.dirs[dir] = ps
	return ps
}

func read(path string) []pattern {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parse(data)
}

// parse reads the lines of an ignore file.
func parse(data []byte) []pattern {
	var out []pattern
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxFile)
	for lines.Scan() {
		if p, ok := parseLine(strings.TrimSuffix(lines.Text(), "\r")); ok {
			out = append(out, p)
		}
	}
	return out
}

func parseLine(line string) (pattern, bool) {
	line = trimTrailingSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return pattern{}, false
	}
	var p pattern
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		p.negate, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.dirOnly, line = true, rest
	}
	if line == "" {
		return pattern{}, false
	}
	p.base = !strings.Contains(line, "/")
	// Braces are plain characters to git but alternatives to the matcher.
	line = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(strings.TrimPrefix(line, "/"))
	// A trailing /** matches what is inside, not the folder itself.
	if rest, ok := strings.CutSuffix(line, "/**"); ok {
		line = rest + "/**/*"
	}
	p.glob = line
	return p, doublestar.ValidatePattern(line)
}

// trimTrailingSpace removes unescaped spaces at the end of a line.
func trimTrailingSpace(s string) string {
	for strings.HasSuffix(s, " ") && !strings.HasSuffix(s, `\ `) {
		s = s[:len(s)-1]
	}
	return s
}
