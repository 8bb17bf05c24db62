package chat

import (
	"context"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/bug"
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
	store Store
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex // guards what follows
	meta    Meta
	tail    []*entry      // contiguous; tail[0].seq == first
	first   event.Seq     // seq of tail[0], or next if the tail is empty
	next    event.Seq     // seq of the next entry
	pending int           // entries at the end of the tail that are not stored yet
	timer   *time.Timer   // runs while deltas wait to be stored
	changed chan struct{} // closed and replaced when something is appended
	failing bool          // the last attempt to store failed
	closed  bool
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
		first: last + 1, next: last + 1, changed: make(chan struct{}),
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

// Refresh takes over what another process appended since.
func (l *Log) Refresh(meta Meta, last event.Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last < l.next || l.pending > 0 {
		return
	}
	l.meta = meta
	l.tail, l.first, l.next = nil, last+1, last+1
	l.wake()
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
	e := &entry{Event: event.Event{Seq: l.next, Turn: turn, Time: l.now().UTC().Truncate(time.Millisecond), Body: b}}
	l.next++
	l.tail = append(l.tail, e)
	l.pending++
	return e
}

// extend grows the open delta entry, or opens one.
func (l *Log) extend(turn string, kind event.Kind, id, text string) {
	if n := len(l.tail); n > 0 {
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
		if err := l.store.Append(context.Background(), l.meta, batch); err != nil {
			l.storeFailed(err)
			return
		}
	}
	l.failing = false
	l.pending = 0
	l.trim()
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
	l.log.Error("chat could not be stored", "chat", l.meta.ID, "err", err)
	if l.failing {
		return
	}
	l.failing = true
	l.add("", event.Notice{Text: "\n\nThis chat can not be saved at the moment and will be lost when eca ends: " + err.Error() + "\n"})
}

// Events yields events from a number on, then waits for more until ctx or the log
// ends. Deltas of one entry may come in several pieces with the same number.
func (l *Log) Events(ctx context.Context, from event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := reader{log: l, seq: max(from, 1)}
		for {
			e, ok, err := r.next(ctx)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if !ok || !yield(e, nil) {
				return
			}
		}
	}
}

// reader is a cursor into a log.
type reader struct {
	log  *Log
	seq  event.Seq // next entry
	off  int       // bytes of it already seen
	page []event.Event
}

// next returns the next event; ok is false when the log is closed or ctx ended.
func (r *reader) next(ctx context.Context) (e event.Event, ok bool, err error) {
	for {
		if len(r.page) > 0 {
			e := r.page[0]
			more := r.take(&e, false)
			if r.seq > e.Seq {
				r.page = r.page[1:]
			}
			if more {
				return e, true, nil
			}
			continue
		}
		e, ok, stored, wait := r.fromTail()
		if ok {
			return e, true, nil
		}
		if stored > 0 {
			if err := r.load(ctx, stored); err != nil {
				if ctx.Err() != nil {
					return event.Event{}, false, nil //nolint:nilerr // the reader gave up, nothing failed
				}
				return event.Event{}, false, err
			}
			continue
		}
		if wait == nil {
			return event.Event{}, false, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return event.Event{}, false, nil
		}
	}
}

// fromTail returns the next event if it is in memory; else the number before which
// the store has it; else a channel that closes when there is more (nil if there will
// be none).
func (r *reader) fromTail() (e event.Event, ok bool, stored event.Seq, wait chan struct{}) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.seq < l.first {
		return event.Event{}, false, l.first, nil
	}
	for i := int(r.seq - l.first); i < len(l.tail); i++ {
		en := l.tail[i]
		if en.Seq != r.seq {
			bug.Reportf("log tail has a gap: want %d, have %d", r.seq, en.Seq)
		}
		e = en.Event
		if en.open {
			e.Body = deltaBody(event.KindOf(en.Body), en.id, string(en.text[r.off:cutRune(en.text, r.off, r.off+maxPiece)]))
		}
		if r.take(&e, en.open) {
			return e, true, 0, nil
		}
		if en.open {
			break
		}
	}
	if l.closed {
		return event.Event{}, false, 0, nil
	}
	return event.Event{}, false, 0, l.changed
}

// take moves the cursor over e, cutting a delta to the next piece. It reports
// whether something is left to yield. The text of an open entry is already the piece.
func (r *reader) take(e *event.Event, open bool) bool {
	text, isDelta := deltaText(e.Body)
	if !isDelta {
		r.seq, r.off = e.Seq+1, 0
		return true
	}
	if open {
		r.off += len(text)
		return text != ""
	}
	start := min(r.off, len(text))
	end := cutRune([]byte(text), start, start+maxPiece)
	e.Body = withText(e.Body, text[start:end])
	if end == len(text) {
		r.seq, r.off = e.Seq+1, 0
	} else {
		r.off = end
	}
	return start < end
}

// load fills the page from the store with events before number end.
func (r *reader) load(ctx context.Context, end event.Seq) error {
	page, err := r.log.store.Events(ctx, r.log.Meta().ID, r.seq, pageSize)
	if err != nil {
		return err
	}
	for i, e := range page {
		if e.Seq >= end {
			page = page[:i]
			break
		}
	}
	if len(page) == 0 {
		r.seq, r.off = end, 0
	} else if page[0].Seq != r.seq {
		r.seq, r.off = page[0].Seq, 0
	}
	r.page = page
	return nil
}

// cutRune moves end back to a rune boundary, so that a piece is valid text.
func cutRune(text []byte, start, end int) int {
	if end >= len(text) {
		return len(text)
	}
	for i := end; i > start; i-- {
		if text[i]&0xC0 != 0x80 {
			return i
		}
	}
	return end
}

func deltaText(b event.Body) (string, bool) {
	switch b := b.(type) {
	case event.TextDelta:
		return b.Text, true
	case event.ReasoningDelta:
		return b.Text, true
	case event.ToolArgsDelta:
		return b.Text, true
	}
	return "", false
}

func withText(b event.Body, text string) event.Body {
	switch b := b.(type) {
	case event.ReasoningDelta:
		b.Text = text
		return b
	case event.ToolArgsDelta:
		b.Text = text
		return b
	}
	return event.TextDelta{Text: text}
}

// weight estimates the memory of an event, for the bound of the tail.
func weight(b event.Body) int {
	n := 256
	switch b := b.(type) {
	case event.UserMessage:
		n += len(b.Text)
		for _, c := range b.Context {
			n += len(c.Text)
		}
	case event.ToolJudged:
		n += len(b.Arguments) + detailsWeight(b.Details)
	case event.ToolFinished:
		n += detailsWeight(b.Details)
		for _, o := range b.Outputs {
			n += len(o)
		}
	case event.ReasoningFinished:
		n += len(b.Opaque)
	default:
		text, _ := deltaText(b)
		n += len(text)
	}
	return n
}

func detailsWeight(d *event.Details) int {
	n := 0
	if d != nil && d.FileChange != nil {
		n += len(d.FileChange.Diff)
	}
	if d != nil && d.ShellCommand != nil {
		for _, c := range d.ShellCommand.Commands {
			n += len(c.Name) + len(strings.Join(c.Args, " "))
		}
	}
	return n
}
