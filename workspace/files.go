package workspace

import (
	"context"
	"iter"
	"path/filepath"
	"strings"
	"sync"
)

// Listing is what lies below one root, as it is when it is asked for: the same files as
// Walk visits. It does not change.
type Listing struct {
	folder  *folder
	all     bool            // every folder may have changed
	changed map[string]bool // folders that did, by path as in Folder
	mark    Mark
}

// Mark says when a listing was made. The zero Mark is before all others.
type Mark struct {
	index   *name // of the index; that itself would be kept with the mark
	version uint64
}

// name tells one index from all others. It has a size, without which all have one address.
type name struct{ _ byte }

// Folder is one folder of a listing.
type Folder struct {
	Path string // relative to the root, with slashes and one at the end; empty for the root
	// Changed says that since the mark something may have happened to the folder or to a
	// file in it, but not to what is in folders below it.
	Changed bool
	folder  *folder
}

// Mark returns what later listings are to be compared with.
func (l *Listing) Mark() Mark { return l.mark }

// Folders visits all folders, each before those in it.
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

// Names visits the names of the folder's files in lexical order. Some may be links,
// devices and similar files.
func (f Folder) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.folder.ends {
			if !yield(f.folder.file(i).plain) {
				return
			}
		}
	}
}

// Listing returns what lies below root, one of the roots, with all that happened before
// the call, and in which folders something did since an earlier listing. It knows that only
// where the system tells of changes, in the order in which they happen, and does not wait
// long for it: ok is false where it does not know, and then a walk does. If no query
// came before, it begins to find out. Files in use (Touch) count as changed.
//
// Changes without notification, such as writes through memory maps, are noticed by the
// walk that follows a listing when the last one was two minutes ago.
func (f *Finder) Listing(ctx context.Context, roots []string, root string, since Mark) (l *Listing, ok bool) {
	ix, err := f.index(roots)
	if err != nil {
		return nil, false
	}
	if l = ix.list(ctx, root, since); l == nil {
		return nil, false
	}
	for _, path := range f.inUse() {
		if rel, ok := strings.CutPrefix(path, root+string(filepath.Separator)); ok {
			l.changed[parent(filepath.ToSlash(rel))] = true
		}
	}
	return l, true
}

// wanted is a question for a listing.
type wanted struct {
	root   string
	since  Mark
	answer chan *Listing // has room for one; nil says that it is not known
}

// list asks the owner, once all that happened is among the hints.
func (ix *index) list(ctx context.Context, root string, since Mark) *Listing {
	ix.asked.Store(ix.now().UnixNano())
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
	w := wanted{root, since, make(chan *Listing, 1)}
	select {
	case ix.wanted <- w:
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

// serve answers a question, and looks again at what is old: notifications are not complete.
func (ix *index) serve(ctx context.Context, w wanted) {
	ix.apply(ctx)
	w.answer <- ix.listing(w)
	if ix.limit > 0 { // else no caller gets a listing, however old it is
		ix.renew(ctx)
	} else {
		ix.signal()
	}
}

// listing answers a question. The owner has taken all hints.
func (ix *index) listing(w wanted) *Listing {
	s := ix.current.Load()
	if !s.watched || ix.hints.Load() == nil {
		return nil
	}
	entries := 0
	for _, r := range s.roots {
		entries += r.folder.total()
	}
	if entries >= maxEntries { // some are missing
		return nil
	}
	for _, r := range s.roots {
		if r.path == w.root && !r.parted {
			l := &Listing{folder: r.folder, changed: map[string]bool{}, mark: Mark{ix.name, ix.touched.version}}
			l.all = w.since.index != ix.name || !ix.touched.since(w.since.version, func(dir string) {
				if rel, err := filepath.Rel(r.top, dir); err == nil && within(r.top, dir) {
					l.changed[folderPath(rel)] = true
				}
			})
			return l
		}
	}
	return nil
}

// folderPath makes a relative path that of a Folder.
func folderPath(rel string) string {
	if rel == "." {
		return ""
	}
	return filepath.ToSlash(rel) + "/"
}

// maxTouched bounds how many folders are distinguished.
const maxTouched = 50_000

// touched knows in which folders something happened, and in which order.
type touched struct {
	mu      sync.Mutex // scanners have several goroutines
	version uint64
	known   uint64            // from which version on
	folders map[string]uint64 // by path with links resolved: the version when something did last
}

// all says that anything may have happened.
func (t *touched) all() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	t.known, t.folders = t.version, map[string]uint64{}
}

// add notes where something happened.
func (t *touched) add(folders map[string]bool) {
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
		t.all()
	}
}

// noting notes folders that are read before it hands them on: a new one may have come with
// files without a notification.
func (t *touched) noting(next func(dir string)) func(dir string) {
	return func(dir string) {
		t.mu.Lock()
		t.folders[dir] = t.version
		t.mu.Unlock()
		next(dir)
	}
}

// since visits where something happened after a version; false says that it does not know.
func (t *touched) since(version uint64, fn func(dir string)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version < t.known {
		return false
	}
	for dir, at := range t.folders {
		if at > version {
			fn(dir)
		}
	}
	return true
}
