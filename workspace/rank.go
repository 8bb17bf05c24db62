package workspace

import (
	"cmp"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// match is an entry that matches a query, with its quality.
type match struct {
	quality
	recent int // rank among the files in use: 0 is the most recently used, maxRecent means not in use
	root   int
	dir    bool
	folder *folder // that contains it
	name   string
}

func (m *match) compare(o *match) int {
	return cmp.Or(
		cmp.Compare(m.kind, o.kind), cmp.Compare(m.recent, o.recent), cmp.Compare(m.at, o.at), cmp.Compare(m.length, o.length),
		compareJoined(m.folder.text.plain, m.name, o.folder.text.plain, o.name), cmp.Compare(m.root, o.root),
	)
}

// compareJoined compares a1+a2 with b1+b2.
func compareJoined(a1, a2, b1, b2 string) int {
	if a1 == "" {
		a1, a2 = a2, ""
	}
	if b1 == "" {
		b1, b2 = b2, ""
	}
	for a1 != "" && b1 != "" {
		n := min(len(a1), len(b1))
		if c := strings.Compare(a1[:n], b1[:n]); c != 0 {
			return c
		}
		if a1 = a1[n:]; a1 == "" {
			a1, a2 = a2, ""
		}
		if b1 = b1[n:]; b1 == "" {
			b1, b2 = b2, ""
		}
	}
	return cmp.Compare(len(a1)+len(a2), len(b1)+len(b2))
}

// topMatches collects the best matches. A short query matches most files of a large workspace, so
// topMatches sorts only when it has twice as many matches as it needs.
type topMatches struct {
	size    int
	matches []match
	full    bool // matches[size-1] is the worst match that counts
}

func (t *topMatches) add(m match) {
	if t.full && m.compare(&t.matches[t.size-1]) > 0 {
		return
	}
	if t.matches = append(t.matches, m); len(t.matches) == 2*t.size {
		t.trim()
	}
}

func (t *topMatches) trim() {
	slices.SortFunc(t.matches, func(a, b match) int { return a.compare(&b) })
	if len(t.matches) >= t.size {
		t.matches, t.full = t.matches[:t.size], true
	}
}

// kindLimit returns the best kind of match that is too bad to be added.
func (t *topMatches) kindLimit() int {
	if !t.full {
		return noMatch
	}
	return t.matches[t.size-1].kind + 1
}

// location is where an entry is.
type location struct {
	folder *folder
	name   string
}

// bestMatches returns the best matches, in order. inUse are absolute paths, the most recently used first.
func bestMatches(s *snapshot, q query, inUse []string) []Found {
	final := topMatches{size: maxFound}
	used := map[location]bool{}
	m := matcher{query: q, kindLimit: noMatch}
	for recent, path := range inUse {
		root, f, i, ok := s.file(path)
		if !ok {
			continue
		}
		name := f.file(i)
		used[location{f, name.plain}] = true
		m.setFolder(f)
		if quality, ok := m.match(name, false); ok {
			final.add(match{quality: quality, recent: recent, root: root, folder: f, name: name.plain})
		}
	}
	for _, t := range s.match(q, maxFound+len(used)) {
		for _, m := range t.matches {
			if m.dir || !used[location{m.folder, m.name}] {
				final.add(m)
			}
		}
	}
	final.trim()
	out := make([]Found, 0, len(final.matches))
	for _, m := range final.matches {
		path := filepath.Join(s.roots[m.root].path, filepath.FromSlash(m.folder.text.plain+m.name))
		out = append(out, Found{Path: path, Dir: m.dir})
	}
	return out[:min(len(out), maxFound)]
}

// match searches all folders, several at the same time.
func (s *snapshot) match(q query, size int) []topMatches {
	const minFolders = 256 // least number of folders per goroutine
	workers := max(1, min(runtime.GOMAXPROCS(0), len(s.folders)/minFolders))
	tops := make([]topMatches, workers)
	var next atomic.Int64
	search := func(t *topMatches) {
		t.size = size
		m := matcher{query: q}
		const batch = 64
		for {
			from := int(next.Add(batch)) - batch
			if from >= len(s.folders) {
				return
			}
			for _, p := range s.folders[from:min(from+batch, len(s.folders))] {
				m.kindLimit = t.kindLimit()
				m.addMatches(p, t)
			}
		}
	}
	var running sync.WaitGroup
	for i := range tops[1:] {
		running.Go(func() { search(&tops[i+1]) })
	}
	search(&tops[0])
	running.Wait()
	return tops
}

// addMatches adds the matches directly in a folder to t.
func (m *matcher) addMatches(p folderInRoot, t *topMatches) {
	m.setFolder(p.folder)
	add := func(name text, dir bool) {
		if q, ok := m.match(name, dir); ok {
			t.add(match{quality: q, recent: maxRecent, root: p.root, dir: dir, folder: p.folder, name: name.plain})
		}
	}
	for i := range p.ends {
		add(p.file(i), false)
	}
	for _, sub := range p.subs {
		add(sub.text.name(), true)
	}
}

// file finds a file by its path.
func (s *snapshot) file(path string) (root int, f *folder, i int, ok bool) {
	for root, r := range s.roots {
		for _, top := range []string{r.path, r.resolvedPath} {
			if !within(top, path) {
				continue
			}
			rel, err := filepath.Rel(top, path)
			if err != nil {
				continue
			}
			rel = filepath.ToSlash(rel)
			at := strings.LastIndexByte(rel, '/') + 1
			f := r.folder.find(rel[:at])
			if f == nil {
				continue
			}
			i := sort.Search(len(f.ends), func(i int) bool { return f.file(i).plain >= rel[at:] })
			if i < len(f.ends) && f.file(i).plain == rel[at:] {
				return root, f, i, true
			}
		}
	}
	return 0, nil, 0, false
}
