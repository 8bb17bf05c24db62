// Package watch tells that one of a few files may have changed. The files need not
// exist, nor their folders; they may be replaced by rename, as editors save, and any
// part of their paths may be a link.
//
// A path that ends in /* stands for all names in that folder; what is in folders below it
// does not count.
//
// It watches folders, never files: the one a file is in, those that hold the links on
// the way to it, and for what is missing the deepest folder that exists. There is no
// polling. Events are hints: what a file says now is for the caller to read. A folder
// above these that is renamed away goes unnoticed.
//
// A Tree watches whole folders instead, as many as its owner names, and tells what came
// and went in them, and where files changed. On Linux it can tell that nothing that
// happened before is still on its way (Sync).
//
// It guarantees that after Set, and after each value from Changed, a change leads to
// another value, as long as the system can watch; a folder it cannot watch is reported once
// and the rest goes on.
package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pause is how long it must be quiet before a burst of events is a change: saving
	// a file takes several steps.
	pause = 50 * time.Millisecond
	// longest bounds the wait while events keep coming.
	longest = 500 * time.Millisecond
)

// Watcher watches a set of files.
type Watcher struct {
	// Changed delivers a value when something may have happened to a file: one for a
	// burst of events. Values that are not taken become one.
	Changed <-chan struct{}

	changed chan struct{}
	hints   chan struct{}
	failed  func(error)
	events  *fsnotify.Watcher       // nil if the system has none to give
	add     func(dir string) error  // events.Add
	folders atomic.Pointer[folders] // replaced as a whole by scan
	running sync.WaitGroup

	mu    sync.Mutex // guards paths; what takes events must not need it, or a system may wait for itself
	paths []string

	reporting sync.Mutex // guards reported
	reported  map[string]bool
}

// New returns a watcher without files; Close must be called. failed gets the folders
// that cannot be watched, once for each cause. It must not call the watcher.
func New(failed func(error)) *Watcher {
	changed := make(chan struct{}, 1)
	w := &Watcher{Changed: changed, changed: changed, hints: make(chan struct{}, 1), failed: failed, reported: map[string]bool{}}
	w.folders.Store(&folders{})
	events, err := fsnotify.NewWatcher()
	if err != nil {
		failed(fmt.Errorf("files cannot be watched: %w", err))
		return w
	}
	w.events, w.add = events, events.Add
	done := make(chan struct{})
	w.running.Go(func() {
		defer close(done)
		w.read()
	})
	w.running.Go(func() { settle(w.hints, done, w.fire) })
	return w
}

// Close ends the watcher. Changed stays open.
func (w *Watcher) Close() {
	if w.events != nil {
		_ = w.events.Close() // nothing can be done about it
	}
	w.running.Wait()
}

// Set replaces the watched files. A value from Changed follows, as for an event: what
// happened before is not known.
func (w *Watcher) Set(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths = nil
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			w.report(err.Error(), err)
			continue
		}
		w.paths = append(w.paths, abs)
	}
	w.scanLocked()
	w.hint()
}

// hint says that something may have happened.
func (w *Watcher) hint() {
	select {
	case w.hints <- struct{}{}:
	default:
	}
}

// maxScans bounds the attempts to keep up with somebody who changes folders all the
// time; the events of that lead to another scan.
const maxScans = 10

// scanLocked watches the folders that matter now, and no other.
func (w *Watcher) scanLocked() {
	if w.events == nil {
		return
	}
	last := folders(nil)
	for range maxScans {
		now := foldersOf(w.paths)
		if last != nil && reflect.DeepEqual(last, now) {
			break // nothing appeared while the watches were set
		}
		w.folders.Store(&now)
		for dir := range now {
			// Also where it is watched: it may be another folder of the same name.
			if err := w.add(dir); err != nil && !isGone(err) {
				w.report(err.Error(), fmt.Errorf("%s cannot be watched: %w", dir, explain(err)))
			}
		}
		last = now
	}
	for _, dir := range w.events.WatchList() {
		if _, ok := last[dir]; !ok {
			_ = w.events.Remove(dir) // fails if it is gone
		}
	}
}

func (w *Watcher) report(cause string, err error) {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	if !w.reported[cause] {
		w.reported[cause] = true
		w.failed(err)
	}
}

// isGone says that there is nothing to watch any more, or no caller to notify.
func isGone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, fsnotify.ErrClosed)
}

// explain replaces the words of an error that mean something else here.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return errors.New("the system's limit of watches is reached (on Linux fs.inotify.max_user_watches)")
	}
	return err
}

// read turns events into hints until the watcher is closed.
func (w *Watcher) read() {
	for {
		select {
		case ev, ok := <-w.events.Events:
			if !ok {
				return
			}
			if !w.folders.Load().concerns(ev.Name) {
				continue
			}
		case err, ok := <-w.events.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.report(err.Error(), fmt.Errorf("changes of files may go unnoticed: %w", err))
			}
			// Events are lost: anything may have happened.
		}
		w.hint()
	}
}

// fire follows what happened to the folders before it tells, so that nothing after
// that is missed.
func (w *Watcher) fire() {
	w.mu.Lock()
	w.scanLocked()
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// settle calls fire once for a burst of hints, until done is closed.
func settle(hints, done <-chan struct{}, fire func()) {
	for {
		select {
		case <-hints:
		case <-done:
			return
		}
		quiet, limit := time.NewTimer(pause), time.NewTimer(longest)
		for burst := true; burst; {
			select {
			case <-hints:
				quiet.Reset(pause)
			case <-quiet.C:
				burst = false
			case <-limit.C:
				burst = false
			case <-done:
				return
			}
		}
		fire()
	}
}
