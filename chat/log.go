package chat

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

const (
	flushDelay   = 50 * time.Millisecond // longest time that shown text is not stored
	maxTail      = 256                   // entries kept in memory for readers
	maxTailBytes = 256 << 10             // and their size, estimated
	maxPiece     = 16 << 10              // bytes of one delta handed to a reader
	pageSize     = 256                   // events read from the store at once
)

// Log is the sequence of a chat's events.
//
// Structural events are stored before any reader sees them. Text, reasoning and
// argument deltas are seen at once and stored within flushDelay: adjacent deltas
// grow one open entry, so a reader that falls behind gets them merged and a reader
// that keeps up gets each piece. Progress is never stored.
//
// Readers have cursors of their own; a slow one costs no memory, because entries
// that are stored leave the tail and are read back from the store.
//
// If the store fails, the log goes on in memory, says so once, and tries again with
// the next entry: a full disk must not take the conversation away.
type Log struct {
	store    Store
	now      func() time.Time
	log      *slog.Logger
	separate bool // deltas are never merged; set before the first event

	mu      sync.Mutex // guards what follows
	meta    Meta
	tail    []*entry      // contiguous; tail[0].seq == first
	first   event.Seq     // seq of tail[0], or next if the tail is empty
	next    event.Seq     // seq of the next entry
	pending int           // entries at the end of the tail that are not stored yet
	timer   *time.Timer   // runs while deltas wait to be stored
	changed chan struct{} // closed and replaced when something is appended
	failing bool          // the last attempt to store failed
	dirty   bool          // meta was changed here since it was stored
	closed  bool

	previous event.Kind // of the last event that is not an aside (event.Aside)
}

// entry is one event. While open it grows by deltas.
type entry struct {
	event.Event
	open bool
	id   string // reasoning or call id of a delta
	text []byte // of a delta, until it is sealed
}

func newLog(store Store, meta Meta, last event.Seq, now func() time.Time, logger *slog.Logger) *Log {
	return &Log{
		store: store, now: now, log: logger, meta: meta,
		first: last + 1, next: last + 1, changed: make(chan struct{}), dirty: last == 0,
	}
}

// Append adds events of a turn. When it returns, structural events are stored (or
// storing has failed, which is reported to readers) and visible.
func (l *Log) Append(turn string, bodies ...event.Body) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	store := false
	for _, b := range bodies {
		switch b := b.(type) {
		case event.TextDelta:
			l.extend(turn, event.KindOf(b), "", b.Text)
		case event.ReasoningDelta:
			l.extend(turn, event.KindOf(b), b.ID, b.Text)
		case event.ToolArgsDelta:
			l.extend(turn, event.KindOf(b), b.CallID, b.Text)
		case event.Progress:
			l.add(turn, b)
		default:
			l.add(turn, b)
			store = true
		}
	}
	if store {
		l.flush()
	} else if l.timer == nil && l.pending > 0 {
		l.timer = time.AfterFunc(flushDelay, l.flushLater)
	}
	l.wake()
}

// SetMeta changes what is stored about the chat with the next event.
func (l *Log) SetMeta(change func(*Meta)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.meta)
	l.dirty = true
}

// Change changes meta at once, here and in the store, where another process may have
// changed it too.
func (l *Log) Change(change func(*Meta)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirty {
		change(&l.meta)
		return nil // it is stored with the next event
	}
	meta, err := l.store.ChangeMeta(context.Background(), l.meta.ID, change)
	if err != nil {
		return err
	}
	l.meta = meta
	return nil
}

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
	return l.pending > 0
}

// Flush stores what is pending now, as far as the store can.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

// Refresh takes over what another process appended since; it reports whether there
// was anything.
func (l *Log) Refresh(meta Meta, last event.Seq) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending > 0 {
		return false
	}
	if !l.dirty {
		l.meta = meta
	}
	if last < l.next {
		return false
	}
	l.tail, l.first, l.next, l.previous = nil, last+1, last+1, ""
	l.wake()
	return true
}

// Cut removes events from a number on and appends marker in their place. Readers that
// are further see the marker next.
func (l *Log) Cut(from event.Seq, marker event.Body) error {
	return l.replace(func(e event.Event) error { return l.store.Cut(context.Background(), l.meta, from, e) }, 0, marker)
}

