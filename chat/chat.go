// Package chat is the engine that runs conversations.
//
// An Engine opens Sessions. A session is one goroutine that handles requests in order
// (prompt, decision, stop). A turn is sequential code (turn.go) on its own goroutine: ask
// the model, run the tools it calls, ask again. Everything that happens becomes an event in
// the session's log (chat/eventlog), which persists events before it shows them, except
// progress. Faces (the code that serves one protocol, such as package server) show only
// events that they read from the log, with the exceptions that docs/architecture.md lists.
//
// Guarantees: each turn has exactly one TurnFinished, even after a panic, and no event of the
// turn follows it; a chat whose daemon was killed can always be continued; the history that
// the model is sent is valid (each tool call has one result).
//
// The package does not depend on editors, wire formats, providers or concrete tools.
package chat

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Meta is the metadata of a chat.
type Meta = eventlog.Meta

// Store persists chats; package chat/store implements it.
type Store interface {
	eventlog.Store
	// Delete removes a chat and the chats of its subagents.
	Delete(ctx context.Context, id string) error
	// List returns up to limit chats of the workspace with these roots, newest first; limit 0
	// returns all. The chats of subagents are left out.
	List(ctx context.Context, roots []string, by Order, limit int) ([]Summary, error)
	// Find returns the first or the last message with an id (event.ClientID). A tool call and its
	// result have the same id.
	Find(ctx context.Context, id, clientID string, last bool) (at Cursor, found bool, err error)
	// Window selects messages. It returns ErrCursorExpired for a cursor whose message no longer
	// exists.
	Window(ctx context.Context, id string, w Window) (Span, error)
	// RemoveFlag removes a flag, a mark that the user set in the chat (event.Flag).
	RemoveFlag(ctx context.Context, id string, flag event.Seq) error
	// Pin sets whether a chat is kept regardless of its age.
	Pin(ctx context.Context, id string, on bool) error
	// Copy copies the messages of a chat that begin before end to a new chat, with their sequence
	// numbers increased by shift.
	Copy(ctx context.Context, from string, to Meta, end, shift event.Seq) error
	// Sync makes all appended events survive a crash of the machine.
	Sync(ctx context.Context) error
	// Lock gives this process the right to append to a chat; ok is false while another process has
	// it.
	Lock(id string) (release func(), ok bool, err error)
}

// Model is a model that can be used, with its properties.
type Model struct {
	ID          string // provider/model
	Spelled     string // ID as shown to the user: the provider's name is spelled as in the user's files
	Name        string // the model's name at the provider
	Client      llm.Model
	Reasoning   bool
	NoImages    bool                      // it does not accept images
	NoTools     bool                      // it cannot call tools
	ServerTools llm.ServerTools           // the provider's own tools that it may use
	Headers     map[string]string         // extraHeaders
	Extra       map[string]any            // extraPayload; a null value removes the key from the request
	Variants    map[string]map[string]any // by name; "default" applies if no other is chosen
	Limit       config.Limit
	Cost        config.Cost

	// Impossible says why the provider cannot have the model, according to the configuration; it is empty
	// if the provider may have it. Turns skip such a fallback model, but try a model that the user chose.
	Impossible string

	// ReadsReasoning reports whether the model accepts reasoning that was received through the given
	// API. It is nil if the model gets no reasoning of earlier turns, or if it is unknown which
	// reasoning the model accepts.
	ReadsReasoning func(api string) bool

	// Retry determines how an answer that broke off is continued. Client retries requests that
	// failed before any of their answer arrived.
	Retry llm.RetryPolicy
}

// displayName returns the name of the model in messages to the user.
func (m Model) displayName() string { return cmp.Or(m.Spelled, m.ID) }

// Payload returns what a request adds to its body: the extra payload, overlaid with the variant, or
// with the default variant if the model does not have the given one.
func (m Model) Payload(variant string) map[string]any {
	over, ok := m.Variants[variant]
	if !ok {
		over = m.Variants["default"]
	}
	return llm.MergePayloads(m.Extra, over)
}

// ModelChoice lists the models that a face offers to its user.
type ModelChoice struct {
	IDs     []string // sorted
	Default string   // may be empty
}

// StartupTask is work that the daemon does once after its start, with progress shown to the user.
type StartupTask struct {
	ID    string
	Title string
	Run   func(ctx context.Context)
}

// Models resolves model names; the daemon implements it.
type Models interface {
	// Resolve finds a model by its full id, or by a name without provider. For a name without
	// provider, it chooses the first of these: the provider of the model with the id current, if that
	// provider may have the model; the default model's provider, if it lists the model; the only
	// provider that lists the model. An empty name means the default model.
	Resolve(name, current string) (Model, error)
}

