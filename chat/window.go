package chat

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
)

// Summary is a chat in a list.
type Summary struct {
	ID       string
	Created  time.Time
	Updated  time.Time
	Title    string
	Model    string
	Messages int
	Running  bool // a turn runs in this process
	Dialog   bool // the next prompt answers eca
}

// Order of a list of chats, newest first.
type Order int

// Orders.
const (
	ByUpdated Order = iota
	ByCreated
)

// Cursor is the position of a message: messages are in the order of (Anchor, Seq).
type Cursor struct {
	Anchor event.Seq // its own Seq; for a flag that of the message it follows
	Seq    event.Seq // the event that begins it
}

// ErrCursorExpired says that the message a cursor points at is gone.
var ErrCursorExpired = errors.New("the cursor points at a message that no longer exists")

// ErrBadCursor says that a text is not a cursor.
var ErrBadCursor = errors.New("not a cursor")

// String returns the cursor as clients get it: opaque.
func (c Cursor) String() string {
	raw := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(c.Anchor)), uint64(c.Seq))
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ParseCursor reads what String returned.
func ParseCursor(s string) (Cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return Cursor{}, ErrBadCursor
	}
	anchor, n := binary.Uvarint(raw)
	if n <= 0 {
		return Cursor{}, ErrBadCursor
	}
	seq, m := binary.Uvarint(raw[n:])
	if m <= 0 || n+m != len(raw) || anchor > seq || anchor == 0 || seq > lastSeq {
		return Cursor{}, ErrBadCursor
	}
	return Cursor{event.Seq(anchor), event.Seq(seq)}, nil
}

// lastSeq is beyond every event.
const lastSeq = 1<<62 - 1

// Window selects messages between two cursors, both exclusive: the newest Limit of
// them, or the oldest if Forward. Limit 0 selects all.
type Window struct {
	Before, After *Cursor
	Limit         int
	Forward       bool
}

// Span is what a window selects.
type Span struct {
	From, To    event.Seq // the events of its messages: From <= seq < To
	Flags       []PlacedFlag
	First, Last Cursor // undefined if Returned is 0
	Older       bool   // there are messages before First
	Newer       bool   // and after Last
	Returned    int
	Total       int // messages in the chat
}

// PlacedFlag is a flag's event and the event that follows it.
type PlacedFlag struct {
	Seq    event.Seq
	Before event.Seq
}

// List returns the chats of the current workspace folders.
func (e *Engine) List(ctx context.Context, by Order, limit int) ([]Summary, error) {
	list, err := e.deps.Store.List(ctx, e.deps.Current().Roots, by, limit)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range list {
		if s, ok := e.sessions[list[i].ID]; ok {
			list[i].Running, list[i].Dialog = s.Running(), s.InDialog()
		}
	}
	return list, nil
}

// LastConversation returns the chat of these roots that was updated last, of those in which a
// model was asked something: a chat in which commands alone were entered is not one to continue.
// ok is false if no such chat exists.
func (e *Engine) LastConversation(ctx context.Context) (s Summary, ok bool, err error) {
	list, err := e.List(ctx, ByUpdated, 0)
	if err != nil {
		return Summary{}, false, err
	}
	for _, s := range list {
		if ok, err := e.Conversed(ctx, s.ID); ok || err != nil {
			return s, ok, err
		}
	}
	return Summary{}, false, nil
}

// Conversed reports whether a model was asked in a chat; else it only has slash commands.
func (e *Engine) Conversed(ctx context.Context, id string) (ok bool, err error) {
	err = eventlog.Each(ctx, e.deps.Store, id, 0, func(ev event.Event) {
		m, said := ev.Body.(event.UserMessage)
		ok = ok || said && (!m.Command || m.Prompt != "")
	})
	return ok, err
}

// Known says whether a chat exists, here or in the store. With an error, which is the
// store's, that is not known.
func (e *Engine) Known(ctx context.Context, id string) (bool, error) {
	if _, ok := e.Lookup(id); ok {
		return true, nil
	}
	_, _, found, err := e.deps.Store.Meta(ctx, id)
	return found && err == nil, err
}

// Unsaved says whether a chat has something that could not be stored.
func (e *Engine) Unsaved(id string) bool {
	s, ok := e.Lookup(id)
	if !ok {
		return false
	}
	s.log.Flush()
	return s.log.Unsaved()
}

// Existing opens a chat that exists; ok is false if it does not, and for those of
// subagents: only their parents use them. A store that cannot be read is an error.
func (e *Engine) Existing(ctx context.Context, id string) (s *Session, ok bool, err error) {
	if IsSubagent(id) {
		return nil, false, nil
	}
	if known, err := e.Known(ctx, id); err != nil || !known {
		return nil, false, err
	}
	s, _, err = e.Open(ctx, id)
	return s, err == nil, err
}