// Adopt removes all events, appends marker, and takes over those of another chat in
// front of a number.
func (l *Log) Adopt(other string, end event.Seq, marker event.Body) error {
	return l.replace(func(e event.Event) error {
		if err := l.store.Cut(context.Background(), l.meta, 1, e); err != nil {
			return err
		}
		return l.store.Copy(context.Background(), other, l.meta, end, e.Seq)
	}, end, marker)
}

// replace changes what is stored and then forgets what is in memory. room is how many
// numbers behind the marker change takes.
func (l *Log) replace(change func(event.Event) error, room event.Seq, marker event.Body) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if l.flush(); l.pending > 0 {
		return ErrNotStored
	}
	e := l.event("", marker)
	l.meta.Updated = e.Time
	if err := change(e); err != nil {
		return err
	}
	l.dirty = false
	l.next += 1 + room
	l.tail, l.first, l.previous = nil, l.next, ""
	l.wake()
	return nil
}

// Close stores what is left and ends all readers.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.flush()
		l.closed = true
		l.wake()
	}
}

func (l *Log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Log) add(turn string, b event.Body) *entry {
	l.seal()
	e := &entry{Event: l.event(turn, b)}
	l.next++
	l.tail = append(l.tail, e)
	l.pending++
	return e
}

// event makes the next event.
func (l *Log) event(turn string, b event.Body) event.Event {
	e := event.Event{Seq: l.next, Turn: turn, Time: l.now().UTC().Truncate(time.Millisecond), Body: b, Begins: event.Begins(l.previous, b)}
	if !event.Aside(b) {
		l.previous = event.KindOf(b)
	}
	return e
}

// extend grows the open delta entry, or opens one.
func (l *Log) extend(turn string, kind event.Kind, id, text string) {
	if n := len(l.tail); n > 0 && !l.separate {
		if e := l.tail[n-1]; e.open && event.KindOf(e.Body) == kind && e.id == id && e.Turn == turn {
			e.text = append(e.text, text...)
			return
		}
	}
	e := l.add(turn, deltaBody(kind, id, ""))
	e.open, e.id, e.text = true, id, append([]byte(nil), text...)
}

// seal closes the open entry, if any: it will not grow any more.
func (l *Log) seal() {
	if n := len(l.tail); n > 0 && l.tail[n-1].open {
		e := l.tail[n-1]
		e.open = false
		e.Body = deltaBody(event.KindOf(e.Body), e.id, string(e.text))
		e.text = nil
	}
}

func deltaBody(kind event.Kind, id, text string) event.Body {
	switch kind {
	case event.KindOf(event.TextDelta{}):
		return event.TextDelta{Text: text}
	case event.KindOf(event.ReasoningDelta{}):
		return event.ReasoningDelta{ID: id, Text: text}
	default:
		return event.ToolArgsDelta{CallID: id, Text: text}
	}
}

func (l *Log) flushLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	l.flush()
	l.wake() // a failure to store is news
}

// flush stores what is pending.
func (l *Log) flush() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.seal()
	if l.pending == 0 {
		return
	}
	batch := make([]event.Event, 0, l.pending)
	for _, e := range l.tail[len(l.tail)-l.pending:] {
		if _, volatile := e.Body.(event.Progress); !volatile {
			batch = append(batch, e.Event)
		}
	}
	if len(batch) > 0 {
		l.meta.Updated = batch[len(batch)-1].Time
		if err := l.append(batch); err != nil {
			l.storeFailed(err)
			return
		}
	}
	l.failing = false
	l.pending = 0
	l.trim()
}

// append stores events, and meta if it was changed here: otherwise another process may
// have changed it.
func (l *Log) append(batch []event.Event) error {
	if !l.dirty {
		err := l.store.Extend(context.Background(), l.meta.ID, batch)
		if !errors.Is(err, ErrNoChat) {
			return err
		}
		// Another process deleted the chat in the middle of a turn; what the user sees goes on.
	}
	err := l.store.Append(context.Background(), l.meta, batch)
	if err == nil {
		l.dirty = false
	}
	return err
}

// trim drops the oldest entries beyond what the tail may hold. All are stored.
func (l *Log) trim() {
	keep, bytes := 0, 0
	for keep < len(l.tail) && keep < maxTail {
		bytes += weight(l.tail[len(l.tail)-1-keep].Body)
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
	l.add("", event.Notice{Text: "\n\nThis chat cannot be saved at the moment and is not kept when eca ends: " + err.Error() + "\n"})
}
