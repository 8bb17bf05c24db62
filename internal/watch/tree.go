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

// Limits of the hints that a Tree collects.
const (
	maxChanged = 50_000 // paths; if there are more, Hints.Lost is set
	maxWritten = 20     // files; if there are more, Hints.Written is nil
)

// ErrTooMany means that a tree has more folders than can be watched.
var ErrTooMany = errors.New("there are more folders than can be watched")

// TreeLimit returns how many folders of a tree a program may reasonably watch on this system. It is
// 0 on systems that need an open file for every file in a folder.
func TreeLimit() int {
	switch runtime.GOOS {
	case "linux":
		return 10_000 // a part of the user's limit, which other programs need too
	case "windows":
		return 200 // each needs a buffer of 64 KiB
	}
	return 0
}

// Hints are possible changes in the watched folders since the last call of Take.
type Hints struct {
	Changed map[string]bool // paths that were created or deleted, and rule files that were written
	Touched map[string]bool // folders with any event, including changes of file contents and times
	Written []string        // files whose content changed, the most recent one last; nil if there were many
	Lost    bool            // hints were lost: create a new Tree
}

// Tree watches individual folders, without their subfolders. Every change in a folder after Add that
// the system reports leads to a value from Changed and to hints, or to hints with Lost.
type Tree struct {
	// Changed delivers a value when there are hints. Values that are not received are merged into
	// one.
	Changed <-chan struct{}

	changed    chan struct{}
	events     *fsnotify.Watcher
	limit      int
	ruleFiles  []string
	running    sync.WaitGroup
	readerDone chan struct{} // closed when no more events arrive
	markerLock chan struct{} // full while the event of a write to the marker is awaited

	mu             sync.Mutex // guards the fields below
	folders        map[string]bool
	hints          Hints
	tooManyWritten bool // too many files were written
	marker         marker
	closed         bool
}

// NewTree returns a tree without folders that watches at most limit folders. ruleFiles are the names
// of files, such as .gitignore, whose content determines which other files matter. The caller must
// call Close.
func NewTree(limit int, ruleFiles ...string) (*Tree, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("files cannot be watched: %w", err)
	}
	changed := make(chan struct{}, 1)
	t := &Tree{Changed: changed, changed: changed, events: events, limit: limit, ruleFiles: ruleFiles, folders: map[string]bool{}, readerDone: make(chan struct{}), markerLock: make(chan struct{}, 1)}
	t.running.Go(t.read)
	return t, nil
}

// Close ends the tree. Changed stays open.
func (t *Tree) Close() {
	_ = t.events.Close() // there is no remedy for an error
	t.running.Wait()
	t.closeMarker()
}

// Add watches a folder, given by its absolute path without symlinks. A missing folder is not an
// error, since the folder above it reports it.
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
	// Also for a known path: another folder may have taken the place of the watched one.
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
	if t.tooManyWritten {
		h.Written = nil
	}
	t.hints, t.tooManyWritten = Hints{}, false
	return h
}

// Pending reports whether there are hints about created or deleted files.
func (t *Tree) Pending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.hints.Changed) > 0 || t.hints.Lost
}

func (t *Tree) read() {
	defer close(t.readerDone)
	for {
		select {
		case ev, ok := <-t.events.Events:
			if !ok {
				return
			}
			if t.isMarkerEvent(ev) {
				continue
			}
			t.record(ev)
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

// record records an event.
func (t *Tree) record(ev fsnotify.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &t.hints
	if h.Touched == nil {
		h.Touched = map[string]bool{}
	}
	h.Touched[filepath.Dir(ev.Name)] = true
	switch {
	case ev.Has(fsnotify.Rename) && t.folders[ev.Name]:
		h.Lost = true // events from the watches below it now have wrong paths
	case ev.Has(fsnotify.Create) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) || ev.Has(fsnotify.Write) && slices.Contains(t.ruleFiles, filepath.Base(ev.Name)):
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
		t.addWritten(ev.Name)
	case ev.Has(fsnotify.Write):
		t.addWritten(ev.Name)
	}
}

func (t *Tree) addWritten(path string) {
	h := &t.hints
	for i, p := range h.Written {
		if p == path {
			h.Written = append(append(h.Written[:i], h.Written[i+1:]...), path)
			return
		}
	}
	if len(h.Written) == maxWritten {
		t.tooManyWritten = true
		return
	}
	h.Written = append(h.Written, path)
}
