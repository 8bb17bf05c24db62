package chat

import (
	"cmp"
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
	InDialog bool // a dialog is open (see Dialog): the next prompt is its input
}

// Order is the sort key of a list of chats. The newest chat comes first.
type Order int

// Orders.
const (
	ByUpdated Order = iota
	ByCreated
)

// Cursor is the position of a message in a chat. Messages are ordered by (Anchor, Seq).
type Cursor struct {
	Anchor event.Seq // equal to Seq; for a flag, the Seq of the message that it follows
	Seq    event.Seq // sequence number of the event that begins the message
}

// ErrCursorExpired is returned for the cursor of a message that no longer exists.
var ErrCursorExpired = errors.New("the cursor points at a message that no longer exists")

// ErrBadCursor is returned for a string that is not a cursor.
var ErrBadCursor = errors.New("not a cursor")

// String encodes the cursor for clients, which treat it as opaque.
func (c Cursor) String() string {
	raw := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(c.Anchor)), uint64(c.Seq))
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ParseCursor parses a cursor that String returned.
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

// lastSeq is greater than the sequence number of any event.
const lastSeq = 1<<62 - 1

// Window selects the messages after After and before Before, without the messages at these cursors.
// A nil cursor means no bound. Window selects at most Limit messages: the newest, or the oldest if
// Forward is set. Limit 0 selects all.
type Window struct {
	Before, After *Cursor
	Limit         int
	Forward       bool
}

// Span is the result of a Window.
type Span struct {
	From, To    event.Seq // the events of the selected messages: From <= Seq < To
	Flags       []PlacedFlag
	First, Last Cursor // of the selected messages; undefined if Returned is 0
	Older       bool   // there are messages before First
	Newer       bool   // there are messages after Last
	Returned    int    // number of selected messages
	Total       int    // number of messages in the chat
}

// PlacedFlag is a flag with its position among the messages. Clients show it right before
// NextMessage, even if the user set it later than that message.
type PlacedFlag struct {
	Seq         event.Seq // the flag's event
	NextMessage event.Seq // the event that begins the next message; greater than any event if the flag is last
}

// List returns up to limit chats of the current workspace folders; limit 0 means all.
func (e *Engine) List(ctx context.Context, by Order, limit int) ([]Summary, error) {
	list, err := e.deps.Store.List(ctx, e.deps.Current().Roots, by, limit)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range list {
		if s, ok := e.sessions[list[i].ID]; ok {
			list[i].Running, list[i].InDialog = s.Running(), s.InDialog()
		}
	}
	return list, nil
}

// LastConversation returns the most recently updated chat of the current workspace folders that has
// a prompt to a model. It skips chats that only have slash commands. ok is false if no chat has one.
func (e *Engine) LastConversation(ctx context.Context) (s Summary, ok bool, err error) {
	list, err := e.List(ctx, ByUpdated, 0)
	if err != nil {
		return Summary{}, false, err
	}
	for _, s := range list {
		if ok, err := e.HasModelPrompt(ctx, s.ID); ok || err != nil {
			return s, ok, err
		}
	}
	return Summary{}, false, nil
}

// HasModelPrompt reports whether a chat has a prompt to a model, rather than only slash commands.
func (e *Engine) HasModelPrompt(ctx context.Context, id string) (ok bool, err error) {
	_, ok, err = e.firstPrompt(ctx, id)
	return ok, err
}

// firstPrompt returns the first prompt to a model in a chat. It skips slash commands without a prompt.
func (e *Engine) firstPrompt(ctx context.Context, id string) (text string, ok bool, err error) {
	ok, err = eventlog.Find(ctx, e.deps.Store, id, 0, func(ev event.Event) bool {
		m, said := ev.Body.(event.UserMessage)
		text = m.Text
		return said && (!m.Command || m.Prompt != "")
	})
	return text, ok, err
}

// DisplayTitle returns the title of a chat, or else the beginning of its first prompt.
func (e *Engine) DisplayTitle(ctx context.Context, id, title string) (string, error) {
	if title != "" {
		return title, nil
	}
	text, ok, err := e.firstPrompt(ctx, id)
	if ok {
		title = oneLine(text, titleLength)
	}
	return cmp.Or(title, "Untitled"), err
}

// Exists reports whether a chat is open in this process or stored. It returns an error if the
// store cannot be read.
func (e *Engine) Exists(ctx context.Context, id string) (bool, error) {
	if _, ok := e.Lookup(id); ok {
		return true, nil
	}
	_, _, found, err := e.deps.Store.Meta(ctx, id)
	return found && err == nil, err
}

// Unsaved reports whether a chat has events that could not be stored.
func (e *Engine) Unsaved(id string) bool {
	s, ok := e.Lookup(id)
	if !ok {
		return false
	}
	s.log.Flush()
	return s.log.Unsaved()
}

// OpenExisting opens a chat that exists already. ok is false if it does not, and for the chat of a
// subagent, which only its parent may open. It returns an error if the store cannot be read.
func (e *Engine) OpenExisting(ctx context.Context, id string) (s *Session, ok bool, err error) {
	if IsSubagent(id) {
		return nil, false, nil
	}
	if known, err := e.Exists(ctx, id); err != nil || !known {
		return nil, false, err
	}
	s, _, err = e.Open(ctx, id)
	return s, err == nil, err
}
