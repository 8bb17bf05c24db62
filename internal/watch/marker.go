package watch

import (
	"context"
	"os"

	"github.com/fsnotify/fsnotify"
)

// marker is an unnamed file that a Tree watches in addition to its folders. Sync writes to the file
// and waits for the event. Events arrive in order, so all events of earlier changes have arrived by
// then. The file is in no folder and disappears with the process. On file systems without unnamed
// files, it has a name for a moment.
type marker struct {
	file    *os.File      // nil until the first Sync
	path    string        // the path for the watch, which is also the name of its events
	arrived chan struct{} // closed when the event of the last write has arrived, then nil
}

// Sync waits until the hints include all changes in the watched folders before the call. It returns
// false if the system cannot guarantee that, or if ctx ends first.
func (t *Tree) Sync(ctx context.Context) bool {
	if !eventsOrdered {
		return false
	}
	// Allow only one write at a time: the system merges the events of adjacent writes, and an event
	// could then not be attributed to a write. isMarkerEvent releases the lock.
	select {
	case t.markerLock <- struct{}{}:
	case <-t.readerDone:
		return false
	case <-ctx.Done():
		return false
	}
	arrived, err := t.writeMarker()
	if err != nil {
		<-t.markerLock
		return false
	}
	select {
	case <-arrived:
		return true
	case <-t.readerDone:
	case <-ctx.Done():
	}
	return false
}

// writeMarker writes to the marker. arrived is closed when the event of the write has arrived.
func (t *Tree) writeMarker() (arrived <-chan struct{}, err error) {
	file, err := t.openMarker()
	if err != nil {
		return nil, err
	}
	ch := make(chan struct{})
	t.setArrived(ch)
	if _, err := file.WriteAt([]byte{0}, 0); err != nil {
		t.setArrived(nil)
		return nil, err
	}
	return ch, nil
}

func (t *Tree) setArrived(ch chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marker.arrived = ch
}

// openMarker returns the file of the marker, and creates and watches it at first. The caller must hold
// markerLock.
func (t *Tree) openMarker() (*os.File, error) {
	t.mu.Lock()
	file := t.marker.file
	t.mu.Unlock()
	if file != nil {
		return file, nil
	}
	file, path, err := openUnnamed()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.marker.path = path // before the first event
	t.mu.Unlock()
	// Without the lock, which the reader of events needs: Add may wait for the reader.
	if err := t.events.Add(path); err != nil {
		_ = file.Close() // the file is empty
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

// isMarkerEvent reports whether an event is that of the marker. If so, it releases the waiting Sync.
func (t *Tree) isMarkerEvent(ev fsnotify.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ev.Name != t.marker.path {
		return false
	}
	if ev.Has(fsnotify.Write) && t.marker.arrived != nil {
		close(t.marker.arrived)
		t.marker.arrived = nil
		<-t.markerLock
	}
	return true
}

// closeMarker closes the marker and prevents the creation of another.
func (t *Tree) closeMarker() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.marker.file != nil {
		_ = t.marker.file.Close() // nothing is in it
	}
}
