// Package watch reports changes of files. It uses the notifications of the system and does not poll.
//
// A Watcher watches a few files and reports that one of them may have changed. The files and their
// folders need not exist. Editors may replace a file by renaming another one, and any part of a path
// may be a symlink. A path that ends in /* stands for all names in that folder, without its
// subfolders. A Watcher watches folders, never files: the folder of each file, the folders of all
// symlinks in its path, and the deepest existing folder if a part of the path is missing. A value
// from Changed is only a hint: the caller has to read the files. The Watcher does not notice that a
// folder above the watched ones was renamed. After Set, and after each value from Changed, the next
// change leads to another value. If the system cannot watch a folder, the Watcher reports it once and
// watches the others.
//
// A Tree watches the folders that its owner chooses, and reports created, deleted and changed files
// in them. On Linux, Sync waits until all earlier changes have been reported.
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
	// quietPeriod is the time without events that ends a burst. Saving a file causes several events,
	// which count as one change.
	quietPeriod = 50 * time.Millisecond
	// maxDelay ends a burst while events keep arriving.
	maxDelay = 500 * time.Millisecond
)

// Watcher watches a set of files.
type Watcher struct {
	// Changed delivers a value when a file may have changed, one for a burst of events. Values that
	// are not received are merged into one.
	Changed <-chan struct{}

	changed chan struct{}
	hints   chan struct{} // capacity 1; see hint
	failed  func(error)
	events  *fsnotify.Watcher       // nil if the system cannot provide one
	add     func(dir string) error  // events.Add
	folders atomic.Pointer[folders] // replaced atomically by scan
	running sync.WaitGroup

	mu    sync.Mutex // guards paths; read must not take it, because its holder may wait in events.Add for read
	paths []string

	reporting sync.Mutex // guards reported
	reported  map[string]bool
}

// New returns a watcher without files. The caller must call Close. The watcher calls failed for each
// folder that it cannot watch, once per error text. failed must not call the watcher.
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
	w.running.Go(func() { debounce(w.hints, done, w.rescanAndNotify) })
	return w
}

// Close ends the watcher. Changed stays open.
func (w *Watcher) Close() {
	if w.events != nil {
		_ = w.events.Close() // there is no remedy for an error
	}
	w.running.Wait()
}

// Set replaces the watched files. It always leads to a value from Changed, because the files may have
// changed before the call.
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

// hint records that something may have changed.
func (w *Watcher) hint() {
	select {
	case w.hints <- struct{}{}:
	default:
	}
}

// maxScans limits the attempts of scanLocked if another process changes folders all the time. The
// events of that process lead to another scan.
const maxScans = 10

// scanLocked watches exactly the folders that matter now.
func (w *Watcher) scanLocked() {
	if w.events == nil {
		return
	}
	previous := folders(nil)
	for range maxScans {
		current := foldersOf(w.paths)
		if previous != nil && reflect.DeepEqual(previous, current) {
			break // no folder appeared while the watches were set
		}
		w.folders.Store(&current)
		for dir := range current {
			// Even if it is watched already: it may be another folder of the same name.
			if err := w.add(dir); err != nil && !isGone(err) {
				w.report(err.Error(), fmt.Errorf("%s cannot be watched: %w", dir, explain(err)))
			}
		}
		previous = current
	}
	for _, dir := range w.events.WatchList() {
		if _, ok := previous[dir]; !ok {
			_ = w.events.Remove(dir) // fails if the folder is deleted
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

// isGone reports whether an error means that the folder no longer exists, or that the watcher is
// closed.
func isGone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, fsnotify.ErrClosed)
}

// explain replaces errors whose text is misleading here.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return errors.New("the system's limit of watches is reached (on Linux fs.inotify.max_user_watches)")
	}
	return err
}

// read converts events to hints until the watcher is closed.
func (w *Watcher) read() {
	for {
		select {
		case ev, ok := <-w.events.Events:
			if !ok {
				return
			}
			if !w.folders.Load().matters(ev.Name) {
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

// rescanAndNotify updates the watched folders and then sends a value to Changed. In this order, no later
// change is missed.
func (w *Watcher) rescanAndNotify() {
	w.mu.Lock()
	w.scanLocked()
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// debounce calls fire once for a burst of hints, until done is closed.
func debounce(hints, done <-chan struct{}, fire func()) {
	for {
		select {
		case <-hints:
		case <-done:
			return
		}
		quiet, limit := time.NewTimer(quietPeriod), time.NewTimer(maxDelay)
		for burst := true; burst; {
			select {
			case <-hints:
				quiet.Reset(quietPeriod)
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