// ErrLimited is returned for a prompt that its sender may not send: see Prompt.Limited.
var ErrLimited = errors.New("this device may not use commands that change files, settings, logins or limits, so the prompt was not sent")

// ErrNoDialog is returned for a prompt that begins or continues a dialog: see Prompt.NoDialog. The only
// dialog is /login.
var ErrNoDialog = errors.New("/login needs an interactive chat, such as in an editor, so the prompt was not sent; in a terminal, use `eca login`")

// ErrBusyElsewhere is returned while another eca process uses the chat.
var ErrBusyElsewhere = errors.New("this chat is being used by another eca process; try again when that has finished")

// ErrEmptyPrompt is returned for a prompt without text and contexts.
var ErrEmptyPrompt = errors.New("the prompt is empty, so no model was asked")

// Errors of a chat's log.
var (
	ErrNoChat = eventlog.ErrNoChat
	ErrClosed = eventlog.ErrClosed // also returned by a closed engine
)

// Files saves the files that tools and commands change, so that a rollback can restore them.
type Files interface {
	// Writing saves the old content of a file that is about to be written with new content, and
	// returns the event for the change.
	Writing(ctx context.Context, chatID, path string, content []byte) (event.FileChanged, error)
	// Begin records the files of the workspace before a call runs. It returns nil if the call does
	// not need that. notCovered describes what a rollback would not restore. End must be called when
	// the call has ended.
	Begin(ctx context.Context, chatID string, call tools.Call, plan tools.Plan) (p *event.UndoPoint, notCovered []string, err error)
	// End records what the call has changed.
	End(p event.UndoPoint) error
	// Rollback undoes the changes to files in a part of a chat's log. problems describes what it
	// could not undo, for example files that another program has changed since.
	Rollback(ctx context.Context, events []event.Event) (problems []string)
	// Forget removes what Begin and End have recorded for a chat.
	Forget(ctx context.Context, chatID string) error
}

// Command is the meaning of a message that begins with a slash. If Run and Dialog are nil and Prompt
// and Expand are not set, the command compacts the conversation.
type Command struct {
	Prompt string // what the model is sent
	// Check returns an error for the user if an agent may not use the command; nil: all may.
	Check func(agent string) error
	// Expand gets the prompt from elsewhere, such as from an MCP server; the turn waits for it.
	// The user sees the error.
	Expand  func(ctx context.Context) ([]event.Said, error)
	Compact string // the user's addition to the request for a summary
	// Run executes the command; the user is shown the text it returns. It may wait, and may call
	// any method of the session.
	Run func(ctx context.Context, s *Session) (string, error)
	// Dialog is a dialog that the command begins; Text is its first input.
	Dialog Dialog
	Text   string
}

// Commands looks up slash commands.
type Commands interface {
	// Find returns the command that a message calls; ok is false for ordinary messages.
	Find(message string) (c Command, ok bool)
	// ChangesBeyondChats reports whether a message calls a command that may change more than chats: files,
	// the configuration, credentials or limits.
	ChangesBeyondChats(message string) bool
}

// Deps is what an Engine needs. All fields are required unless said otherwise.
type Deps struct {
	Store    Store
	Models   Models
	ModelIDs func() []string // full ids of the models that can be used, for messages
	Contexts contexts.Source
	// AwaitTools waits until the tools of MCP servers that announced a change are known again; may be
	// nil.
	AwaitTools func(ctx context.Context)
	Files      Files
	Commands   Commands
	// Instructions finds the project's instructions for folders that calls touch; may be nil.
	Instructions func(context.Context, contexts.NestedQuery) (files []contexts.AgentsFile, problems []string)
	Refresh      func()          // reloads changed configuration files before a turn; may be nil
	Current      func() Snapshot // the snapshot for a new turn
	// Budget counts what is spent and knows the limits; nil means no limits.
	Budget Budget
	// AskUser asks the user to choose; asked is false if the client cannot show questions. It is nil
	// if no client can.
	AskUser func(ctx context.Context, chatID, question string, choices []string) (choice string, asked bool)
	Machine Machine
	Now     func() time.Time
	NewID   func() string
	Log     *slog.Logger
}

// Snapshot is the configuration and the state derived from it, which must be consistent. A turn uses
// one snapshot from its beginning to its end.
type Snapshot struct {
	Config *config.Config
	Roots  []string // workspace folders
	Policy tools.Policy
	Models Models
	Hooks  *hooks.Set     // nil: no hooks
	System []SystemSource // sources of the system prompt besides the agent's own prompt; may be nil
	// Tools returns the current tools. A turn calls it again after calls of MCP tools, because servers
	// may add and remove tools.
	Tools func() *tools.Registry
}

