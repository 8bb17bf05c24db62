// Package eventlog keeps the events of one chat: it numbers them, has them stored, and shows them
// to readers, each with a cursor of its own.
//
// It guarantees that what a reader has seen is on record, that every reader gets every event in
// order and none twice, and that no reader waits for another. It does not know what the events
// mean, apart from which of them are deltas and which are never stored.
package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

const (
	flushDelay   = 50 * time.Millisecond // longest time that a delta waits to be appended to the store
	maxTail      = 256                   // entries kept in memory for readers
	maxTailBytes = 256 << 10             // and their size, estimated
	maxPiece     = 16 << 10              // bytes of one delta handed to a reader
	pageSize     = 256                   // events read from the store at once
)

// Log is the sequence of a chat's events.
//
// Every event that a reader has seen is on record: it survives the death of the process. Structural
// events are appended to the store before any reader sees them. Deltas of text, reasoning
// and arguments are recorded (Store.Record) when the first reader takes them, and appended
// within flushDelay: adjacent deltas grow one open entry, so a reader that falls behind
// gets them merged, recorded with one write, and a reader that keeps up gets each piece.
// Progress is never stored.
//
// Readers have cursors of their own; a slow one costs no memory, because entries that are
// stored leave the tail and are read back from the store.
//
// If the store fails, the log goes on in memory, says so once, and tries again with the
// next entry: a full disk must not take the conversation away.
type Log struct {
	store    Store
	now      func() time.Time
	log      *slog.Logger
	separate bool // deltas are never merged

	// disk is held while the store writes, so that writes keep their order. It is taken
	// before mu, and mu is never held while the store works: a caller that reads the meta
	// or the position does not wait for a disk.
	disk sync.Mutex

	mu      sync.Mutex // guards what follows
	meta    Meta
	metas   int           // changes of meta that were made here
	stored  int           // those that the store has
	tail    []*entry      // contiguous; tail[0].seq == first
	first   event.Seq     // seq of tail[0], or next if the tail is empty
	next    event.Seq     // seq of the next entry
	saved   event.Seq     // the entries before it are stored
	shown   event.Seq     // the entries before it are shown: they are stored, or could not be
	timer   *time.Timer   // runs while deltas wait to be stored
	changed chan struct{} // closed and replaced when there is something new to see
	failing bool          // the last attempt to store failed
	closed  bool
	// replacing is true while the store changes what it has. Readers wait meanwhile: the number
	// of the marker is taken, and the store does not have it yet.
	replacing bool

	previous event.Kind // of the last event that ends a run of text (event.InterleavesText)
}

// entry is one event. While open it grows by deltas.
type entry struct {
	event.Event
	open     bool
	text     []byte // of a delta, until it is sealed
	recorded int    // bytes of a delta that are on record
	size     int    // estimate of its memory, once that was needed (see weight)
}

// weight estimates the memory of an entry that does not grow any more.
func (e *entry) weight() int {
	const overhead = 256
	if e.size == 0 {
		e.size = overhead + event.Size(e.Body)
	}
	return e.size
}

// delta returns the text of a delta so far; nothing for other events.
func (e *entry) delta() []byte {
	if e.open {
		return e.text
	}
	text, _ := deltaText(e.Body)
	return []byte(text)
}

// New returns the log of a chat. last is the number of its last stored event, or 0.
// With separate, each delta stays an event of its own.
func New(store Store, meta Meta, last event.Seq, separate bool, now func() time.Time, logger *slog.Logger) *Log {
	l := &Log{store: store, now: now, log: logger, separate: separate, meta: meta, changed: make(chan struct{})}
	if last == 0 {
		l.metas = 1
	}
	l.forget(last + 1)
	return l
}

// forget drops the entries in memory; the next one has the given number.
func (l *Log) forget(next event.Seq) {
	l.tail, l.first, l.next, l.saved, l.shown, l.previous = nil, next, next, next, next, ""
}

// Append adds events of a turn. When it returns, structural events are stored (or
// storing has failed, which is reported to readers) and visible.
func (l *Log) Append(turn string, bodies ...event.Body) {
	store := slices.ContainsFunc(bodies, structural)
	if store {
		l.disk.Lock()
		defer l.disk.Unlock()
	}
	if l.add(turn, bodies, !store) && store {
		l.flush()
	}
}

// structural says whether an event is stored before any reader sees it.
func structural(b event.Body) bool {
	_, delta := b.(event.Delta)
	return !delta && !event.Volatile(b)
}

