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
	maxFound  = 100 // results of a query (eca-protocol 4.7)
	maxRecent = 50  // files that are remembered as in use
)

// Found is a file or folder that answers a query.
type Found struct {
	Path string // absolute
	Dir  bool
}

// Finder answers what a user types to name a file. It is safe for concurrent use; the zero
// value is ready, and Close must be called.
//
// The first query has the roots walked. The result is kept, and kept up to date, as long
// as queries come; ten minutes after the last one its memory and its watches are given back.
type Finder struct {
	mu      sync.Mutex // guards what follows
	current *index     // of the roots last asked for; may be nil
	recent  []string   // absolute paths of files in use, the last one last
	closed  bool
	running sync.WaitGroup

	watchLimit int // for tests; 0 is watch.TreeLimit
}

// Find returns at most 100 files and folders, best first, in an order that depends on
// nothing but the files and which of them are in use (eca-protocol 4.7). A query that
// begins with `/`, `~`, `./` or `../` lists that folder, or what in it begins with the last
// name; relative ones are below the first root. Any other is looked for, in any case, in
// the paths below the roots. The error is that of a ctx that ended, or says that the Finder
// is closed.
func (f *Finder) Find(ctx context.Context, roots []string, query string) ([]Found, error) {
	query = strings.TrimSpace(query)
	if isPath(query) {
		return list(roots, query), ctx.Err()
	}
	const attempts = 3 // an index ends when other roots are asked for
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
		return best(s, newQuery(query), f.inUse()), nil
	}
	return nil, errEnded
}

// Touch says that files are in use: they come first among those that match equally well.
// Paths are absolute; the last one counts most.
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

// Close gives back what the Finder holds. Queries fail from then on.
func (f *Finder) Close() {
	f.mu.Lock()
	f.closed = true
	if f.current != nil {
		f.current.cancel()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// index returns the index of some roots. It takes the place of that of others.
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
		name: new(name), roots: slices.Clone(roots), limit: limit, now: time.Now, cancel: cancel, noted: func(paths []string) { f.Touch(paths...) },
		ready: make(chan struct{}), done: make(chan struct{}), refresh: make(chan struct{}, 1), wanted: make(chan wanted), next: make(chan struct{}),
	}
	ix.asked.Store(time.Now().UnixNano())
	ix.ended = func() { f.forget(ix) }
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
