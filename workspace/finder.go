package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxFound   = 100             // results of a query (eca-protocol 4.7)
	maxEntries = 200_000         // entries a Finder holds
	listingAge = 5 * time.Second // how long a listing answers queries
)

// Found is a file or folder that answers a query.
type Found struct {
	Path string // absolute
	Dir  bool
}

// Finder answers what a user types to name a file. It is safe for concurrent use;
// the zero value is ready.
//
// One walk serves all queries of the next seconds, so that only the first keystroke
// pays for it; then its memory is given back.
type Finder struct {
	mu      sync.Mutex // guards what follows
	current *listing   // the newest walk, going on or fresh; nil if there is none
}

// listing is what a walk of some roots finds.
type listing struct {
	roots   []string
	cancel  context.CancelFunc
	waiting int // queries that wait for it; guarded by Finder.mu

	done    chan struct{} // closed when what follows is set
	entries []entry
	err     error
}

// entry is one file or folder below a root.
type entry struct {
	root  string
	rel   string // with slashes
	lower string // rel in lower case
	dir   bool
}

// Find returns at most 100 files and folders, best first, in an order that depends on
// nothing but the files (eca-protocol 4.7). A query that begins with `/`, `~`, `./` or
// `../` lists that folder, or what in it begins with the last name; relative ones are
// below the first root. Any other is a part, in any case, of a path below a root. The
// error is that of a ctx that ended.
func (f *Finder) Find(ctx context.Context, roots []string, query string) ([]Found, error) {
	query = strings.TrimSpace(query)
	if isPath(query) {
		return list(roots, query), ctx.Err()
	}
	entries, err := f.entries(ctx, roots)
	if err != nil {
		return nil, err
	}
	return best(entries, strings.ToLower(query)), nil
}

// entries returns what is below the roots. Queries share a walk; it ends early when
// none of them waits for it any more.
func (f *Finder) entries(ctx context.Context, roots []string) ([]entry, error) {
	f.mu.Lock()
	l := f.current
	if l == nil || !slices.Equal(l.roots, roots) {
		l = f.start(roots)
		f.current = l
	}
	l.waiting++
	f.mu.Unlock()
	defer f.leave(l)
	select {
	case <-l.done:
		return l.entries, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *Finder) start(roots []string) *listing {
	ctx, cancel := context.WithCancel(context.Background())
	l := &listing{roots: slices.Clone(roots), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer cancel()
		defer close(l.done)
		defer func() {
			if p := recover(); p != nil {
				l.err = fmt.Errorf("listing the workspace panicked: %v", p)
			}
			time.AfterFunc(listingAge, func() { f.forget(l) })
		}()
		l.entries, l.err = collect(ctx, l.roots, maxEntries)
	}()
	return l
}

// leave ends a query's wait.
func (f *Finder) leave(l *listing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.waiting--
	select {
	case <-l.done:
	default:
		if l.waiting == 0 {
			l.cancel()
			if f.current == l {
				f.current = nil
			}
		}
	}
}

func (f *Finder) forget(l *listing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == l {
		f.current = nil
	}
}

// collect walks the roots. One that can not be read is left out; one inside another
// is listed under its own name only.
func collect(ctx context.Context, roots []string, limit int) ([]entry, error) {
	var out []entry
	for i, root := range roots {
		if slices.Contains(roots[:i], root) {
			continue
		}
		_ = Walk(ctx, root, func(file File) error {
			switch {
			case len(out) == limit:
				return filepath.SkipAll
			case file.Dir && slices.Contains(roots, file.Path):
				return filepath.SkipDir
			}
			out = append(out, entry{root: root, rel: file.Rel, lower: strings.ToLower(file.Rel), dir: file.Dir})
			return nil
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}