// add adds events to the tail; false means that the log is closed. Without a structural
// event among them, they can be seen at once and are stored later.
func (l *Log) add(turn string, bodies []event.Body, later bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	for _, b := range bodies {
		if d, ok := b.(event.Delta); ok {
			l.extend(turn, d)
		} else {
			l.addEntry(turn, b)
		}
	}
	if later {
		if l.timer == nil && l.pending() {
			l.timer = time.AfterFunc(flushDelay, l.Flush)
		}
		l.wake()
	}
	return true
}

// SetMeta changes what is stored about the chat with the next event.
func (l *Log) SetMeta(change func(*Meta)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.meta)
	l.metas++
}

// Change changes meta at once, here and in the store, where another process may have
// changed it too.
func (l *Log) Change(change func(*Meta)) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	id, dirty := l.meta.ID, l.dirty()
	if dirty {
		change(&l.meta)
		l.metas++ // it is stored with the next event
	}
	l.mu.Unlock()
	if dirty {
		return nil
	}
	meta, err := l.store.ChangeMeta(context.Background(), id, change)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirty() { // by SetMeta meanwhile
		change(&l.meta)
	} else {
		l.meta = meta
	}
	return nil
}

// dirty says that meta was changed here since it was stored. The caller holds mu.
func (l *Log) dirty() bool { return l.metas != l.stored }

// Meta returns what is known about the chat.
func (l *Log) Meta() Meta {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.meta
}

// Next returns the number the next event will have.
func (l *Log) Next() event.Seq {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Unsaved says that events wait to be stored.
func (l *Log) Unsaved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending()
}

// pending is Unsaved for a caller that holds mu.
func (l *Log) pending() bool { return l.saved < l.next }

// Flush stores what is pending now, if the store can.
func (l *Log) Flush() {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.flush()
}

// Refresh takes over what another process did to the chat since: meta, events, or that it
// is gone. It reports whether there are events that were not known here. While events wait
// to be stored, nobody else can have done anything.
func (l *Log) Refresh(ctx context.Context) (news, gone bool, err error) {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	id, pending := l.meta.ID, l.pending()
	l.mu.Unlock()
	if pending {
		return false, false, nil
	}
	meta, last, found, err := l.store.Meta(ctx, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		return false, false, err
	case !found:
		return false, l.next > 1, nil
	case !l.dirty():
		l.meta = meta
	}
	if last < l.next || l.pending() {
		return false, false, nil
	}
	l.forget(last + 1)
	l.wake()
	return true, false, nil
}

// Cut removes events from a number on and appends marker in their place. Readers that
// are further see the marker next.
func (l *Log) Cut(from event.Seq, marker event.Body) error {
	return l.replace(func(meta Meta, e event.Event) error {
		return l.store.Cut(context.Background(), meta, from, e)
	}, 0, marker, func(*Meta) {})
}

// Adopt removes all events, appends marker, takes over those of another chat before a
// number, and changes meta: all of it, or with an error nothing.
func (l *Log) Adopt(other string, end event.Seq, marker event.Body, change func(*Meta)) error {
	return l.replace(func(meta Meta, e event.Event) error {
		return l.store.Adopt(context.Background(), meta, other, end, e)
	}, end, marker, change)
}

// replace changes what is stored and forgets what is in memory. reserved is how many numbers
// after the marker the change takes.
func (l *Log) replace(write func(Meta, event.Event) error, reserved event.Seq, marker event.Body, change func(*Meta)) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.flush()
	l.mu.Lock()
	if l.closed || l.pending() {
		defer l.mu.Unlock()
		if l.closed {
			return ErrClosed
		}
		return ErrNotStored
	}
	e, metas := l.event("", marker), l.metas
	meta := l.meta
	change(&meta)
	meta.Updated = e.Time
	// The numbers are taken even if the change fails: readers skip a gap.
	l.forget(l.next + 1 + reserved)
	l.replacing = true
	l.mu.Unlock()
	err := write(meta, e)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wake()
	l.replacing = false
	if err != nil {
		return err
	}
	if l.metas == metas {
		l.meta, l.stored = meta, metas
	} else { // SetMeta changed it meanwhile
		change(&l.meta)
	}
	return nil
}

// Close stores what is left and ends all readers.
func (l *Log) Close() {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return
	}
	l.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake()
}

func (l *Log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Log) addEntry(turn string, b event.Body) *entry {
	l.seal()
	e := &entry{Event: l.event(turn, b)}
	l.next++
	l.tail = append(l.tail, e)
	return e
}

