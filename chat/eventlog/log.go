// Package eventlog is the event log of one chat. It numbers events, stores them, and delivers them
// to any number of readers.
//
// It guarantees that every event a reader has seen is persisted, except progress; that every reader
// gets every event exactly once and in order; and that a slow reader does not delay the others. It does not
// interpret events, except that it distinguishes deltas, events that are never stored, and all others.
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
	flushDelay   = 50 * time.Millisecond // longest time before a delta is appended to the store
	maxTail      = 256                   // stored entries kept in memory for readers
	maxTailBytes = 256 << 10             // estimated size of these entries
	maxPiece     = 16 << 10              // bytes of a delta that a reader gets in one event
	pageSize     = 256                   // events per read of the store
)

// Log is the sequence of a chat's events.
//
// Every event that a reader has seen, except progress, survives a crash. Structural events (all
// stored events that are not deltas) are appended to the store before any reader sees them. Deltas
// of text, reasoning and arguments are written ahead (Store.WriteAhead) when the first reader takes
// them, and appended within flushDelay. Adjacent deltas are merged into one open entry. A
// reader that keeps up gets each delta. One that falls behind gets the accumulated text, which is
// written ahead once. Progress is never stored.
//
// Each reader has its own cursor. A slow reader costs no memory, because stored entries leave the
// tail and are read back from the store.
//
// If the store fails, the log continues in memory, reports the failure once, and tries again with
// the next event: a full disk must not end the conversation.
type Log struct {
	store    Store
	now      func() time.Time
	log      *slog.Logger
	unmerged bool // deltas are never merged

	// storeMu serializes writes to the store. It is locked before mu, and mu is never held
	// during a write: Meta and Next do not wait for the disk.
	storeMu sync.Mutex

	mu   sync.Mutex // guards the fields below
	meta Meta
	// metaVersion counts the changes of meta in memory; storedMetaVersion is the version that
	// the store has. They are equal if meta has no unsaved changes.
	metaVersion, storedMetaVersion int

	tail       []*entry      // the newest entries, without gaps; tail[0].Seq == tailStart
	tailStart  event.Seq     // sequence number of tail[0], or next if the tail is empty
	nextSeq    event.Seq     // sequence number of the next entry
	storedEnd  event.Seq     // all entries before this one are stored
	visibleEnd event.Seq     // readers may see all entries before this one: they are stored, or storing them failed
	timer      *time.Timer   // flushes the pending deltas; nil if none are pending
	changed    chan struct{} // closed and replaced when readers should look again
	failing    bool          // the last attempt to store failed
	closed     bool
	// replacing is true during Cut and Adopt, while the store replaces events. Readers wait: the
	// event that replaces them (see Cut) already has a sequence number, but is not stored yet.
	replacing bool

	previous event.Kind // kind of the last event, ignoring those that may occur within a run of text (event.InterleavesText)
}

// entry is one event. An open entry is a delta to which further deltas are added.
type entry struct {
	event.Event
	open         bool
	text         []byte // text of an open entry; a sealed entry has it in Body
	writtenAhead int    // bytes of a delta's text
	size         int    // estimated memory, computed by weight
}

// memorySize estimates the memory of a sealed entry.
func (e *entry) memorySize() int {
	const overhead = 256
	if e.size == 0 {
		e.size = overhead + event.Size(e.Body)
	}
	return e.size
}

// textSoFar returns the text of a delta so far, or nothing for other events.
func (e *entry) textSoFar() []byte {
	if e.open {
		return e.text
	}
	text, _ := deltaText(e.Body)
	return []byte(text)
}

// New returns the log of a chat. last is the sequence number of its last stored event, or 0 for a
// new chat. If unmerged is true, deltas are not merged.
func New(store Store, meta Meta, last event.Seq, unmerged bool, now func() time.Time, logger *slog.Logger) *Log {
	l := &Log{store: store, now: now, log: logger, unmerged: unmerged, meta: meta, changed: make(chan struct{})}
	if last == 0 {
		l.metaVersion = 1
	}
	l.resetTail(last + 1)
	return l
}

// resetTail drops the entries in memory. next is the sequence number of the next entry.
func (l *Log) resetTail(next event.Seq) {
	l.tail, l.tailStart, l.nextSeq, l.storedEnd, l.visibleEnd, l.previous = nil, next, next, next, next, ""
}

// Append adds events of a turn. When it returns, readers can see the structural events, and these
// are stored. If the store fails, readers get a notice instead.
func (l *Log) Append(turn string, bodies ...event.Body) {
	storeNow := slices.ContainsFunc(bodies, structural)
	if storeNow {
		l.storeMu.Lock()
		defer l.storeMu.Unlock()
	}
	if l.add(turn, bodies, !storeNow) && storeNow {
		l.flush()
	}
}

