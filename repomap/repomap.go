// Package repomap makes a map of a repository: its files and what they define, the most
// telling first, in as many tokens as there are for it.
//
// Files are read by lexers (repomap/lang). A name that one file uses and another defines is a link,
// which weighs more the rarer the name is; a walk along the links, which begins again and again at
// what is asked for (Focus), ranks files and definitions. Tests, generated and vendored code count
// little unless asked for.
//
// Guarantees: the map depends on nothing but the files and their times, the repository's log and
// the focus, in whichever way an Index came to know them. A text is never longer than its budget.
// Its files are in the order of their names and there are no numbers of lines in it, so that an
// edit changes few of its lines and prompt caches hold. An Index reads only what changed. Its
// memory takes less space than the sources do; its cache is outside of the repository, and
// nothing but time is lost with it.
//
// It follows no links, reads no file above 1 MiB and no more than 50,000 files of a
// repository. Each Map looks at every file's size and time, unless Options.Files knows in
// which folders something happened since the last one: then it looks there, and at what is
// asked for.
package repomap

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/repomap/lang"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of what is read.
const (
	maxFiles = 50_000  // source files of one root; those that come first in a walk
	maxBytes = 1 << 20 // of one file
)

// Options are the surroundings of an Index.
type Options struct {
	CacheDir string           // where maps are kept between runs; empty: nowhere
	Git      string           // the program that is asked for the log; empty: the log is not used
	Children *proc.Pool       // starts git; nil: without a supervisor
	Workers  int              // files that are read at once; default: the processors
	Now      func() time.Time // default: time.Now

	Getenv func(string) string // says where git's configuration is; default: no variables

	// Files tells what lies below a root and where something happened since an earlier
	// answer (workspace.Finder.Listing); ok is false where it does not know. It is asked from
	// the second map of a root on: the first one reads everything, and is not to share the
	// processors with somebody who walks too. Nil: no notifications.
	Files func(ctx context.Context, root string, since workspace.Mark) (l *workspace.Listing, ok bool)
}

// Index knows the files of some repositories. It is safe for concurrent use. Close must be
// called.
type Index struct {
	opts  Options
	langs func() *lang.Languages // made when first needed
	// gitTime is how long git may take: files of a repository can make it wait forever.
	gitTime time.Duration

	mu     sync.Mutex // guards what follows
	trees  map[string]*tree
	closed bool

	collecting sync.Mutex // guards what follows
	readers    int        // that read a whole repository
	percent    int        // of garbage that was allowed before
}

// New returns an Index that knows nothing yet.
func New(o Options) *Index {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	return &Index{opts: o, langs: sync.OnceValue(lang.New), gitTime: 10 * time.Second, trees: map[string]*tree{}}
}

// tree is what is known of the files below one root.
type tree struct {
	root string
	// turn has one place: who holds it owns what follows. It is a channel, so that a wait
	// can end early.
	turn chan struct{}

	loaded bool             // the stored form was looked for
	dirty  int              // files that the stored form does not have
	files  map[string]*file // by path relative to root, with slashes
	order  []*file          // the same, sorted by path
	names  names
	mods   *modules // how files import each other; nil until they are linked
	log    history
	cut    bool // there are more files than are read

	// The content of a listing: dirs has the files by their folders as of mark. Both are empty
	// after a walk.
	mark workspace.Mark
	dirs map[string][]*file
}

// file is what is known of one file.
type file struct {
	path  string
	size  int64
	mtime int64 // Unix nanoseconds
	racy  bool  // it was read so soon after mtime that another change may have the same
	lang  *lang.Language
	role  fileRole
	mark  bool // it is a landmark: not read, and shown for its name
	main  bool // a program begins in it
	defs  []lang.Definition
	uses  lang.Uses

	named []int32 // by definition: its name; -1 if it has none that others use
	own   []int32 // names it defines, in the order of defs, each once
	refs  []ref   // names it uses that other files define; see names

	imports []int32 // what it imports, as modules.resolve returns it
}

// shown says whether maps have the file.
func (f *file) shown() bool { return f.lang != nil || f.mark }

// Map returns the map of the repository at root. The error is that of ctx, or that the
// root cannot be read. When ctx ends early, what was read by then is kept.
func (x *Index) Map(ctx context.Context, root string, focus Focus) (*Map, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	t := x.tree(root)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !t.loaded {
		defer x.collectOften()()
	}
	if err := x.update(ctx, t, focus); err != nil {
		return nil, err
	}
	return t.rank(focus), nil
}

// Text returns the maps of some repositories in at most so many tokens together, each below
// its root if there are several. Roots that cannot be read are left out, unless none can.
func (x *Index) Text(ctx context.Context, roots []string, focus Focus, tokens int) (string, error) {
	var out strings.Builder
	var failed error
	room := tokens * bytesPerToken
	for i, root := range roots {
		m, err := x.Map(ctx, root, focus)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			failed = err
			continue
		}
		share, head := (room-out.Len())/(len(roots)-i), ""
		if len(roots) > 1 {
			head = root + ":\n"
		}
		if text := m.Text((share - len(head)) / bytesPerToken); text != "" {
			out.WriteString(head + text)
		}
	}
	if out.Len() == 0 {
		return "", failed
	}
	return out.String(), nil
}

func (x *Index) tree(root string) *tree {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.trees[root]
	if t == nil {
		t = &tree{root: root, turn: make(chan struct{}, 1), files: map[string]*file{}}
		x.trees[root] = t
	}
	return t
}

// Close stores what is known, and waits for that. An Index that is closed can still be
// used, and stores nothing more.
func (x *Index) Close() {
	x.mu.Lock()
	var trees []*tree
	if !x.closed {
		for _, t := range x.trees {
			trees = append(trees, t)
		}
	}
	x.closed = true
	x.mu.Unlock()
	for _, t := range trees {
		select {
		case t.turn <- struct{}{}:
			x.save(t)
			<-t.turn
		default: // a Map goes on that no caller waits for
		}
	}
}

// collectOften has garbage collected sooner until done is called: of all that is made while a
// whole repository is read little is kept, and memory should not have twice that.
func (x *Index) collectOften() (done func()) {
	const percent = 25
	x.collecting.Lock()
	defer x.collecting.Unlock()
	if x.readers++; x.readers == 1 {
		if x.percent = debug.SetGCPercent(percent); x.percent >= 0 && x.percent < percent {
			debug.SetGCPercent(x.percent) // the user wants less
		}
	}
	return func() {
		x.collecting.Lock()
		defer x.collecting.Unlock()
		if x.readers--; x.readers == 0 {
			debug.SetGCPercent(x.percent)
		}
	}
}

// Forget drops what is known of repositories but the given ones, as when the workspace
// changes.
func (x *Index) Forget(keep []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	roots := map[string]bool{}
	for _, k := range keep {
		if abs, err := filepath.Abs(k); err == nil {
			roots[abs] = true
		}
	}
	for root := range x.trees {
		if !roots[root] {
			delete(x.trees, root)
		}
	}
}

// stat returns what is known of a file from outside; ok is false unless it is a regular
// file of a size that is read.
func stat(path string) (size, mtime int64, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxBytes {
		return 0, 0, false
	}
	return info.Size(), info.ModTime().UnixNano(), true
}
