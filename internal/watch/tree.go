package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Bounds of what a Tree remembers until it is taken.
const (
	maxChanged = 50_000 // paths; beyond that everything is looked at
	maxWritten = 20     // files; more are the work of a program
)

// ErrTooMany says that a tree has more folders than are watched.
var ErrTooMany = errors.New("there are more folders than can be watched")

// TreeLimit is how many folders of a tree this system lets a program watch at a fair
// price. On systems that need an open file for every file in them, it is free.
func TreeLimit() int {
	switch runtime.GOOS {
	case "linux":
		return 10_000 // of the user's share, which other programs need too
	case "windows":
		return 200 // each needs a buffer of 64 KiB
	}
	return 0
}

// Hints are possible changes below some folders since the last hints.
type Hints struct {
	Changed map[string]bool // paths that came or went, and telling files that were written
	Touched map[string]bool // folders in which anything happened, to a file's content or time too
	Written []string        // files whose content changed, the last one last; none if there were many
	Lost    bool            // anything may have happened: watch again from the beginning
}

// Tree watches folders that its owner names one by one, each without those below it. It
// guarantees that what happens in a folder after Add leads to a value from Changed and to
// hints, or to hints that say that some were lost, as long as the system tells.
type Tree struct {
	// Changed delivers a value when there are hints. Values that are not taken become one.
	Changed <-chan struct{}

	changed chan struct{}
	events  *fsnotify.Watcher
	limit   int
	telling []string
	running sync.WaitGroup
	ended   chan struct{} // closed when no event comes any more
	turn    chan struct{} // full while the event of a write to the marker is awaited

	mu      sync.Mutex // guards the fields below
	folders map[string]bool
	hints   Hints
	many    bool // too many files were written
	marker  marker
	closed  bool
}

// NewTree watches nothing so far, and never more than limit folders. Telling are the names
// of files whose content says which other files count. Close must be called.
func NewTree(limit int, telling ...string) (*Tree, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("files cannot be watched: %w", err)
	}
	changed := make(chan struct{}, 1)
	t := &Tree{Changed: changed, changed: changed, events: events, limit: limit, telling: telling, folders: map[string]bool{}, ended: make(chan struct{}), turn: make(chan struct{}, 1)}
	t.running.Go(t.read)
	return t, nil
}

// Close ends the tree. Changed stays open.
func (t *Tree) Close() {
	_ = t.events.Close() // nothing can be done about it
	t.running.Wait()
	t.closeMarker()
}

// Add watches a folder, an absolute path without links. A missing folder is not an error:
// the folder above it reports it.
func (t *Tree) Add(dir string) error {
	t.mu.Lock()
	known, full := t.folders[dir], len(t.folders) >= t.limit
	if !known && !full {
		t.folders[dir] = true
	}
	t.mu.Unlock()
	if !known && full {
		return ErrTooMany
	}
	// Also if it is known: it may be another folder of the same name.
	if err := t.events.Add(dir); err != nil {
		t.mu.Lock()
		delete(t.folders, dir)
		t.mu.Unlock()
		if isGone(err) {
			return nil
		}
		return fmt.Errorf("%s cannot be watched: %w", dir, explain(err))
	}
	return nil
}

// Take returns the hints since the last call.
func (t *Tree) Take() Hints {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hints
	if t.many {
		h.Written = nil
	}
	t.hints, t.many = Hints{}, false
	return h
}

// Pending reports whether there are hints about which files there are.
func (t *Tree) Pending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.hints.Changed) > 0 || t.hints.Lost
}

func (t *Tree) read() {
	defer close(t.ended)
	for {
		select {
		case ev, ok := <-t.events.Events:
			if !ok {
				return
			}
			if t.marked(ev) {
				continue
			}
			t.note(ev)
		case _, ok := <-t.events.Errors: // an overflow, or an error with the same effect
			if !ok {
				return
			}
			t.mu.Lock()
			t.hints.Lost = true
			t.mu.Unlock()
		}
		select {
		case t.changed <- struct{}{}:
		default:
		}
	}
}

// note records an event.
func (t *Tree) note(ev fsnotify.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &t.hints
	if h.Touched == nil {
		h.Touched = map[string]bool{}
	}
	h.Touched[filepath.Dir(ev.Name)] = true
	switch {
	case ev.Has(fsnotify.Rename) && t.folders[ev.Name]:
		h.Lost = true // the watches below it tell of paths that are wrong now
	case ev.Has(fsnotify.Create) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) || ev.Has(fsnotify.Write) && slices.Contains(t.telling, filepath.Base(ev.Name)):
		if ev.Has(fsnotify.Remove) {
			delete(t.folders, ev.Name)
		}
		if len(h.Changed) == maxChanged {
			h.Lost = true
			return
		}
		if h.Changed == nil {
			h.Changed = map[string]bool{}
		}
		h.Changed[ev.Name] = true
		if !ev.Has(fsnotify.Create) && !ev.Has(fsnotify.Write) {
			return
		}
		t.written(ev.Name)
	case ev.Has(fsnotify.Write):
		t.written(ev.Name)
	}
}

func (t *Tree) written(path string) {
	h := &t.hints
	for i, p := range h.Written {
		if p == path {
			h.Written = append(append(h.Written[:i], h.Written[i+1:]...), path)
			return
		}
	}
	if len(h.Written) == maxWritten {
		t.many = true
		return
	}
	h.Written = append(h.Written, path)
}
