package workspace

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/internal/ignore"
	"github.com/seed-dec29ce4/eca/internal/watch"
)

const (
	unwatchedAge = 5 * time.Second        // maximum age of a walk without change notifications
	watchedAge   = 2 * time.Minute        // maximum age of a walk with notifications
	idleTimeout  = 10 * time.Minute       // time after the last query until the index ends
	quietPeriod  = 50 * time.Millisecond  // pause in the hints after which they are applied
	maxDelay     = 500 * time.Millisecond // maximum time to collect hints
	refreshWait  = 100 * time.Millisecond // how long a query waits for a refresh
)

// snapshot is the immutable state of an index at one time.
type snapshot struct {
	roots    []indexRoot
	folders  []folderInRoot // all folders in one list
	walkedAt time.Time
	watched  bool // changes since then cause notifications
}

// indexRoot is one root of a snapshot.
type indexRoot struct {
	path         string // as the client named it
	resolvedPath string // with links resolved
	containsRoot bool   // contains another root, whose files are listed only there
	folder       *folder
}

// folderInRoot is a folder of a root.
type folderInRoot struct {
	root int
	*folder
}

// index is the index of the files below some roots. One goroutine owns it (run): this goroutine
// walks, receives hints and replaces the snapshot. Queries read the snapshot. Only queries before the
// first snapshot have to wait for a walk.
type index struct {
	id        *indexID
	roots     []string
	limit     int // folders that may be watched
	onWritten func(paths []string)
	now       func() time.Time
	onEnd     func() // called at the end
	cancel    context.CancelFunc

	ready     chan struct{}       // closed with the first snapshot
	done      chan struct{}       // closed at the end
	refresh   chan struct{}       // requests that pending hints are applied, and a walk if the last one is old
	listings  chan listingRequest // requests a listing
	current   atomic.Pointer[snapshot]
	lastQuery atomic.Int64 // time of the last query in Unix nanoseconds
	hints     atomic.Pointer[watch.Tree]
	changeLog changeLog // used only by the owner

	mu   sync.Mutex    // guards next
	next chan struct{} // closed after a refresh
}

// snapshot returns the current snapshot. If a refresh is needed, it waits briefly for it.
func (ix *index) snapshot(ctx context.Context) (*snapshot, error) {
	ix.lastQuery.Store(ix.now().UnixNano())
	select {
	case <-ix.ready:
	case <-ix.done:
		return nil, errEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ix.mu.Lock()
	next := ix.next
	ix.mu.Unlock()
	s := ix.current.Load()
	if !ix.stale(s) {
		return s, nil
	}
	select {
	case ix.refresh <- struct{}{}:
	default:
	}
	timer := time.NewTimer(refreshWait)
	defer timer.Stop()
	select {
	case <-next:
	case <-timer.C:
	case <-ix.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return ix.current.Load(), nil
}

// stale reports whether a refresh is needed before a query is answered.
func (ix *index) stale(s *snapshot) bool {
	if tree := ix.hints.Load(); tree != nil && tree.Pending() {
		return true
	}
	return ix.expired(s)
}

func (ix *index) expired(s *snapshot) bool {
	walkAge := ix.now().Sub(s.walkedAt)
	return s.watched && walkAge >= watchedAge || !s.watched && walkAge >= unwatchedAge
}

// run owns the index until ctx ends or queries stop.
func (ix *index) run(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("the index of the workspace panicked", "panic", p, "stack", string(debug.Stack()))
		}
		ix.unwatch()
		close(ix.done)
		ix.onEnd()
	}()
	if ix.walk(ctx) != nil {
		return
	}
	ix.watch(ctx)
	ix.releaseQueries()
	idle := time.NewTimer(idleTimeout)
	defer idle.Stop()
	for {
		var hinted <-chan struct{}
		if tree := ix.hints.Load(); tree != nil {
			hinted = tree.Changed
		}
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			left := idleTimeout - ix.now().Sub(time.Unix(0, ix.lastQuery.Load()))
			if left <= 0 {
				return
			}
			idle.Reset(left)
		case <-ix.refresh:
			ix.applyHints(ctx)
			ix.walkIfExpired(ctx)
		case w := <-ix.listings:
			ix.answerListing(ctx, w)
		case <-hinted:
			if w, ok := ix.collectHints(ctx, hinted); ok {
				ix.answerListing(ctx, w)
				continue
			}
			ix.applyHints(ctx)
			ix.releaseQueries()
		}
	}
}