// Engine owns the sessions of one process.
type Engine struct {
	deps Deps

	histories      historyCache
	queue          *hookQueue
	beginOnce      sync.Once
	startHooksDone chan struct{} // closed when the sessionStart hooks have run, or never will
	news           newsHub
	endOnce        sync.Once

	mu       sync.Mutex // guards the fields below
	sessions map[string]*Session
	opening  map[string]chan struct{} // closed when the attempt to open the chat has ended
	deleting map[string]chan struct{} // closed when the attempt to delete the chat has ended
	closed   bool
}

// New returns an engine. Close must be called.
func New(deps Deps) *Engine {
	return &Engine{
		deps: deps, sessions: map[string]*Session{}, opening: map[string]chan struct{}{}, deleting: map[string]chan struct{}{},
		queue: newHookQueue(deps.Log.Warn), startHooksDone: make(chan struct{}), histories: historyCache{max: maxCached},
	}
}

// Open returns the session of a chat. An empty id creates a new chat with a generated id; nothing is
// stored before its first prompt. isNew is true if no open or stored chat was found; a chat that cannot
// be read counts as not stored. Callers that open different chats do not wait for each other.
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
			return nil, false, ctx.Err() // the caller gave up; the store may be fine
		}
		if err != nil {
			// A store that cannot be read must not stop the user from chatting.
			e.deps.Log.Warn("cannot read a chat", "chat", id, "err", err)
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

// beginOpen returns the session if it is open. Otherwise it gives the caller the exclusive right to
// open it until done is called, and waits while another caller has that right.
func (e *Engine) beginOpen(ctx context.Context, id string) (s *Session, done func(), err error) {
	for {
		e.mu.Lock()
		s, open := e.sessions[id]
		_, deleting := e.deleting[id]
		other, opening := e.opening[id]
		attemptEnded := make(chan struct{})
		if !open && !deleting && !opening && !e.closed {
			e.opening[id] = attemptEnded
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
				close(attemptEnded)
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

// ChangesBeyondChats reports whether a prompt itself, without any tool call, may change more than
// chats: it calls such a command, or is the input of an open dialog.
func (e *Engine) ChangesBeyondChats(chatID, prompt string) bool {
	s, open := e.Lookup(chatID)
	return open && s.InDialog() || e.deps.Commands.ChangesBeyondChats(prompt)
}

// Delete stops and removes a chat in the background; deleting an unknown chat does nothing. The
// returned function waits until that is done. Until then the chat cannot be opened.
func (e *Engine) Delete(id string) (wait func() error) {
	done := make(chan struct{})
	e.mu.Lock()
	if earlier, ok := e.deleting[id]; ok {
		e.mu.Unlock()
		return func() error { <-earlier; return nil }
	}
	s := e.sessions[id]
	delete(e.sessions, id)
	e.deleting[id] = done
	e.mu.Unlock()
	var err error
	go func() {
		if s != nil {
			s.close(errStopped)
		}
		e.closeChildren(id)
		err = e.deleteFromStore(id)
		e.mu.Lock()
		delete(e.deleting, id)
		e.mu.Unlock()
		close(done)
	}()
	return func() error { <-done; return err }
}

// deleteFromStore runs the chatEnd hooks of a chat and removes it from the store. It returns
// ErrBusyElsewhere while another process uses the chat.
func (e *Engine) deleteFromStore(id string) error {
	unlock, ok, err := e.lock(context.Background(), id)
	switch {
	case err != nil: // lock files do not work, so no other process uses them either
	case !ok:
		return ErrBusyElsewhere
	default:
		defer unlock()
	}
	e.runChatEndHooks(id)
	return e.deleteLocked(id)
}

// deleteLocked removes a chat from the store. The caller holds its lock.
func (e *Engine) deleteLocked(id string) error {
	if err := e.deps.Store.Delete(context.Background(), id); err != nil {
		return err
	}
	if err := e.deps.Files.Forget(context.Background(), id); err != nil {
		e.deps.Log.Warn("cannot remove the undo data of a deleted chat", "chat", id, "err", err)
	}
	return nil
}

// Close ends all turns, stores all events, closes all sessions, and runs the sessionEnd hooks.
func (e *Engine) Close() {
	timer := time.AfterFunc(closeTimeout, e.queue.cancel)
	defer timer.Stop()
	e.CloseChats()
	e.runSessionEndHooks()
}

// CloseChats ends all turns, stores all events and closes all sessions, without running hooks.
func (e *Engine) CloseChats() {
	e.mu.Lock()
	e.closed = true
	open := slices.Collect(maps.Values(e.sessions))
	deletions := slices.Collect(maps.Values(e.deleting))
	e.mu.Unlock()
	var wg sync.WaitGroup
	for _, done := range deletions {
		wg.Go(func() { <-done })
	}
	for _, s := range open {
		wg.Go(func() { s.close(errShutdown) })
	}
	wg.Wait()
}
