package watch

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// markers are files that a Tree makes in a folder of its own, to see their events come
// behind those of all that happened before.
type markers struct {
	dir     string // empty until the first one
	last    int
	waiting map[string]chan struct{} // by path; closed when the event came
}

// markerPrefix begins the names of folders of markers. They are hidden.
const markerPrefix = ".eca-watch-"

// ordered says whether the events of all watched folders come in the order in which things
// happened.
const ordered = runtime.GOOS == "linux"

// Sync waits until the hints have all that happened in the watched folders before the call.
// It returns false where that can not be known, or if ctx ends first.
func (t *Tree) Sync(ctx context.Context) bool {
	if !ordered {
		return false
	}
	path, seen, err := t.newMarker()
	if err != nil {
		return false
	}
	defer t.forgetMarker(path)
	if os.WriteFile(path, nil, 0o600) != nil {
		return false
	}
	select {
	case <-seen:
		return true
	case <-t.ended:
	case <-ctx.Done():
	}
	return false
}

// newMarker returns the path of a marker that is still to be made.
func (t *Tree) newMarker() (path string, seen chan struct{}, err error) {
	dir, err := t.markerFolder()
	if err != nil {
		return "", nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.markers
	m.last++
	path, seen = filepath.Join(dir, strconv.Itoa(m.last)), make(chan struct{})
	m.waiting[path] = seen
	return path, seen, nil
}

// markerFolder returns the folder of the markers, a watched one. A system cleans up its
// folder for temporary files now and then; then another one is made.
func (t *Tree) markerFolder() (string, error) {
	t.making.Lock() // what takes events needs the other lock, and Add may wait for it
	defer t.making.Unlock()
	t.mu.Lock()
	dir := t.markers.dir
	t.mu.Unlock()
	if dir != "" {
		if _, err := os.Lstat(dir); err == nil {
			return dir, nil
		}
	}
	dir, err := os.MkdirTemp("", markerPrefix)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	t.markers = markers{dir: dir, last: t.markers.last, waiting: map[string]chan struct{}{}}
	t.mu.Unlock()
	if err := t.events.Add(dir); err != nil {
		_ = os.Remove(dir) // it is empty, and only in the way
		return "", err
	}
	return dir, nil
}

func (t *Tree) forgetMarker(path string) {
	_ = os.Remove(path) // at the latest at the end
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.markers.waiting, path)
}

// isMarkers says whether a folder is, or was, one of markers.
func isMarkers(dir string) bool { return strings.HasPrefix(filepath.Base(dir), markerPrefix) }

// marked says whether an event is that of a marker, and lets those go that wait for it.
func (t *Tree) marked(ev fsnotify.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.markers
	if !isMarkers(ev.Name) && !isMarkers(filepath.Dir(ev.Name)) {
		return false
	}
	if seen := m.waiting[ev.Name]; seen != nil {
		close(seen)
		delete(m.waiting, ev.Name)
	}
	return true
}

// removeMarkers removes what was made for them.
func (t *Tree) removeMarkers() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.markers.dir != "" {
		_ = os.RemoveAll(t.markers.dir) // nothing can be done about it
	}
}
