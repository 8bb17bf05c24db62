// Package repomap makes a map of a repository: its files and their definitions, the most important
// first, within a budget of tokens.
//
// Files are read by lexers (repomap/lang). The use in one file of a name that another file defines
// is a link, whose weight grows with the rarity of the name. A random walk along the links, which
// restarts at the requested paths and names (Focus), ranks files and definitions. Tests, generated
// and vendored code count little unless requested.
//
// Guarantees: the map depends only on the files and their times, the repository's log and the
// focus, not on the history of an Index. A text never exceeds its budget. Its files are in the
// order of their paths and it has no line numbers, so that an edit changes few of its lines and
// prompt caches stay valid. An Index reads only changed files. It uses less memory than the
// sources' size; its cache is outside the repository and can be deleted.
//
// It follows no symlinks, reads no file above 1 MiB and no more than 50,000 files of a repository.
// Each Map checks every file's size and time, unless Options.Files knows in which folders something
// has changed since the last map: then it checks only these and the requested ones.
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
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/repomap/lang"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of reading.
const (
	maxFiles = 50_000  // source files of one root; the first ones of a walk
	maxBytes = 1 << 20 // of one file
)

// Options are the options and dependencies of an Index.
type Options struct {
	CacheDir string           // where maps are stored between runs; empty disables that
	Git      string           // the git program to read the log with; empty disables that
	Children *proc.Pool       // starts git; nil starts it without a supervisor
	Workers  int              // files that are read in parallel; default: the number of processors
	Now      func() time.Time // default: time.Now

	Getenv func(string) string // provides the location of git's configuration; default: no variables

	// Files lists the files below a root, and where something changed since an earlier listing
	// (workspace.Finder.Listing); ok is false if that is unknown. It is used from the second map of
	// a root on: the first map reads everything, and should not compete with another walk. Nil
	// means that there are no notifications.
	Files func(ctx context.Context, root string, since workspace.Mark) (l *workspace.Listing, ok bool)
}

// Index has the files of some repositories. It is safe for concurrent use. The caller must call
// Close.
type Index struct {
	opts  Options
	langs func() *lang.Languages // created when first needed
	// gitTime is how long git may take: a file in a repository, such as a pipe, can block it
	// forever.
	gitTime time.Duration

	mu     sync.Mutex // guards the fields below
	trees  map[string]*tree
	closed bool

	collecting sync.Mutex // guards the fields below
	readers    int        // number of readers of whole repositories
	percent    int        // the GC percentage before
}

// New returns an empty Index.
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

// tree has the files below one root.
type tree struct {
	root string
	// turn has one element: its holder owns the fields below. It is a channel so that waiting can
	// end early.
	turn chan struct{}

	loaded bool             // loading the stored form was attempted
	dirty  int              // number of files that are not in the stored form
	files  map[string]*file // by path relative to root, with slashes
	order  []*file          // the same, sorted by path
	names  names
	mods   *modules // imports between files; nil until the files are linked
	log    history
	cut    bool // there are more files than the limit

	// The content of a listing: dirs has the files by folder as of mark. Both are empty after a
	// walk.
	mark workspace.Mark
	dirs map[string][]*file
}

// file is the stored information about one file.
type file struct {
	path  string
	size  int64
	mtime int64 // Unix nanoseconds
	racy  bool  // it was read so soon after mtime that another change may have the same time
	lang  *lang.Language
	role  fileRole
	mark  bool // it is a landmark: not read, and shown by its name
	main  bool // it defines the main function of a program
	defs  []lang.Definition
	uses  lang.Uses

	named []int32 // by definition: number of its name; -1 if other files cannot use it
	own   []int32 // names that it defines, without duplicates, in the order of defs
	refs  []ref   // names that it uses and other files define; see names

	imports []int32 // its imports, as returned by modules.resolve
}

// shown reports whether maps contain the file.
func (f *file) shown() bool { return f.lang != nil || f.mark }

// Map returns the map of the repository at root. The error is that of ctx, or that the root cannot
// be read. If ctx ends early, the files read so far are kept.
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

// Text returns the maps of some repositories in at most the given number of tokens in all, each
// below its root if there are several. Roots that cannot be read are omitted, unless none can be
// read.
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
			head = visible.Name(root) + ":\n"
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

// Close stores all trees. A closed Index can still be used, but stores nothing more.
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
		default: // an abandoned Map is still running
		}
	}
}

// collectOften makes garbage collection more frequent until done is called: reading a whole
// repository produces much garbage and should not double the memory.
func (x *Index) collectOften() (done func()) {
	const percent = 25
	x.collecting.Lock()
	defer x.collecting.Unlock()
	if x.readers++; x.readers == 1 {
		if x.percent = debug.SetGCPercent(percent); x.percent >= 0 && x.percent < percent {
			debug.SetGCPercent(x.percent) // the user has configured a lower value
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

// Forget drops all repositories except the given ones, for example when the workspace changes.
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

// stat returns the size and time of a file; ok is false unless it is a regular file within the size
// limit.
func stat(path string) (size, mtime int64, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxBytes {
		return 0, 0, false
	}
	return info.Size(), info.ModTime().UnixNano(), true
}
