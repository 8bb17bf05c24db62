package workspace

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxEntries is the maximum number of entries of an index, about 80 bytes each.
const maxEntries = 1_500_000

// scanner reads the folders below one root.
type scanner struct {
	top       string              // the root with links resolved
	skip      map[string]bool     // folders that are other roots
	remaining int                 // how many more entries fit
	watch     func(folder string) // called before a folder is read; may be nil
}

// path returns the absolute path of a folder.
func (s *scanner) path(f *folder) string {
	return filepath.Join(s.top, filepath.FromSlash(f.text.plain))
}

// scanBelow fills a folder and all folders below it, level by level. If not all entries fit, the
// deepest ones are missing. It fails only if ctx ends.
func (s *scanner) scanBelow(ctx context.Context, top *folder) error {
	level := []*folder{top}
	for len(level) > 0 {
		s.readAll(ctx, level)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var next []*folder
		for _, f := range level {
			if s.remaining -= f.entries(); s.remaining < 0 {
				f.truncate(-s.remaining)
				s.remaining = 0
			}
			next = append(next, f.subs...)
		}
		level = next
	}
	return nil
}

// truncate removes the entries that do not fit.
func (f *folder) truncate(n int) {
	drop := min(n, len(f.subs))
	f.subs = f.subs[:len(f.subs)-drop]
	keep := len(f.ends) - (n - drop)
	f.ends, f.masks = f.ends[:keep], f.masks[:keep]
}

// readAll fills folders, several at the same time.
func (s *scanner) readAll(ctx context.Context, level []*folder) {
	var next atomic.Int64
	var panicked atomic.Pointer[any]
	read := func() {
		defer func() {
			if p := recover(); p != nil {
				panicked.Store(&p)
			}
		}()
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(level) {
				return
			}
			s.read(level[i])
		}
	}
	const minFolders = 4 // least number of folders per goroutine
	workers := min(runtime.GOMAXPROCS(0), len(level)/minFolders)
	var running sync.WaitGroup
	for range workers - 1 {
		running.Go(read)
	}
	read()
	running.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p) // on the caller's goroutine, which recovers
	}
}

// read fills one folder. An unreadable folder is empty.
func (s *scanner) read(f *folder) {
	path := s.path(f)
	if s.watch != nil {
		s.watch(path) // first, so that entries created during the read are not missed
	}
	entries, rules, _ := readFolder(path, f.outerRules)
	f.fill(entries, rules)
	if len(s.skip) > 0 {
		f.subs = slices.DeleteFunc(f.subs, func(sub *folder) bool { return s.skip[s.path(sub)] })
	}
}

// changes are the folders of a root to read again, by their relative paths with a final slash. The
// value is true if all folders below have to be read again too.
type changes map[string]bool

// withParents returns the changed folders and all of their parents.
func (c changes) withParents() map[string]bool {
	out := map[string]bool{}
	for rel := range c {
		for !out[rel] {
			out[rel] = true
			rel = parent(rel)
		}
	}
	return out
}

// parent returns the parent of a folder; the root is its own parent.
func parent(rel string) string {
	for i := len(rel) - 2; i >= 0; i-- {
		if rel[i] == '/' {
			return rel[:i+1]
		}
	}
	return ""
}

// refresh returns the folder after some changes. It shares the unchanged parts with f.
// toVisit is the result of changed.withParents.
func (s *scanner) refresh(ctx context.Context, f *folder, changed changes, toVisit map[string]bool) (*folder, error) {
	if !toVisit[f.text.plain] {
		return f, nil
	}
	all, read := changed[f.text.plain]
	now := *f
	if read {
		now = folder{text: f.text, outerRules: f.outerRules}
		if all {
			s.remaining += f.total()
			return &now, s.scanBelow(ctx, &now)
		}
		s.remaining += f.entries()
		s.read(&now)
		if s.remaining -= now.entries(); s.remaining < 0 {
			now.truncate(-s.remaining)
			s.remaining = 0
		}
	}
	now.subs = slices.Clone(now.subs)
	for i, sub := range now.subs {
		old, known := slices.BinarySearchFunc(f.subs, sub, func(a, b *folder) int { return compareNames(a.text.plain, b.text.plain) })
		var err error
		switch {
		case read && !known:
			err = s.scanBelow(ctx, sub)
		default:
			now.subs[i], err = s.refresh(ctx, f.subs[old], changed, toVisit)
		}
		if err != nil {
			return nil, err
		}
	}
	return &now, nil
}

// compareNames orders folders as their parent lists them: by name, without the slash.
func compareNames(a, b string) int {
	return strings.Compare(a[:len(a)-1], b[:len(b)-1])
}

// total counts the files and folders below the folder.
func (f *folder) total() int {
	n := f.entries()
	for _, sub := range f.subs {
		n += sub.total()
	}
	return n
}
