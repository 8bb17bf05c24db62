package chat

import (
	"context"
	"iter"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/transcript"
)

// chatReader reads a chat: what is in its log, and what the store has of it. It does not wait for
// the session's goroutine.
type chatReader struct {
	id  string
	eng *Engine
	log *eventlog.Log
}

// ID returns the chat's id.
func (r *chatReader) ID() string { return r.id }

// Meta returns what is known about the chat.
func (r *chatReader) Meta() Meta { return r.log.Meta() }

// Next returns the number of the next event: where a reader starts that wants only
// what is new.
func (r *chatReader) Next() event.Seq { return r.log.Next() }

// FlushedSeq is Next once the event that grows, if one does, has ended: a reader gets there
// although nothing more happens.
func (r *chatReader) FlushedSeq() event.Seq {
	next := r.log.Next() // read before: an event that begins while the log is flushed may still grow
	r.log.Flush()
	return next
}

// ReadAt returns a reader that has seen off bytes of the event with a number.
func (r *chatReader) ReadAt(seq event.Seq, off int) *eventlog.Reader { return r.log.ReadAt(seq, off) }

// Read returns a reader of the chat's events that starts at a number.
func (r *chatReader) Read(from event.Seq) *eventlog.Reader { return r.log.Read(from) }

// Events yields the chat's events from a number on, and then new ones, until ctx or
// the session ends. Every reader has its own cursor and gets every event; see package eventlog.
func (r *chatReader) Events(ctx context.Context, from event.Seq) iter.Seq2[event.Event, error] {
	return r.log.Events(ctx, from)
}

// Window selects messages of the chat, up to what has been said until now.
func (r *chatReader) Window(ctx context.Context, w Window) (Span, error) {
	r.log.Flush()
	return r.eng.deps.Store.Window(ctx, r.id, w)
}

// LastCompaction returns the position of the chat's last compaction, if there is one.
func (r *chatReader) LastCompaction(ctx context.Context) (Cursor, bool, error) {
	return r.eng.deps.Store.Find(ctx, r.id, event.CompactionName, true)
}

// Event returns one event by its number.
func (r *chatReader) Event(ctx context.Context, seq event.Seq) (event.Event, bool, error) {
	e, ok, err := r.Read(seq).Try(ctx)
	if err != nil || !ok || e.Seq != seq {
		return event.Event{}, false, err
	}
	return e, true, nil
}

// Call returns a tool call as it was before its result: what a reader needs that starts after
// its beginning. With an error, that is not known.
func (r *chatReader) Call(ctx context.Context, callID string) (c transcript.Call, found bool, err error) {
	at, found, err := r.eng.deps.Store.Find(ctx, r.id, callID, false)
	if err != nil || !found {
		return c, false, err
	}
	for reader, fold := r.Read(at.Seq), transcript.New(); ; {
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

// endsCall says whether nothing more comes of a call before its result.
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

// each calls fn with the stored events from a number on.
func (r *chatReader) each(ctx context.Context, from event.Seq, fn func(event.Event)) error {
	return eventlog.Each(ctx, r.eng.deps.Store, r.id, from, fn)
}

// fileChanges returns what Files.Rollback needs to undo the changes to files from an event on.
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

// Child calls fn with what the log of a subagent's chat has of one call, in order, up to its last
// stored event; events that are shown at the moment are stored first. ended says that the call's
// part is whole.
func (r *chatReader) Child(ctx context.Context, chatID, callID string, fn func(event.Event)) (ended bool, err error) {
	if !IsSubagent(chatID) { // from a file: it may name any chat
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
