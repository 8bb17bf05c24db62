package watch

import (
	"context"
	"os"

	"github.com/fsnotify/fsnotify"
)

// marker is a file without a name that a Tree watches too: it is written to, to see that
// event come after those of all that happened before. No folder shows it, and it ends with
// the process, however that ends; where the file system has no files without names, it has one
// for a moment.
type marker struct {
	file *os.File      // nil until the first Sync
	path string        // by which the system finds the file, and its events' name
	seen chan struct{} // closed when the event of the last write has come; nil once it has
}

// Sync waits until the hints have all that happened in the watched folders before the call.
// It returns false where that cannot be known, or if ctx ends first.
func (t *Tree) Sync(ctx context.Context) bool {
	if !ordered {
		return false
	}
	// One write at a time: the system makes one event of two that nothing separates, and
	// the owner of the event would be unknown. The turn ends with the event, in
	// marked.
	select {
	case t.turn <- struct{}{}:
	case <-t.ended:
		return false
	case <-ctx.Done():
		return false
	}
	seen, err := t.writeMarker()
	if err != nil {
		<-t.turn
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

// writeMarker writes to the marker. seen is closed when the event of that has come.
func (t *Tree) writeMarker() (seen <-chan struct{}, err error) {
	file, err := t.openMarker()
	if err != nil {
		return nil, err
	}
	ch := make(chan struct{})
	t.setSeen(ch)
	if _, err := file.WriteAt([]byte{0}, 0); err != nil {
		t.setSeen(nil)
		return nil, err
	}
	return ch, nil
}

func (t *Tree) setSeen(ch chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marker.seen = ch
}

// openMarker returns the marker, a watched file; whose turn it is may call it.
func (t *Tree) openMarker() (*os.File, error) {
	t.mu.Lock()
	file := t.marker.file
	t.mu.Unlock()
	if file != nil {
		return file, nil
	}
	file, path, err := nameless()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.marker.path = path // before the first event
	t.mu.Unlock()
	// Without the lock, which what takes events needs: Add may wait for that.
	if err := t.events.Add(path); err != nil {
		_ = file.Close() // nothing is in it
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = file.Close()
		return nil, fsnotify.ErrClosed
	}
	t.marker.file = file
	return file, nil
}

// marked reports whether an event is that of the marker, and lets go who waits for it.
func (t *Tree) marked(ev fsnotify.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ev.Name != t.marker.path {
		return false
	}
	if ev.Has(fsnotify.Write) && t.marker.seen != nil {
		close(t.marker.seen)
		t.marker.seen = nil
		<-t.turn
	}
	return true
}

// closeMarker ends the marker, and keeps another from being made.
func (t *Tree) closeMarker() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.marker.file != nil {
		_ = t.marker.file.Close() // nothing is in it
	}
}
