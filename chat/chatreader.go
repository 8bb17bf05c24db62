package chat

import (
	"context"
	"iter"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/transcript"
)

// chatReader reads a chat from its log and from the store. It does not wait for the session's
// goroutine.
type chatReader struct {
	id  string
	eng *Engine
	log *eventlog.Log
}

// ID returns the chat's id.
func (r *chatReader) ID() string { return r.id }

// Meta returns the metadata of the chat.
func (r *chatReader) Meta() Meta { return r.log.Meta() }

// Next returns the sequence number of the next event. A reader that starts there gets new events
// only.
func (r *chatReader) Next() event.Seq { return r.log.Next() }

// FlushedSeq stores all events, closing a delta that may still grow, and returns the sequence number
// after them. A reader reaches that position even if no further event follows.
func (r *chatReader) FlushedSeq() event.Seq {
	next := r.log.Next() // before the flush: a delta that begins during it may still grow
	r.log.Flush()
	return next
}

// ReadAt returns a reader that starts inside the event seq, after the first off bytes of its text.
func (r *chatReader) ReadAt(seq event.Seq, off int) *eventlog.Reader { return r.log.ReadAt(seq, off) }

// Read returns a reader that starts at the event with sequence number from.
func (r *chatReader) Read(from event.Seq) *eventlog.Reader { return r.log.Read(from) }

// Events yields the events from sequence number from on, and then new ones, until ctx is done or
// the session is closed. See package eventlog for its guarantees.
func (r *chatReader) Events(ctx context.Context, from event.Seq) iter.Seq2[event.Event, error] {
	return r.log.Events(ctx, from)
}

// Window selects messages of the chat, including those of a turn that runs.
func (r *chatReader) Window(ctx context.Context, w Window) (Span, error) {
	r.log.Flush()
	return r.eng.deps.Store.Window(ctx, r.id, w)
}

// LastCompaction returns the position of the chat's last compaction, if there is one.
func (r *chatReader) LastCompaction(ctx context.Context) (Cursor, bool, error) {
	return r.eng.deps.Store.Find(ctx, r.id, event.CompactionID, true)
}

// Event returns the event with a sequence number; ok is false if the log does not have it.
func (r *chatReader) Event(ctx context.Context, seq event.Seq) (event.Event, bool, error) {
	e, ok, err := r.Read(seq).Try(ctx)
	if err != nil || !ok || e.Seq != seq {
		return event.Event{}, false, err
	}
	return e, true, nil
}

// Call returns the state of a tool call right before its result, for readers that start between the
// beginning of the call and its result. found is false if the call does not exist.
func (r *chatReader) Call(ctx context.Context, callID string) (c transcript.Call, found bool, err error) {
	at, found, err := r.eng.deps.Store.Find(ctx, r.id, callID, false)
	if err != nil || !found {
		return c, false, err
	}
	reader, fold := r.Read(at.Seq), transcript.New()
	for {
		e, ok, err := reader.Try(ctx)
		if err != nil {
			return transcript.Call{}, false, err
		}
		if !ok || endsCall(callID, e.Body) {
			c, found = fold.Call(callID)
			return c, found && c.Name != "", nil
		}
		fold.Add(e)
	}
}

// endsCall reports whether an event ends a tool call.
func endsCall(callID string, body event.Body) bool {
	switch b := body.(type) {
	case event.ToolFinished:
		return b.CallID == callID
	case event.ToolRejected:
		return b.CallID == callID
	case event.TurnFinished:
		return true
	default:
		return false
	}
}

// each calls fn with each stored event from sequence number from on.
func (r *chatReader) each(ctx context.Context, from event.Seq, fn func(event.Event)) error {
	return eventlog.Each(ctx, r.eng.deps.Store, r.id, from, fn)
}

// fileChanges returns the events from sequence number from on that Files.Rollback needs.
func (r *chatReader) fileChanges(ctx context.Context, from event.Seq) (changes []event.Event, err error) {
	r.log.Flush()
	err = r.each(ctx, from, func(e event.Event) {
		switch e.Body.(type) {
		case event.FileChanged, event.UndoPoint, event.ToolFinished, event.ToolRejected:
			changes = append(changes, e)
		default:
		}
	})
	return changes, err
}

// Child calls fn with the events in a subagent's chat that belong to one call of its parent, in
// order. It stores pending events first, so that they are included. ended reports whether the
// subagent's turn for the call has ended.
func (r *chatReader) Child(ctx context.Context, chatID, callID string, fn func(event.Event)) (ended bool, err error) {
	if !IsSubagent(chatID) { // an imported chat may name any chat
		return false, nil
	}
	if open, ok := r.eng.Lookup(chatID); ok {
		open.log.Flush()
	}
	err = eventlog.Each(ctx, r.eng.deps.Store, chatID, 1, func(e event.Event) {
		if e.Turn != callID {
			return
		}
		_, over := e.Body.(event.TurnFinished)
		ended = ended || over
		fn(e)
	})
	return ended, err
}