// event makes the next event.
func (l *Log) event(turn string, b event.Body) event.Event {
	e := event.Event{Seq: l.next, Turn: turn, Time: l.now().UTC().Truncate(time.Millisecond), Body: b, Begins: event.Begins(l.previous, b)}
	if !event.InterleavesText(b) {
		l.previous = event.KindOf(b)
	}
	return e
}

// extend grows the open delta entry, or opens one.
func (l *Log) extend(turn string, d event.Delta) {
	empty := d.With("")
	if n := len(l.tail); n > 0 && !l.separate {
		if e := l.tail[n-1]; e.open && e.Body == empty && e.Turn == turn {
			e.text = append(e.text, d.Piece()...)
			return
		}
	}
	e := l.addEntry(turn, empty)
	e.open, e.text = true, []byte(d.Piece())
}

// seal closes the open entry, if any: it will not grow any more.
func (l *Log) seal() {
	if n := len(l.tail); n > 0 && l.tail[n-1].open {
		e := l.tail[n-1]
		e.open = false
		e.Body = withText(e.Body, string(e.text))
		e.text = nil
	}
}

// flush stores what is pending. The caller holds disk.
func (l *Log) flush() {
	l.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.seal()
	var batch []event.Event
	for _, e := range l.unsaved() {
		if !event.Volatile(e.Body) {
			batch = append(batch, e.Event)
		}
	}
	if len(batch) > 0 {
		l.meta.Updated = batch[len(batch)-1].Time
	}
	meta, metas, dirty, end := l.meta, l.metas, l.dirty(), l.next
	l.mu.Unlock()
	var err error
	if len(batch) > 0 {
		dirty, err = l.write(meta, dirty, batch)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wake()
	if err != nil {
		l.storeFailed(err)
		l.shown = l.next
		return
	}
	if len(batch) > 0 && dirty {
		l.stored = metas
	}
	l.failing = false
	l.saved, l.shown = end, max(l.shown, end)
	l.trim()
}

// unsaved returns the entries that are not stored. The caller holds mu.
func (l *Log) unsaved() []*entry { return l.tail[l.saved-l.first:] }

// write stores events, and meta if it was changed here: otherwise another process may
// have changed it. withMeta says whether meta was written.
func (l *Log) write(meta Meta, dirty bool, batch []event.Event) (withMeta bool, err error) {
	if !dirty {
		err := l.store.Extend(context.Background(), meta.ID, batch)
		if !errors.Is(err, ErrNoChat) {
			return false, err
		}
		// Another process deleted the chat in the middle of a turn; what the user sees goes on.
	}
	return true, l.store.Append(context.Background(), meta, batch)
}

// record puts the deltas that are not stored on record, so that they can be shown.
func (l *Log) record() {
	l.disk.Lock()
	defer l.disk.Unlock()
	var list []event.Event
	var from []*entry
	l.mu.Lock()
	id := l.meta.ID
	for _, e := range l.unsaved() {
		text := e.delta()
		if len(text) == e.recorded {
			continue
		}
		piece := e.Event
		piece.Body = withText(e.Body, string(text[e.recorded:]))
		list, from = append(list, piece), append(from, e)
	}
	l.mu.Unlock()
	if len(list) == 0 {
		return
	}
	if err := l.store.Record(context.Background(), id, list); err != nil {
		l.log.Debug("deltas could not be recorded, so they are stored", "chat", id, "err", err)
		l.flush() // which reports it if that is not possible either
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range from {
		text, _ := deltaText(list[i].Body)
		e.recorded += len(text)
	}
}

// trim drops the oldest of the stored entries beyond what the tail may hold.
func (l *Log) trim() {
	keep, bytes := len(l.unsaved()), 0
	for keep < len(l.tail) && keep < maxTail {
		bytes += l.tail[len(l.tail)-1-keep].weight()
		if bytes > maxTailBytes {
			break
		}
		keep++
	}
	l.tail = append([]*entry(nil), l.tail[len(l.tail)-keep:]...)
	l.first = l.next - event.Seq(keep)
}

func (l *Log) storeFailed(err error) {
	if l.failing {
		return
	}
	l.log.Warn("chat could not be stored", "chat", l.meta.ID, "err", err)
	l.failing = true
	l.addEntry("", event.Notice{Text: "\n\nThis chat cannot be saved at the moment and is not kept when eca ends: " + err.Error() + "\n"})
}