// walkIfExpired walks if the last walk is old, and releases the waiting queries.
func (ix *index) walkIfExpired(ctx context.Context) {
	expired := ix.expired(ix.current.Load())
	if expired && ix.walk(ctx) != nil {
		return
	}
	ix.releaseQueries()
	if expired && ix.hints.Load() == nil {
		ix.watch(ctx)
		ix.releaseQueries()
	}
}

// collectHints waits until no hint arrives for quietPeriod, at most maxDelay, or until a caller needs a
// refresh or a listing. It returns the request for a listing, if any.
func (ix *index) collectHints(ctx context.Context, hints <-chan struct{}) (w listingRequest, ok bool) {
	quiet, limit := time.NewTimer(quietPeriod), time.NewTimer(maxDelay)
	defer quiet.Stop()
	defer limit.Stop()
	for {
		select {
		case <-hints:
			quiet.Reset(quietPeriod)
			continue
		case w = <-ix.listings:
			return w, true
		case <-quiet.C:
		case <-limit.C:
		case <-ix.refresh:
		case <-ctx.Done():
		}
		return w, false
	}
}

// walk reads all folders. If a tree is watched, it adds the folders that are not watched yet.
func (ix *index) walk(ctx context.Context) error {
	tree := ix.hints.Load()
	s := &snapshot{walkedAt: ix.now(), watched: tree != nil}
	left := maxEntries
	ix.changeLog.addAll()
	for _, root := range ix.resolvedRoots() {
		sc := ix.scanner(root.resolvedPath, left)
		root.containsRoot = len(sc.skip) > 0
		if tree != nil {
			sc.watch = ix.watchFunc(tree, &s.watched)
		}
		root.folder = &folder{}
		if err := sc.scanBelow(ctx, root.folder); err != nil {
			return err
		}
		left = sc.remaining
		s.roots = append(s.roots, root)
	}
	if tree != nil && !s.watched {
		ix.unwatch()
	}
	ix.publish(s)
	return nil
}

// resolvedRoots returns the roots, each once, with links resolved. It omits missing folders.
func (ix *index) resolvedRoots() []indexRoot {
	var out []indexRoot
	for _, path := range ix.roots {
		top, err := filepath.EvalSymlinks(path)
		if err == nil && !slices.ContainsFunc(out, func(r indexRoot) bool { return r.resolvedPath == top }) {
			out = append(out, indexRoot{path: path, resolvedPath: top})
		}
	}
	return out
}

// scanner returns a scanner that skips other roots. A root inside another root is listed only under
// its own path.
func (ix *index) scanner(top string, left int) *scanner {
	sc := &scanner{top: top, remaining: left, skip: map[string]bool{}}
	for _, r := range ix.resolvedRoots() {
		if r.resolvedPath != top && within(top, r.resolvedPath) {
			sc.skip[r.resolvedPath] = true
		}
	}
	return sc
}

// watchFunc returns a function that adds a folder to a tree. If that fails, the function sets ok to
// false.
func (ix *index) watchFunc(tree *watch.Tree, ok *bool) func(string) {
	var mu sync.Mutex
	failed := false
	return func(dir string) {
		mu.Lock()
		skip := failed
		mu.Unlock()
		if skip || tree.Add(dir) == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		failed, *ok = true, false
	}
}

// watch walks once more, and watches each folder before it reads the folder. If folders cannot be
// watched, the index continues to rely on walks.
func (ix *index) watch(ctx context.Context) {
	s := ix.current.Load()
	if len(s.folders) > ix.limit || len(s.roots) == 0 {
		return
	}
	for _, r := range s.roots {
		if watch.Remote(r.resolvedPath) {
			ix.limit = 0
			return
		}
	}
	tree, err := watch.NewTree(ix.limit, ignore.FileName)
	if err != nil {
		ix.limit = 0
		return
	}
	ix.hints.Store(tree)
	if ix.walk(ctx) == nil && ix.hints.Load() == nil {
		ix.limit = 0 // the system refused, and is unlikely to allow watches soon
	}
}

