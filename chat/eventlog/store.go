package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Meta is what is known about a chat besides its events.
type Meta struct {
	ID      string
	Parent  string // the chat that a subagent's chat works for
	Created time.Time
	Updated time.Time
	Title   string
	Named   bool   // the user chose the title: the model must not
	Model   string // full id last used
	Agent   string
	Variant string
	Trust   bool // auto-approve
	Roots   []string
}

// Store is where a log is kept.
type Store interface {
	// Append stores meta and events in one transaction.
	Append(ctx context.Context, meta Meta, events []event.Event) error
	// Extend stores events of a chat of which nothing else is new; it returns ErrNoChat if
	// the chat is gone.
	Extend(ctx context.Context, id string, events []event.Event) error
	// Record keeps pieces of text that were not appended yet: deltas as they grow, each piece
	// with the number of its event. Appending to the chat makes them obsolete; if the
	// process dies before, who reads the chat next finds them appended. The caller has the
	// chat's lock.
	Record(ctx context.Context, id string, pieces []event.Event) error
	// Meta returns a chat's meta and the number of its last event.
	Meta(ctx context.Context, id string) (meta Meta, last event.Seq, found bool, err error)
	// ChangeMeta changes the stored meta of a chat and returns it; ErrNoChat if it has none.
	ChangeMeta(ctx context.Context, id string, change func(*Meta)) (Meta, error)
	// Events returns up to limit events from a number on, in order.
	Events(ctx context.Context, id string, from event.Seq, limit int) ([]event.Event, error)
	// Cut removes the messages from an event on, with their events, and appends marker.
	Cut(ctx context.Context, meta Meta, from event.Seq, marker event.Event) error
	// Adopt removes all messages of a chat, appends marker, and copies the messages of another
	// chat before an event after it: all in one step.
	Adopt(ctx context.Context, meta Meta, other string, end event.Seq, marker event.Event) error
}

// ErrNoChat says that the store does not have a chat.
var ErrNoChat = errors.New("there is no such chat")

// ErrNotStored says that a change needs the store, which cannot be written.
var ErrNotStored = errors.New("the chat cannot be stored at the moment")

// ErrClosed says that the chat is closed.
var ErrClosed = errors.New("the chat is closed")