// structural reports whether an event is stored before any reader sees it.
func structural(b event.Body) bool {
	_, delta := b.(event.Delta)
	return !delta && !event.Volatile(b)
}

// add adds events to the tail; it returns false if the log is closed. If storeLater is true, readers may
// see the events immediately, and a timer stores them; otherwise the caller stores them.
func (l *Log) add(turn string, bodies []event.Body, storeLater bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	for _, b := range bodies {
		if d, ok := b.(event.Delta); ok {
			l.appendDelta(turn, d)
		} else {
			l.addEntry(turn, b)
		}
	}
	if storeLater {
		if l.timer == nil && l.pending() {
			l.timer = time.AfterFunc(flushDelay, l.Flush)
		}
		l.wake()
	}
	return true
}

// SetMeta changes the metadata in memory. It is stored with the next event.
func (l *Log) SetMeta(change func(*Meta)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.meta)
	l.metaVersion++
}

// Change changes the metadata immediately, in memory and in the store, and picks up changes that
// another process made to it. If the metadata has unsaved changes, this change joins them and is
// stored with the next event.
func (l *Log) Change(change func(*Meta)) error {
	l.storeMu.Lock()
	defer l.storeMu.Unlock()
	l.mu.Lock()
	id, dirty := l.meta.ID, l.dirty()
	if dirty {
		change(&l.meta)
		l.metaVersion++
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
	if l.dirty() { // SetMeta changed it during the write
		change(&l.meta)
	} else {
		l.meta = meta
	}
	return nil
}

// dirty reports whether meta has unsaved changes. The caller holds mu.
func (l *Log) dirty() bool { return l.metaVersion != l.storedMetaVersion }

// Meta returns the metadata of the chat.
func (l *Log) Meta() Meta {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.meta
}

// Next returns the sequence number of the next event.
func (l *Log) Next() event.Seq {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nextSeq
}

// Unsaved reports whether any events are not stored yet.
func (l *Log) Unsaved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending()
}

// pending is Unsaved for a caller that holds mu.
func (l *Log) pending() bool { return l.storedEnd < l.nextSeq }

// Flush stores all pending events, unless the store fails.
func (l *Log) Flush() {
	l.storeMu.Lock()
	defer l.storeMu.Unlock()
	l.flush()
}

// Refresh picks up changes that another process made to the chat: new metadata, new events
// (changed), or its deletion (deleted). It does nothing while events are pending, because no other process can
// have changed the chat then.
func (l *Log) Refresh(ctx context.Context) (changed, deleted bool, err error) {
	l.storeMu.Lock()
	defer l.storeMu.Unlock()
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
		return false, l.nextSeq > 1, nil
	case !l.dirty():
		l.meta = meta
	}
	if last < l.nextSeq || l.pending() {
		return false, false, nil
	}
	l.resetTail(last + 1)
	l.wake()
	return true, false, nil
}

// Cut removes the messages that begin at or after start, and appends marker. Readers that are beyond
// start get marker as their next event.
func (l *Log) Cut(start event.Seq, marker event.Body) error {
	return l.replace(func(meta Meta, e event.Event) error {
		return l.store.Cut(context.Background(), meta, start, e)
	}, 0, marker, func(*Meta) {})
}

// Adopt replaces all messages with marker, followed by a copy of the messages of another chat,
// source, that begin before limit, and changes the metadata. If it returns an error, nothing is changed.
func (l *Log) Adopt(source string, limit event.Seq, marker event.Body, change func(*Meta)) error {
	return l.replace(func(meta Meta, e event.Event) error {
		return l.store.Adopt(context.Background(), meta, source, limit, e)
	}, limit, marker, change)
}

// replace calls write to replace stored events, and drops the entries in memory. reserved is the
// number of sequence numbers after the marker that write may use.
func (l *Log) replace(write func(Meta, event.Event) error, reserved event.Seq, marker event.Body, change func(*Meta)) error {
	l.storeMu.Lock()
	defer l.storeMu.Unlock()
	l.flush()
	l.mu.Lock()
	if l.closed || l.pending() {
		defer l.mu.Unlock()
		if l.closed {
			return ErrClosed
		}
		return ErrNotStored
	}
	e, version := l.event("", marker), l.metaVersion
	meta := l.meta
	change(&meta)
	meta.Updated = e.Time
	// The sequence numbers are used up even if write fails: readers skip the gap.
	l.resetTail(l.nextSeq + 1 + reserved)
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
	if l.metaVersion == version {
		l.meta, l.storedMetaVersion = meta, version
	} else { // SetMeta changed it during the write
		change(&l.meta)
	}
	return nil
}