func (ix *index) unwatch() {
	if tree := ix.hints.Swap(nil); tree != nil {
		tree.Close()
	}
}

// applyHints rereads the folders that the hints name.
func (ix *index) applyHints(ctx context.Context) {
	tree, s := ix.hints.Load(), ix.current.Load()
	if tree == nil {
		return
	}
	h := tree.Take()
	if len(h.Written) > 0 {
		ix.onWritten(h.Written)
	}
	ix.changeLog.add(h.Touched)
	now := *s
	now.roots = slices.Clone(s.roots)
	left := maxEntries
	for _, r := range s.roots {
		left -= r.folder.total()
	}
	changed := false
	for i, r := range now.roots {
		c, lost := r.changes(h.Changed)
		if lost || h.Lost {
			// The next query starts a walk, which watches it.
			ix.unwatch()
			now.watched, now.walkedAt = false, time.Time{}
			ix.publish(&now)
			return
		}
		if len(c) == 0 {
			continue
		}
		sc := ix.scanner(r.resolvedPath, max(left, 0))
		sc.watch = ix.changeLog.recordingWatch(ix.watchFunc(tree, &now.watched))
		f, err := sc.refresh(ctx, r.folder, c, c.withParents())
		if err != nil {
			return // ctx ended
		}
		now.roots[i].folder, left, changed = f, sc.remaining, true
	}
	if !now.watched {
		ix.unwatch()
		ix.limit = 0
	}
	if changed {
		ix.publish(&now)
	}
}

// changes returns the folders to read again after the given paths appeared or disappeared. lost
// means that all folders have to be read again.
func (r indexRoot) changes(paths map[string]bool) (c changes, lost bool) {
	c = changes{}
	for path := range paths {
		if path == r.resolvedPath {
			return nil, true
		}
		if !within(r.resolvedPath, path) {
			continue
		}
		rel, err := filepath.Rel(r.resolvedPath, path)
		if err != nil {
			continue
		}
		rel = filepath.ToSlash(rel)
		dir, name := "", rel
		if i := strings.LastIndexByte(rel, '/'); i >= 0 {
			dir, name = rel[:i+1], rel[i+1:]
		}
		switch {
		case name == ".git":
			return nil, true
		case name == ignore.FileName:
			c[dir] = true
		case !c[dir]:
			c[dir] = false
		}
		if r.folder.find(rel+"/") != nil {
			c[rel+"/"] = true // another folder may have taken its place
		}
	}
	return c, false
}

// find returns a folder below this one by its path, which ends with a slash. It returns nil if
// there is no such folder.
func (f *folder) find(rel string) *folder {
	for f != nil && f.text.plain != rel {
		rest := rel[len(f.text.plain):]
		want := f.text.plain + rest[:strings.IndexByte(rest, '/')+1]
		i, ok := slices.BinarySearchFunc(f.subs, want, func(sub *folder, path string) int { return compareNames(sub.text.plain, path) })
		if !ok {
			return nil
		}
		f = f.subs[i]
	}
	return f
}

// publish replaces the current snapshot.
func (ix *index) publish(s *snapshot) {
	s.folders = nil
	for i, r := range s.roots {
		s.folders = r.folder.appendTo(i, s.folders)
	}
	if ix.current.Swap(s) == nil {
		close(ix.ready)
	}
}

// releaseQueries releases the waiting queries.
func (ix *index) releaseQueries() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	close(ix.next)
	ix.next = make(chan struct{})
}

// appendTo appends a folder and all folders below it.
func (f *folder) appendTo(root int, out []folderInRoot) []folderInRoot {
	out = append(out, folderInRoot{root, f})
	for _, sub := range f.subs {
		out = sub.appendTo(root, out)
	}
	return out
}

// errEnded is the error of an index that ended before its first walk was complete.
var errEnded = errors.New("the workspace is closed")
