package workspace

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kinds of matches, best first.
const (
	namePrefix = iota // the name begins with the query
	nameInside        // the name contains it
	pathInside        // only the path does
)

// match says how well an entry answers a query; lower is better in every field.
type match struct {
	kind   int
	at     int // where the query is found: in the name, or in the path
	length int // of the path
	*entry
}

func (m match) compare(o match) int {
	return cmp.Or(
		cmp.Compare(m.kind, o.kind), cmp.Compare(m.at, o.at), cmp.Compare(m.length, o.length),
		cmp.Compare(m.rel, o.rel), cmp.Compare(m.root, o.root),
	)
}

// judge matches an entry with a query in lower case. Without one, every file matches
// and no folder does: those nearest to the root come first.
func judge(e *entry, query string) (match, bool) {
	if query == "" {
		return match{at: strings.Count(e.rel, "/"), entry: e}, !e.dir
	}
	at := strings.Index(e.lower, query)
	if at < 0 {
		return match{}, false
	}
	m := match{kind: pathInside, at: at, length: len(e.rel), entry: e}
	if i := strings.Index(e.lower[strings.LastIndexByte(e.lower, '/')+1:], query); i >= 0 {
		m.kind, m.at = nameInside, i
		if i == 0 {
			m.kind = namePrefix
		}
	}
	return m, true
}

// best returns the best matches, in order. It sorts no more than it must: a short
// query matches most of a large workspace.
func best(entries []entry, query string) []Found {
	var top []match
	full := false // top[maxFound-1] is the worst that still counts
	keep := func() {
		slices.SortFunc(top, match.compare)
		if len(top) >= maxFound {
			top, full = top[:maxFound], true
		}
	}
	for i := range entries {
		m, ok := judge(&entries[i], query)
		if !ok || full && m.compare(top[maxFound-1]) > 0 {
			continue
		}
		if top = append(top, m); len(top) == 2*maxFound {
			keep()
		}
	}
	keep()
	out := make([]Found, len(top))
	for i, m := range top {
		out[i] = Found{Path: filepath.Join(m.root, filepath.FromSlash(m.rel)), Dir: m.dir}
	}
	return out
}

// isPath says whether a query names a folder instead of searching.
func isPath(query string) bool {
	for _, prefix := range []string{"/", "~", "./", "../"} {
		if strings.HasPrefix(query, prefix) {
			return true
		}
	}
	return filepath.IsAbs(query)
}

// maxListed bounds how many entries of one folder are looked at.
const maxListed = 50_000

// list returns what is in the folder that a query names, hidden and ignored entries
// too, folders first. If it names none, its last name is a prefix of what it asks for.
func list(roots []string, query string) []Found {
	query = filepath.ToSlash(query)
	cut := strings.LastIndexByte(query, '/') + 1
	dir, prefix := Abs(roots, query[:cut]), strings.ToLower(query[cut:])
	// "/a/." is on its way to "/a/.git".
	if full := Abs(roots, query); prefix != "." && isDir(full) {
		dir, prefix = full, ""
	}
	if !isDir(dir) {
		return nil // opening anything else may block
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxListed) // what can be read counts
	var dirs, files []Found
	for _, e := range entries {
		if !strings.HasPrefix(strings.ToLower(e.Name()), prefix) {
			continue
		}
		f := Found{Path: filepath.Join(dir, e.Name())}
		if f.Dir = e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDir(f.Path); f.Dir {
			dirs = append(dirs, f)
		} else {
			files = append(files, f)
		}
	}
	byName := func(a, b Found) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Path), strings.ToLower(b.Path)), cmp.Compare(a.Path, b.Path))
	}
	slices.SortFunc(dirs, byName)
	slices.SortFunc(files, byName)
	out := append(dirs, files...)
	return out[:min(len(out), maxFound)]
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
