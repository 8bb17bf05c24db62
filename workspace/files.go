package workspace

import (
	"context"
	"iter"
	"path/filepath"
	"strings"
	"sync"
)

// Listing is an immutable list of the files below one root. It contains the files that Walk
// visits.
type Listing struct {
	folder  *folder
	all     bool            // any folder may have changed
	changed map[string]bool // changed folders, by Folder.Path
	mark    Mark
}

// Mark identifies the time of a listing. The zero Mark precedes all others.
type Mark struct {
	index   *indexID // identifies the index, but does not keep it in memory
	version uint64
}

// indexID identifies an index by its own address. It has a field because values of size zero may share
// an address.
type indexID struct{ _ byte }

// Folder is one folder of a listing.
type Folder struct {
	Path string // relative to the root, with slashes and one at the end; empty for the root
	// Changed reports that the folder or a file directly in it may have changed since the mark.
	// Changes in subfolders do not count.
	Changed bool
	folder  *folder
}

// Mark returns the mark that later listings can be compared with.
func (l *Listing) Mark() Mark { return l.mark }

// Folders visits all folders, parents before their children.
func (l *Listing) Folders() iter.Seq[Folder] {
	return func(yield func(Folder) bool) { l.visit(l.folder, yield) }
}

func (l *Listing) visit(f *folder, yield func(Folder) bool) bool {
	if !yield(Folder{Path: f.text.plain, Changed: l.all || l.changed[f.text.plain], folder: f}) {
		return false
	}
	for _, sub := range f.subs {
		if !l.visit(sub, yield) {
			return false
		}
	}
	return true
}

// Names visits the names of the folder's files in lexical order. They include links, devices and
// similar files.
func (f Folder) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.folder.ends {
			if !yield(f.folder.file(i).plain) {
				return
			}
		}
	}
}

// Listing lists the files below root, which must be one of the roots, and marks the folders that
// changed since an earlier listing. It includes all changes made before the call, which requires
// ordered change notifications. If they are unavailable or take too long, ok is false and the caller
// has to walk. The first call starts building the index. Files in use (Touch) count as changed.
//
// Some changes, such as writes through memory maps, cause no notification; only a walk finds them.
// Listing therefore starts a walk if the last one is older than two minutes.
func (f *Finder) Listing(ctx context.Context, roots []string, root string, since Mark) (l *Listing, ok bool) {
	ix, err := f.index(roots)
	if err != nil {
		return nil, false
	}
	if l = ix.requestListing(ctx, root, since); l == nil {
		return nil, false
	}
	for _, path := range f.inUse() {
		if rel, ok := strings.CutPrefix(path, root+string(filepath.Separator)); ok {
			l.changed[parent(filepath.ToSlash(rel))] = true
		}
	}
	return l, true
}

// listingRequest is a request for a listing.
type listingRequest struct {
	root   string
	since  Mark
	answer chan *Listing // buffered; receives nil if there is no listing
}

// requestListing requests a listing from the goroutine that owns the index, after all hints about earlier
// changes have arrived.
func (ix *index) requestListing(ctx context.Context, root string, since Mark) *Listing {
	ix.lastQuery.Store(ix.now().UnixNano())
	select {
	case <-ix.ready:
	default:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, refreshWait)
	defer cancel()
	if tree := ix.hints.Load(); tree != nil && !tree.Sync(ctx) {
		return nil
	}
	w := listingRequest{root, since, make(chan *Listing, 1)}
	select {
	case ix.listings <- w:
	case <-ix.done:
		return nil
	case <-ctx.Done():
		return nil
	}
	select {
	case l := <-w.answer:
		return l
	case <-ix.done:
	case <-ctx.Done():
	}
	return nil
}

// answerListing answers a request. Afterwards it walks again if the last walk is old, because
// notifications are incomplete.
func (ix *index) answerListing(ctx context.Context, w listingRequest) {
	ix.applyHints(ctx)
	w.answer <- ix.listing(w)
	if ix.limit > 0 { // otherwise nothing is watched, and no caller gets a listing
		ix.walkIfExpired(ctx)
	} else {
		ix.releaseQueries()
	}
}

// listing returns the listing for a request, or nil. The caller has applied all hints.
func (ix *index) listing(w listingRequest) *Listing {
	s := ix.current.Load()
	if !s.watched || ix.hints.Load() == nil {
		return nil
	}
	entries := 0
	for _, r := range s.roots {
		entries += r.folder.total()
	}
	if entries >= maxEntries { // the index may be incomplete
		return nil
	}
	for _, r := range s.roots {
		if r.path == w.root && !r.containsRoot {
			l := &Listing{folder: r.folder, changed: map[string]bool{}, mark: Mark{ix.id, ix.changeLog.version}}
			l.all = w.since.index != ix.id || !ix.changeLog.since(w.since.version, func(dir string) {
				if rel, err := filepath.Rel(r.resolvedPath, dir); err == nil && within(r.resolvedPath, dir) {
					l.changed[folderPath(rel)] = true
				}
			})
			return l
		}
	}
	return nil
}

// folderPath converts a path relative to the root to the form of Folder.Path.
func folderPath(rel string) string {
	if rel == "." {
		return ""
	}
	return filepath.ToSlash(rel) + "/"
}

// maxTouched is the maximum number of folders that are tracked individually.
const maxTouched = 50_000

// changeLog records which folders changed, and when.
type changeLog struct {
	mu            sync.Mutex // scanners have several goroutines
	version       uint64
	firstComplete uint64            // the first version with complete records
	folders       map[string]uint64 // by resolved path: the version of the last change
}

// addAll records that any folder may have changed.
func (t *changeLog) addAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	t.firstComplete, t.folders = t.version, map[string]uint64{}
}

// add records that folders have changed.
func (t *changeLog) add(folders map[string]bool) {
	if len(folders) == 0 {
		return
	}
	t.mu.Lock()
	t.version++
	for dir := range folders {
		t.folders[dir] = t.version
	}
	full := len(t.folders) > maxTouched
	t.mu.Unlock()
	if full {
		t.addAll()
	}
}

// recordingWatch wraps a watch function and records each folder before it is read, because a
// new folder may contain files that caused no notification.
func (t *changeLog) recordingWatch(next func(dir string)) func(dir string) {
	return func(dir string) {
		t.mu.Lock()
		t.folders[dir] = t.version
		t.mu.Unlock()
		next(dir)
	}
}

// since calls fn with each folder that has changed since a version. It returns false if there are no
// complete records since that version.
func (t *changeLog) since(version uint64, fn func(dir string)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version < t.firstComplete {
		return false
	}
	for dir, at := range t.folders {
		if at > version {
			fn(dir)
		}
	}
	return true
}
