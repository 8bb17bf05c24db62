// Package chat is the engine: it owns conversations.
//
// An Engine opens Sessions. A session is one goroutine that takes commands in order
// (prompt, decision, stop); a turn of it runs as sequential code (turn.go): ask the
// model, run the tools it calls, ask again. Everything that happens becomes an event
// in the session's Log, is stored, and only then shown. Faces read the log and never
// hear of anything else.
//
// Guarantees: exactly one TurnFinished per turn, whatever happens in it; nothing of a
// turn after it; a chat whose daemon was killed can always be continued; the history
// sent to the model is valid (each tool call has one result).
//
// The package knows nothing of editors, wire formats, providers or concrete tools.
package chat

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Meta is what is known about a chat besides its events.
type Meta struct {
	ID      string
	Created time.Time
	Updated time.Time
	Title   string
	Model   string // full id last used
	Agent   string
	Variant string
	Trust   bool // auto-approve
	Roots   []string
}

// Store keeps chats; package chat/store implements it.
type Store interface {
	// Append stores meta and events in one transaction.
	Append(ctx context.Context, meta Meta, events []event.Event) error
	// Meta returns a chat's meta and the number of its last event.
	Meta(ctx context.Context, id string) (meta Meta, last event.Seq, found bool, err error)
	// Events returns up to limit events from a number on, in order.
	Events(ctx context.Context, id string, from event.Seq, limit int) ([]event.Event, error)
	Delete(ctx context.Context, id string) error
	// Sync makes what was appended survive a crash of the machine.
	Sync(ctx context.Context) error
	// Lock gives this process the right to append to a chat; ok is false while
	// another process has it.
	Lock(id string) (release func(), ok bool, err error)
}

// Model is a model that can be used, with what is known about it.
type Model struct {
	ID        string // provider/model
	Name      string // the provider's name for it
	Client    llm.Model
	Reasoning bool
	Headers   map[string]string         // extraHeaders
	Extra     map[string]any            // extraPayload
	Variants  map[string]map[string]any // by name
	Limit     config.Limit
	Cost      config.Cost
}

// ModelChoice is what a face offers its user.
type ModelChoice struct {
	IDs      []string // sorted
	Default  string   // empty if there is none
	Variants []string // of the default model, sorted
}

// Models resolves model names; the daemon implements it.
type Models interface {
	// Resolve finds a model by its full id, or by a bare name below the provider of
	// current. An empty name means the default model.
	Resolve(name, current string) (Model, error)
}

// ErrNoModel is returned by Models when no model can be used at all.
var ErrNoModel = errors.New("No available model found. Configure at least one provider model.") //nolint:staticcheck,revive // the wording clients show (eca-protocol 4.1)

// ErrBusyElsewhere says that another eca process runs a turn of this chat.
var ErrBusyElsewhere = errors.New("this chat is being used by another eca process; try again when that has finished")

// ErrClosed says that the engine or the chat is gone.
var ErrClosed = errors.New("the chat is closed")

// Deps is what an Engine needs. All fields are required unless said otherwise.
type Deps struct {
	Store    Store
	Models   Models
	Contexts contexts.Source
	Tools    func() *tools.Registry // current tools; asked once per turn
	Policy   func() tools.Policy
	Config   func() *config.Config
	Roots    func() []string // workspace folders
	Now      func() time.Time
	NewID    func() string
	Log      *slog.Logger
}

// Engine owns the sessions of one process.
type Engine struct {
	deps Deps

	mu       sync.Mutex // guards what follows
	sessions map[string]*Session
	deleting map[string]chan struct{} // closed when the chat is gone
	closed   bool
}

// New returns an engine. Close must be called.
func New(deps Deps) *Engine {
	return &Engine{deps: deps, sessions: map[string]*Session{}, deleting: map[string]chan struct{}{}}
}

// Open returns the session with an id; an empty id makes a new chat with an id of
// its own. Nothing is stored before the first prompt. isNew says that neither this
// process nor the store has met the chat before.
func (e *Engine) Open(ctx context.Context, id string) (s *Session, isNew bool, err error) {
	if id == "" {
		id = e.deps.NewID()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, ErrClosed
	}
	if s, ok := e.sessions[id]; ok {
		return s, false, nil
	}
	if _, ok := e.deleting[id]; ok {
		return nil, false, ErrClosed
	}
	meta, last, found, err := e.deps.Store.Meta(ctx, id)
	if err != nil {
		// A store that can not be read must not stop the user from chatting.
		e.deps.Log.Error("chat could not be read", "chat", id, "err", err)
	}
	if !found {
		now := e.deps.Now().UTC()
		meta = Meta{ID: id, Created: now, Updated: now, Trust: e.deps.Config().Chat.DefaultTrust, Roots: e.deps.Roots()}
	}
	s = newSession(e, meta, last)
	e.sessions[id] = s
	return s, !found, nil
}

// Lookup returns a session that is open in this process.
func (e *Engine) Lookup(id string) (*Session, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[id]
	return s, ok
}

// Delete stops and removes a chat; deleting an unknown chat does nothing. It returns
// at once; until the returned function does, the chat can not be opened.
func (e *Engine) Delete(id string) (wait func() error) {
	gone := make(chan struct{})
	e.mu.Lock()
	if before, ok := e.deleting[id]; ok {
		e.mu.Unlock()
		return func() error { <-before; return nil }
	}
	s := e.sessions[id]
	delete(e.sessions, id)
	e.deleting[id] = gone
	e.mu.Unlock()
	var err error
	go func() {
		if s != nil {
			s.close()
		}
		err = e.deps.Store.Delete(context.Background(), id)
		e.mu.Lock()
		delete(e.deleting, id)
		e.mu.Unlock()
		close(gone)
	}()
	return func() error { <-gone; return err }
}

// Close ends all turns, stores what is left and closes all sessions.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	open := slices.Collect(maps.Values(e.sessions))
	going := slices.Collect(maps.Values(e.deleting))
	e.mu.Unlock()
	var wg sync.WaitGroup
	for _, gone := range going {
		wg.Go(func() { <-gone })
	}
	for _, s := range open {
		wg.Go(s.close)
	}
	wg.Wait()
}

// maxIDLength bounds ids that clients make up (eca-protocol 2.3).
const maxIDLength = 256

// ValidID says whether a client may use an id for a chat.
func ValidID(id string) bool {
	if id == "" || len(id) > maxIDLength || strings.HasPrefix(id, "subagent-") {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
