// Package repomap makes a map of a repository: the most important files and definitions, within a
// budget of tokens.
//
// Lexers read the files (repomap/lang). If a file uses a name that another file defines, the first
// file links to the second. Links for rare names weigh more. A random walk along the links ranks
// files and definitions; it restarts at the requested paths and names (Focus). Tests, generated
// code and vendored code weigh little unless they are requested.
//
// Guarantees: a map depends only on the files, their modification times, the git log and the focus.
// Earlier maps of the same Index do not influence it. A text never exceeds its budget. The text
// lists files by path and has no line numbers, so an edit changes few of its lines and prompt
// caches stay valid. An Index reads only changed files. It needs less memory than the source files
// have bytes. Its cache is outside the repository and can be deleted.
//
// The package follows no symlinks, skips files above 1 MiB and stops after 50,000 files of a
// repository. Each call of Map checks the size and modification time of every file. If
// Options.Files reports the folders that changed since the last map, Map checks only those folders
// and the requested ones.
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
	CacheDir string           // folder for the definitions of files between runs; empty: no cache
	Git      string           // path of the git program that reads the log; empty: no log
	Children *proc.Pool       // starts git; nil starts git without a supervisor
	Workers  int              // number of files that are read in parallel; default: GOMAXPROCS
	Now      func() time.Time // default: time.Now

	Getenv func(string) string // returns the variables that locate git's configuration; default: no variables

	// Files lists the files below a root and marks the folders that changed since an earlier
	// listing (workspace.Finder.Listing). ok is false if no listing is available. An Index calls
	// Files from the second map of a root on: the first map reads all files anyway, and a second
	// walk at the same time would slow it down. If Files is nil, every map walks the tree.
	Files func(ctx context.Context, root string, since workspace.Mark) (l *workspace.Listing, ok bool)
}

// Index holds the definitions and links of the files in some repositories. It is safe for
// concurrent use. The caller must call Close.
type Index struct {
	opts      Options
	languages func() *lang.Languages // created when first needed
	// gitTime is the timeout for git: a special file in a repository, such as a pipe, can block git
	// forever.
	gitTime time.Duration

	mu     sync.Mutex // guards the fields below
	trees  map[string]*tree
	closed bool

	gcMu      sync.Mutex // guards the fields below
	readers   int        // number of readers of whole repositories
	gcPercent int        // the GC percentage to restore
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
	return &Index{opts: o, languages: sync.OnceValue(lang.New), gitTime: 10 * time.Second, trees: map[string]*tree{}}
}

// tree holds the files below one root.
type tree struct {
	root string
	// owner is a lock for the fields below, a channel with capacity 1. A mutex would not do: a
	// caller whose context ends must stop waiting.
	owner chan struct{}

	loaded  bool             // load was called
	dirty   int              // number of files that differ from the cache on disk
	files   map[string]*file // by path relative to root, with slashes
	order   []*file          // the files, sorted by path
	names   names
	mods    *modules // imports between files; nil until the files are linked
	history history
	cut     bool // the root has more than maxFiles files

	// mark identifies the last listing (Options.Files), and dirs has the files of that listing by
	// folder. Both are empty after a walk.
	mark workspace.Mark
	dirs map[string][]*file
}

// file is one file of a tree, with its definitions and links.
type file struct {
	path     string
	size     int64
	mtime    int64 // Unix nanoseconds
	racy     bool  // it was read so soon after mtime that a later change may have the same mtime
	lang     *lang.Language
	role     fileRole
	landmark bool // it is a landmark: not read, and shown by its name
	main     bool // it defines the main function of a program
	defs     []lang.Definition
	uses     lang.Uses

	nameIDs      []int32 // by definition: the number of its name; -1 if other files cannot use the name
	definedNames []int32 // numbers of the names that the file defines, without duplicates, in the order of defs
	refs         []ref   // names that the file uses and other files define

	imports []int32 // its imports, as returned by modules.resolve
}

// shown reports whether maps contain the file.
func (f *file) shown() bool { return f.lang != nil || f.landmark }

// Map returns the map of the repository at root. It fails if ctx ends or if the root cannot be
// read. If ctx ends, the Index keeps the files that it has read so far.
func (x *Index) Map(ctx context.Context, root string, focus Focus) (*Map, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	t := x.tree(root)
	select {
	case t.owner <- struct{}{}:
		defer func() { <-t.owner }()
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

// Text returns the maps of some repositories, in at most the given number of tokens altogether. If
// there are several roots, each map follows a line with its root. Text omits roots that it cannot
// read; if it can read none, it fails.
func (x *Index) Text(ctx context.Context, roots []string, focus Focus, tokens int) (string, error) {
	var out strings.Builder
	var failed error
	maxLen := tokens * bytesPerToken
	for i, root := range roots {
		m, err := x.Map(ctx, root, focus)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			failed = err
			continue
		}
		budget, header := (maxLen-out.Len())/(len(roots)-i), ""
		if len(roots) > 1 {
			header = visible.Name(root) + ":\n"
		}
		if text := m.Text((budget - len(header)) / bytesPerToken); text != "" {
			out.WriteString(header + text)
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
		t = &tree{root: root, owner: make(chan struct{}, 1), files: map[string]*file{}}
		x.trees[root] = t
	}
	return t
}

// Close writes changed trees to the cache on disk, except those that a Map is still using. A closed
// Index can still be used, but no longer writes to the cache.
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
		case t.owner <- struct{}{}:
			x.save(t)
			<-t.owner
		default: // an abandoned Map is still running
		}
	}
}

// collectOften makes garbage collection more frequent until done is called. Reading a whole
// repository produces much garbage; at the normal frequency, it would double the memory in use.
func (x *Index) collectOften() (done func()) {
	const percent = 25
	x.gcMu.Lock()
	defer x.gcMu.Unlock()
	if x.readers++; x.readers == 1 {
		if x.gcPercent = debug.SetGCPercent(percent); x.gcPercent >= 0 && x.gcPercent < percent {
			debug.SetGCPercent(x.gcPercent) // the user has configured a lower value
		}
	}
	return func() {
		x.gcMu.Lock()
		defer x.gcMu.Unlock()
		if x.readers--; x.readers == 0 {
			debug.SetGCPercent(x.gcPercent)
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
