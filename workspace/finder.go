package workspace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/watch"
)

const (
	maxFound  = 100 // results of a query (eca-protocol.md 4.7)
	maxRecent = 50  // files in use that are remembered
)

// Found is a file or folder that matches a query.
type Found struct {
	Path string // absolute
	Dir  bool
}

// Finder finds files by the text that a user types. It is safe for concurrent use. The zero value is
// ready to use. The caller must call Close.
//
// The first query walks the roots and creates an index, which is kept up to date while queries
// arrive. Ten minutes after the last query, the Finder releases the memory and the watches of the
// index.
type Finder struct {
	mu      sync.Mutex // guards the fields below
	current *index     // of the roots of the last query; may be nil
	recent  []string   // absolute paths of files in use, the last one last
	closed  bool
	running sync.WaitGroup

	watchLimit int // for tests; 0 is watch.TreeLimit
}

// Find returns at most 100 files and folders, best first. The order depends only on the files and on
// the files in use (eca-protocol.md 4.7). A query that begins with `/`, `~`, `./` or `../` is a path:
// Find lists that folder, or the entries of its parent that begin with the last name. Relative paths
// start at the first root. Other queries search the paths below the roots, ignoring case. Find fails
// if ctx ends or the Finder is closed.
func (f *Finder) Find(ctx context.Context, roots []string, query string) ([]Found, error) {
	query = strings.TrimSpace(query)
	if isPath(query) {
		return listPath(roots, query), ctx.Err()
	}
	const attempts = 3 // a concurrent query with other roots ends the index
	for range attempts {
		ix, err := f.index(roots)
		if err != nil {
			return nil, err
		}
		s, err := ix.snapshot(ctx)
		switch {
		case errors.Is(err, errEnded):
			continue
		case err != nil:
			return nil, err
		}
		return bestMatches(s, newQuery(query), f.inUse()), nil
	}
	return nil, errEnded
}

// Touch marks files as in use. They come first among equally good matches; the last one ranks
// highest. Paths are absolute.
func (f *Finder) Touch(paths ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range paths {
		f.recent = append(slices.DeleteFunc(f.recent, func(r string) bool { return r == p }), p)
	}
	f.recent = f.recent[max(0, len(f.recent)-maxRecent):]
}

// inUse returns the files in use, the last one first.
func (f *Finder) inUse() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.recent)
	slices.Reverse(out)
	return out
}

// Close releases the index. Later queries fail.
func (f *Finder) Close() {
	f.mu.Lock()
	f.closed = true
	if f.current != nil {
		f.current.cancel()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// index returns the index of the given roots. It replaces an index of other roots.
func (f *Finder) index(roots []string) (*index, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errEnded
	}
	if f.current != nil {
		if slices.Equal(f.current.roots, roots) {
			return f.current, nil
		}
		f.current.cancel()
	}
	limit := f.watchLimit
	if limit == 0 {
		limit = watch.TreeLimit()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ix := &index{
		id: new(indexID), roots: slices.Clone(roots), limit: limit, now: time.Now, cancel: cancel, onWritten: func(paths []string) { f.Touch(paths...) },
		ready: make(chan struct{}), done: make(chan struct{}), refresh: make(chan struct{}, 1), listings: make(chan listingRequest), next: make(chan struct{}),
	}
	ix.lastQuery.Store(time.Now().UnixNano())
	ix.onEnd = func() { f.forget(ix) }
	f.current = ix
	f.running.Go(func() { ix.run(ctx) })
	return ix, nil
}

func (f *Finder) forget(ix *index) {
	ix.cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == ix {
		f.current = nil
	}
}