// Close stores the pending events and ends all readers.
func (l *Log) Close() {
	l.storeMu.Lock()
	defer l.storeMu.Unlock()
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
	l.nextSeq++
	l.tail = append(l.tail, e)
	return e
}

// event returns the next event, without adding it to the tail.
func (l *Log) event(turn string, b event.Body) event.Event {
	e := event.Event{Seq: l.nextSeq, Turn: turn, Time: l.now().UTC().Truncate(time.Millisecond), Body: b, Begins: event.Begins(l.previous, b)}
	if !event.InterleavesText(b) {
		l.previous = event.KindOf(b)
	}
	return e
}

// appendDelta adds a delta to the open entry if it continues that entry, or opens a new one.
func (l *Log) appendDelta(turn string, d event.Delta) {
	empty := d.WithPiece("")
	if n := len(l.tail); n > 0 && !l.unmerged {
		if e := l.tail[n-1]; e.open && e.Body == empty && e.Turn == turn {
			e.text = append(e.text, d.Piece()...)
			return
		}
	}
	e := l.addEntry(turn, empty)
	e.open, e.text = true, []byte(d.Piece())
}

// seal closes the open entry, if any.
func (l *Log) seal() {
	if n := len(l.tail); n > 0 && l.tail[n-1].open {
		e := l.tail[n-1]
		e.open = false
		e.Body = withText(e.Body, string(e.text))
		e.text = nil
	}
}

// flush stores the pending events. The caller holds storeMu.
func (l *Log) flush() {
	l.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.seal()
	var batch []event.Event
	for _, e := range l.unsavedEntries() {
		if !event.Volatile(e.Body) {
			batch = append(batch, e.Event)
		}
	}
	if len(batch) > 0 {
		l.meta.Updated = batch[len(batch)-1].Time
	}
	meta, version, dirty, end := l.meta, l.metaVersion, l.dirty(), l.nextSeq
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
		l.visibleEnd = l.nextSeq
		return
	}
	if len(batch) > 0 && dirty {
		l.storedMetaVersion = version
	}
	l.failing = false
	l.storedEnd, l.visibleEnd = end, max(l.visibleEnd, end)
	l.trim()
}

// unsavedEntries returns the entries that are not stored yet. The caller holds mu.
func (l *Log) unsavedEntries() []*entry { return l.tail[l.storedEnd-l.tailStart:] }

// write stores events. It stores meta only if it has unsaved changes (dirty), so as not to
// overwrite another process's changes; withMeta reports whether it did.
func (l *Log) write(meta Meta, dirty bool, batch []event.Event) (withMeta bool, err error) {
	if !dirty {
		err := l.store.Extend(context.Background(), meta.ID, batch)
		if !errors.Is(err, ErrNoChat) {
			return false, err
		}
		// Another process deleted the chat during a turn. Store it again: the user still sees it.
	}
	return true, l.store.Append(context.Background(), meta, batch)
}

// writeAhead persists the deltas that are not stored yet, so that readers may see them.
func (l *Log) writeAhead() {
	l.storeMu.Lock()
	defer l.storeMu.Unlock()
	var list []event.Event
	var sources []*entry
	l.mu.Lock()
	id := l.meta.ID
	for _, e := range l.unsavedEntries() {
		text := e.textSoFar()
		if len(text) == e.writtenAhead {
			continue
		}
		piece := e.Event
		piece.Body = withText(e.Body, string(text[e.writtenAhead:]))
		list, sources = append(list, piece), append(sources, e)
	}
	l.mu.Unlock()
	if len(list) == 0 {
		return
	}
	if err := l.store.WriteAhead(context.Background(), id, list); err != nil {
		l.log.Debug("could not write deltas ahead; storing them directly", "chat", id, "err", err)
		l.flush()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range sources {
		text, _ := deltaText(list[i].Body)
		e.writtenAhead += len(text)
	}
}

// trim drops the oldest stored entries until the tail is within its limits.
func (l *Log) trim() {
	keep, bytes := len(l.unsavedEntries()), 0
	for keep < len(l.tail) && keep < maxTail {
		bytes += l.tail[len(l.tail)-1-keep].memorySize()
		if bytes > maxTailBytes {
			break
		}
		keep++
	}
	l.tail = append([]*entry(nil), l.tail[len(l.tail)-keep:]...)
	l.tailStart = l.nextSeq - event.Seq(keep)
}

func (l *Log) storeFailed(err error) {
	if l.failing {
		return
	}
	l.log.Warn("cannot store a chat", "chat", l.meta.ID, "err", err)
	l.failing = true
	what := "This chat"
	if l.storedEnd > 1 {
		what = "New messages of this chat"
	}
	l.addEntry("", event.Notice{Text: "\n\n" + what + " cannot be saved at the moment and will be lost when eca exits: " + err.Error() + "\n"})
}
