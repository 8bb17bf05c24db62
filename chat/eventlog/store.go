package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Meta is the metadata of a chat.
type Meta struct {
	ID      string
	Parent  string // id of the parent chat; set only for the chat of a subagent
	Created time.Time
	Updated time.Time
	Title   string
	Named   bool   // the user chose the title, so eca does not generate one
	Model   string // full id of the last model used
	Agent   string
	Variant string
	Trust   bool // auto-approve
	Roots   []string
}

// Store persists the events and metadata of chats.
type Store interface {
	// Append stores meta and events in one transaction.
	Append(ctx context.Context, meta Meta, events []event.Event) error
	// Extend stores events without changing the stored meta; it returns ErrNoChat if the chat
	// does not exist.
	Extend(ctx context.Context, id string, events []event.Event) error
	// WriteAhead makes pieces of deltas that have not been appended yet survive the death of the
	// process. Each piece has the sequence number of its event. Appending to the chat makes the
	// pieces obsolete. If the process dies first, the next process that reads the chat appends
	// them. The caller holds the chat's lock.
	WriteAhead(ctx context.Context, id string, pieces []event.Event) error
	// Meta returns a chat's meta and the sequence number of its last event.
	Meta(ctx context.Context, id string) (meta Meta, last event.Seq, found bool, err error)
	// ChangeMeta applies change to the stored meta of a chat and returns the result. It returns
	// ErrNoChat if the chat does not exist.
	ChangeMeta(ctx context.Context, id string, change func(*Meta)) (Meta, error)
	// Events returns up to limit events with sequence numbers >= from, in order.
	Events(ctx context.Context, id string, from event.Seq, limit int) ([]event.Event, error)
	// Cut removes the messages that begin at or after from, with their events, stores meta and
	// appends marker.
	Cut(ctx context.Context, meta Meta, from event.Seq, marker event.Event) error
	// Adopt replaces the messages of a chat with marker and a copy of the messages of the chat
	// other that begin before end, and stores meta, in one transaction. The copied events follow
	// marker.
	Adopt(ctx context.Context, meta Meta, other string, end event.Seq, marker event.Event) error
}

// ErrNoChat is returned if the store does not have the chat.
var ErrNoChat = errors.New("there is no such chat")

// ErrNotStored is returned by changes that cannot be made in memory only, while the store cannot
// be written.
var ErrNotStored = errors.New("the chat cannot be stored at the moment")

// ErrClosed is returned if the chat is closed.
var ErrClosed = errors.New("the chat is closed")
