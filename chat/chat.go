// Package chat is the engine: it owns conversations.
//
// An Engine opens Sessions. A session is one goroutine that takes commands in order
// (prompt, decision, stop); a turn of it runs as sequential code (turn.go): ask the
// model, run the tools it calls, ask again. Everything that happens becomes an event
// in the session's Log, is stored, and only then shown; but deltas are shown at once and
// stored soon after (log.go). Faces read the log and know nothing else.
//
// Guarantees: exactly one TurnFinished per turn, whatever happens in it; nothing of a
// turn after it; a chat whose daemon was killed can always be continued; the history
// sent to the model is valid (each tool call has one result).
//
// The package knows nothing of editors, wire formats, providers or concrete tools.
package chat

import (
	"cmp"
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
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Meta is what is known about a chat besides its events.
type Meta = eventlog.Meta

// Store keeps chats; package chat/store implements it.
type Store interface {
	eventlog.Store
	// Delete removes a chat with those of its subagents.
	Delete(ctx context.Context, id string) error
	// List returns the chats of the workspace with these roots, newest first, without those
	// of subagents; limit 0 returns all.
	List(ctx context.Context, roots []string, by Order, limit int) ([]Summary, error)
	// Find returns the first or the last message with a name (event.Name): a tool call and
	// its result share one.
	Find(ctx context.Context, id, name string, last bool) (at Cursor, found bool, err error)
	// Window selects messages. It returns ErrCursorExpired for a cursor whose message is
	// gone.
	Window(ctx context.Context, id string, w Window) (Span, error)
	// RemoveFlag removes a flag.
	RemoveFlag(ctx context.Context, id string, flag event.Seq) error
	// Pin has a chat kept however old it is, or not any more.
	Pin(ctx context.Context, id string, on bool) error
	// Copy copies the messages of a chat before an event to another chat, their
	// numbers shifted.
	Copy(ctx context.Context, from string, to Meta, end, shift event.Seq) error
	// Sync makes what was appended survive a crash of the machine.
	Sync(ctx context.Context) error
	// Lock gives this process the right to append to a chat; ok is false while
	// another process has it.
	Lock(id string) (release func(), ok bool, err error)
}

// Model is a model that can be used, with what is known about it.
type Model struct {
	ID        string // provider/model
	Spelled   string // ID, with the provider's name as the user's files spell it
	Name      string // the provider's name for it
	Client    llm.Model
	Reasoning bool
	NoImages  bool                      // it does not take images
	NoTools   bool                      // it cannot call tools
	Server    llm.ServerTools           // of its provider, that it may use
	Headers   map[string]string         // extraHeaders
	Extra     map[string]any            // extraPayload; null removes from the request
	Variants  map[string]map[string]any // by name; "default" is for when none is chosen
	Limit     config.Limit
	Cost      config.Cost

	// Reads says whether reasoning marked with an API can be sent back to the model; nil if
	// it is not sent any of earlier turns, or that is unknown.
	Reads func(api string) bool

	// Retry says how an answer that was cut is gone on with. Client repeats requests that
	// failed before they were answered.
	Retry llm.RetryPolicy
}

// shown is what messages to the user call the model.
func (m Model) shown() string { return cmp.Or(m.Spelled, m.ID) }

// Payload is what a request adds to its body: the extra payload, and over it the variant,
// or the model's default if it does not have that.
func (m Model) Payload(variant string) map[string]any {
	over, ok := m.Variants[variant]
	if !ok {
		over = m.Variants["default"]
	}
	return llm.MergePayloads(m.Extra, over)
}

// ModelChoice is what a face offers its user.
type ModelChoice struct {
	IDs     []string // sorted
	Default string   // may be empty
}

// Task is work that is done once after the start, while the user sees its progress.
type Task struct {
	ID    string
	Title string
	Run   func(ctx context.Context)
}

// Models resolves model names; the daemon implements it.
type Models interface {
	// Resolve finds a model by its full id, or by a bare name below the provider of
	// current. An empty name means the default model.
	Resolve(name, current string) (Model, error)
}

// ErrBusyElsewhere says that another eca process runs a turn of this chat.
var ErrBusyElsewhere = errors.New("this chat is being used by another eca process; try again when that has finished")

// Errors of a chat's log.
var (
	ErrNoChat = eventlog.ErrNoChat
	ErrClosed = eventlog.ErrClosed // also of an engine that is gone
)

// Files keeps what tools and commands change, so that it can be put back.
type Files interface {
	// Writing returns what the content of a file is about to become another means; the
	// old content is kept.
	Writing(ctx context.Context, chatID, path string, content []byte) (event.FileChanged, error)
	// Begin records the files of the workspace before a call runs, if it is one that needs
	// that; else it returns nil. notCovered says in words what cannot be put back. End must
	// be called when the call has ended.
	Begin(ctx context.Context, chatID string, call tools.Call, plan tools.Plan) (p *event.UndoPoint, notCovered []string, err error)
	// End records what the call has changed.
	End(p event.UndoPoint) error
	// Rollback undoes what a part of a chat's log did to files, and returns in words what it
	// could not undo: what somebody else changed since stays as it is.
	Rollback(ctx context.Context, events []event.Event) (problems []string)
	// Forget gives up what was kept for a chat's commands.
	Forget(ctx context.Context, chatID string) error
}

// Command is what a message that begins with a slash means: a prompt for the model,
// something that eca does itself, a dialog with it, or else that the conversation shall be compacted.
type Command struct {
	Prompt string
	// Expand gets the prompt from somebody else, as an MCP server; the turn waits for it.
	// The error is fit for the user.
	Expand  func(ctx context.Context) ([]event.Said, error)
	Compact string // what the user adds to the question for a summary
	// Run does it; the user is shown the text it returns. It may wait, and call any method
	// of the session.
	Run func(ctx context.Context, s *Session) (string, error)
	// Dialog begins a conversation; Text is its first answer.
	Dialog Dialog
	Text   string
}

// Commands knows the slash commands.
type Commands interface {
	// Find returns the command that a message calls; ok is false for ordinary messages.
	Find(message string) (c Command, ok bool)
}

// Deps is what an Engine needs. All fields are required unless said otherwise.
type Deps struct {
	Store    Store
	Models   Models
	ModelIDs func() []string // of the models that can be used, by their full ids; for messages
	Contexts contexts.Source
	// AwaitTools waits until tools are known that a server says have changed; nil: there are no servers.
	AwaitTools func(ctx context.Context)
	Files      Files
	Commands   Commands
	// Instructions finds what the project says about folders that calls touch; nil: nothing.
	Instructions func(context.Context, contexts.NestedQuery) (files []contexts.AgentsFile, problems []string)
	Refresh      func()          // takes over what changed in files, before a turn; may be nil
	Current      func() Snapshot // what counts now
	// Budget counts what is spent; nil: nothing is limited.
	Budget Budget
	// AskUser asks the user to choose; asked is false if the client shows no questions. Nil: none does.
	AskUser func(ctx context.Context, chatID, question string, choices []string) (choice string, asked bool)
	Machine Machine
	Now     func() time.Time
	NewID   func() string
	Log     *slog.Logger
}

// Snapshot is the configuration and what follows from it: values that belong together. A turn
// works with one from its first step to its last.
type Snapshot struct {
	Config *config.Config
	Roots  []string // workspace folders
	Policy tools.Policy
	Models Models
	Hooks  *hooks.Set     // nil: none
	System []SystemSource // what the system prompt has besides the agent's own; may be nil
	// Tools returns the tools. Those of MCP servers come and go: it is asked again after calls of such.
	Tools func() *tools.Registry
}

// Engine owns the sessions of one process.
type Engine struct {
	deps Deps

	histories historyCache
	queue     *hookQueue
	begin     sync.Once
	begun     chan struct{} // closed when the hooks of the session's start have run
	news      newsroom
	ending    sync.Once

	mu       sync.Mutex // guards what follows
	sessions map[string]*Session
	opening  map[string]chan struct{} // closed when the chat is open, or could not be opened
	deleting map[string]chan struct{} // closed when the chat is gone
	closed   bool
}

// New returns an engine. Close must be called.
func New(deps Deps) *Engine {
	return &Engine{
		deps: deps, sessions: map[string]*Session{}, opening: map[string]chan struct{}{}, deleting: map[string]chan struct{}{},
		queue: newHookQueue(deps.Log.Warn), begun: make(chan struct{}), histories: historyCache{max: maxCached},
	}
}

// Open returns the session with an id; an empty id makes a new chat with an id of
// its own. Nothing is stored before the first prompt. isNew says that neither this
// process nor the store has met the chat before. It waits for the store, and only callers
// wait for it that open the same chat.
func (e *Engine) Open(ctx context.Context, id string) (s *Session, isNew bool, err error) {
	var meta Meta
	var last event.Seq
	found := false
	if id == "" {
		id = e.deps.NewID()
	} else {
		s, done, err := e.beginOpen(ctx, id)
		if s != nil || err != nil {
			return s, false, err
		}
		defer done()
		meta, last, found, err = e.deps.Store.Meta(ctx, id)
		if err != nil && ctx.Err() != nil {
			return nil, false, ctx.Err() // nothing is known of the store: who asked gave up
		}
		if err != nil {
			// A store that cannot be read must not stop the user from chatting.
			e.deps.Log.Warn("chat could not be read", "chat", id, "err", err)
		}
	}
	if !found {
		now := e.deps.Now().UTC()
		snap := e.deps.Current()
		meta = Meta{ID: id, Created: now, Updated: now, Trust: snap.Config.Chat.DefaultTrust, Roots: snap.Roots}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.deleting[id]; ok || e.closed {
		return nil, false, ErrClosed
	}
	s = newSession(e, meta, last)
	e.sessions[id] = s
	return s, !found, nil
}

// beginOpen returns the session if it is open. Else it gives the caller the right to open
// it, until done is called; it waits while somebody else has that.
func (e *Engine) beginOpen(ctx context.Context, id string) (s *Session, done func(), err error) {
	for {
		e.mu.Lock()
		s, open := e.sessions[id]
		_, deleting := e.deleting[id]
		other, opening := e.opening[id]
		mine := make(chan struct{})
		if !open && !deleting && !opening && !e.closed {
			e.opening[id] = mine
		}
		closed := e.closed
		e.mu.Unlock()
		switch {
		case closed, deleting && !open:
			return nil, nil, ErrClosed
		case open:
			return s, nil, nil
		case !opening:
			return nil, func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				delete(e.opening, id)
				close(mine)
			}, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// Lookup returns a session that is open in this process.
func (e *Engine) Lookup(id string) (*Session, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sessions[id]
	return s, ok
}

// Delete stops and removes a chat; deleting an unknown chat does nothing. It returns
// at once; until the returned function does, the chat cannot be opened.
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
			s.close(errStopped)
		}
		e.closeChildren(id)
		err = e.erase(id)
		e.mu.Lock()
		delete(e.deleting, id)
		e.mu.Unlock()
		close(gone)
	}()
	return func() error { <-gone; return err }
}

// erase removes a chat from the store, unless another process runs a turn of it.
func (e *Engine) erase(id string) error {
	free, ok, err := e.lock(context.Background(), id)
	switch {
	case err != nil: // without lock files chats are used alone
	case !ok:
		return ErrBusyElsewhere
	default:
		defer free()
	}
	e.endChat(id)
	return e.remove(id)
}

// remove removes a chat whose lock the caller holds.
func (e *Engine) remove(id string) error {
	if err := e.deps.Store.Delete(context.Background(), id); err != nil {
		return err
	}
	if err := e.deps.Files.Forget(context.Background(), id); err != nil {
		e.deps.Log.Warn("what was kept to undo commands could not be removed", "chat", id, "err", err)
	}
	return nil
}

// Close ends all turns, stores what is left, closes all sessions, and runs the hooks of
// the end.
func (e *Engine) Close() {
	timer := time.AfterFunc(closingTime, e.queue.cancel)
	defer timer.Stop()
	e.CloseChats()
	e.end()
}

// CloseChats is Close without the hooks: when it returns, everything is stored.
func (e *Engine) CloseChats() {
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
		wg.Go(func() { s.close(errShutdown) })
	}
	wg.Wait()
}

// maxIDLength bounds ids that clients make up (eca-protocol 2.3).
const maxIDLength = 256

// ValidID says whether a client may use an id for a chat.
func ValidID(id string) bool {
	if id == "" || len(id) > maxIDLength || IsSubagent(id) {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
