package eventlog

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/bug"
)

// Reader is a cursor into a log. Not safe for concurrent use.
type Reader struct {
	log  *Log
	seq  event.Seq     // next entry
	off  int           // bytes of that entry's text that were already delivered
	page []event.Event // read from the store, not delivered yet
}

// Read returns a reader that starts at the event with sequence number from.
func (l *Log) Read(from event.Seq) *Reader { return &Reader{log: l, seq: max(from, 1)} }

// ReadAt returns a reader that starts inside the event seq, after the first off bytes of its text.
func (l *Log) ReadAt(seq event.Seq, off int) *Reader {
	r := l.Read(seq)
	r.off = max(off, 0)
	return r
}

// Next waits for the next event and returns it; ok is false if the log is closed or ctx is done.
// A delta may be delivered in several pieces with the same sequence number.
func (r *Reader) Next(ctx context.Context) (e event.Event, ok bool, err error) {
	return r.next(ctx, true)
}

// Try returns the next event if there is one, without waiting for new events.
func (r *Reader) Try(ctx context.Context) (e event.Event, ok bool, err error) {
	return r.next(ctx, false)
}

// Position returns the sequence number of the next event, or of the last delta if that delta can
// still grow.
func (r *Reader) Position() event.Seq { return r.seq }

// Offset returns the number of bytes of the event at Position that were delivered.
func (r *Reader) Offset() int { return r.off }

// Events yields the events from sequence number from on, and then new ones, until ctx is done or
// the log is closed.
func (l *Log) Events(ctx context.Context, from event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := l.Read(from)
		for {
			e, ok, err := r.Next(ctx)
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

// next returns the next event; ok is false if the log is closed, ctx is done, or there is no event
// and mayWait is false.
func (r *Reader) next(ctx context.Context, mayWait bool) (e event.Event, ok bool, err error) {
	for {
		if len(r.page) > 0 {
			e := r.page[0]
			more := r.advance(&e, false)
			if r.seq > e.Seq {
				r.page = r.page[1:]
			}
			if more {
				return e, true, nil
			}
			continue
		}
		e, ok, stored, unwritten, wait := r.fromTail()
		if ok {
			return e, true, nil
		}
		if unwritten {
			r.log.writeAhead()
			continue
		}
		if stored > 0 {
			if err := retryRead(ctx, func() error { return r.load(ctx, stored) }); err != nil {
				if ctx.Err() != nil {
					return event.Event{}, false, nil //nolint:nilerr // the caller gave up; the store may be fine
				}
				return event.Event{}, false, err
			}
			continue
		}
		if wait == nil || !mayWait {
			return event.Event{}, false, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return event.Event{}, false, nil
		}
	}
}

// fromTail returns the next event, with ok set, if it is in memory and may be shown. Otherwise it sets
// one of the other results:
//   - stored, if the next event must be read from the store: all events before stored are in it;
//   - unwritten, if the next event is a delta that has to be written ahead first;
//   - wait, a channel that is closed when the log changes.
//
// If the log is closed, it sets none of them.
func (r *Reader) fromTail() (e event.Event, ok bool, stored event.Seq, unwritten bool, wait chan struct{}) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replacing {
		return event.Event{}, false, 0, false, l.changed
	}
	if r.seq < l.tailStart {
		return event.Event{}, false, l.tailStart, false, nil
	}
	for i := int(r.seq - l.tailStart); i < len(l.tail); i++ {
		en := l.tail[i]
		if en.Seq != r.seq {
			bug.Reportf("log tail has a gap: want %d, have %d", r.seq, en.Seq)
		}
		grows := en.open
		text := en.text
		if en.Seq >= l.visibleEnd {
			if structural(en.Body) {
				break // it is being stored
			}
			text = en.textSoFar()
			if r.off >= en.writtenAhead && en.writtenAhead < len(text) {
				return event.Event{}, false, 0, true, nil
			}
			grows = grows || en.writtenAhead < len(text)
			text = text[:en.writtenAhead]
		}
		e = en.Event
		if grows {
			start := min(r.off, len(text)) // the offset given to ReadAt may be too large
			e.Body = withText(en.Body, string(text[start:cutRune(text, start, start+maxPiece)]))
		}
		if r.advance(&e, grows) {
			return e, true, 0, false, nil
		}
		if grows {
			break
		}
	}
	if l.closed {
		return event.Event{}, false, 0, false, nil
	}
	return event.Event{}, false, 0, false, l.changed
}

// advance moves the cursor past e. If e is a delta, advance first cuts it to its next piece, and moves
// the cursor past that piece; if open is true, the text of e is already that piece. It reports whether
// e has anything to deliver.
func (r *Reader) advance(e *event.Event, open bool) bool {
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

// Reads of the store may fail temporarily (another process has locked it, a disk is slow), and
// clients wait for readers. So reads are retried, with pauses that double.
const (
	firstReadPause = 10 * time.Millisecond
	lastReadPause  = 640 * time.Millisecond
)

// retryRead repeats a read until it succeeds, ctx is done, or the last pause is over.
func retryRead(ctx context.Context, read func() error) error {
	for pause := firstReadPause; ; pause *= 2 {
		err := read()
		if err == nil || pause > lastReadPause || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// Each calls fn with each stored event of a chat from sequence number from on.
func Each(ctx context.Context, store Store, id string, from event.Seq, fn func(event.Event)) error {
	_, err := Find(ctx, store, id, from, func(e event.Event) bool {
		fn(e)
		return false
	})
	return err
}

// Find calls fn like Each until it returns true, and reports whether it did.
func Find(ctx context.Context, store Store, id string, from event.Seq, fn func(event.Event) bool) (found bool, err error) {
	const page = 512
	for {
		var events []event.Event
		err := retryRead(ctx, func() (err error) {
			events, err = store.Events(ctx, id, from, page)
			return err
		})
		if err != nil {
			return false, fmt.Errorf("the chat cannot be read: %w", err)
		}
		for _, e := range events {
			if fn(e) {
				return true, nil
			}
			from = e.Seq + 1
		}
		if len(events) < page {
			return false, nil
		}
	}
}

// load fills the page with stored events before sequence number end.
func (r *Reader) load(ctx context.Context, end event.Seq) error {
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

// cutRune moves end back to a rune boundary, so that a piece is valid UTF-8.
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

// deltaText returns the text of a delta; ok is false for other events.
func deltaText(b event.Body) (text string, ok bool) {
	d, ok := b.(event.Delta)
	if !ok {
		return "", false
	}
	return d.Piece(), true
}

func withText(delta event.Body, text string) event.Body { return delta.(event.Delta).WithPiece(text) }
