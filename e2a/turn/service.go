// Package turn is the engine for callers that communicate by messages: they start a turn, follow
// its items, decide about calls, answer questions, and cancel it.
//
// ACP, A2A and E2A are adapters over it. Guarantees: a turn is shown completely and in order
// however slowly it is followed, because it is read from the chat's log. A turn is stopped when its
// caller stops following it. A turn that the user stopped counts as ended, not as failed. If no
// caller can decide about a call, the call is refused, and the model gets the refusal.
//
// It makes no decisions itself: a call that needs approval waits for Decide. It never trusts a
// folder. The entry points are New and Service.Start.
package turn

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
)

// Host is the part of the program that the service uses.
type Host interface {
	// Join adds a client with its abilities, before Configure is called.
	Join(editor.Client, ask.Client) (leave func())
	// Configure applies options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	Config() *config.Loaded
	// Watch applies changes of configuration files until ctx ends.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	// Extensions returns the extensions in the user's files, including agents.
	Extensions() *extensions.Set
	// ModelChoice returns the models that are known without the network.
	ModelChoice() chat.ModelChoice
	// SyncModels fetches the lists of models from the providers. It may take seconds.
	SyncModels(ctx context.Context)
	// Variants lists the variants of a model; ok is false if the model cannot be used.
	Variants(model string) (variants []string, ok bool)
	// Commands lists the slash commands.
	Commands() []command.Offer
	// CheckModel returns the full id of a model, or an error that names it.
	CheckModel(ctx context.Context, name string) (id string, err error)
	// CheckAgent returns an error if a turn cannot use an agent.
	CheckAgent(name string) error
	SyncPlugins(ctx context.Context)
	StartMCPServers(ctx context.Context)
	// Clean removes secrets from a text.
	Clean(text string) string
}

// Options configure a Service.
type Options struct {
	Host      Host
	Workspace string   // absolute
	Folders   []string // more folders of the workspace, absolute

	// InitOptions is configuration from the client, as a JSON object; may be nil.
	InitOptions json.RawMessage

	Editor editor.Client // the abilities of the client
	NewID  func() string
}

// Service runs turns. Close must be called.
type Service struct {
	host  Host
	newID func() string

	workMu  sync.Mutex      // guards work, so that nothing is added after Close
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup
	ready   func() // the first call waits for plugins and MCP servers
	pending pending
}

// readyTime is how long the first prompt waits for plugins and MCP servers.
const readyTime = 10 * time.Second

// New configures the host for a workspace and returns its service.
func New(o Options) *Service {
	s := &Service{host: o.Host, newID: o.NewID}
	if s.newID == nil {
		s.newID = uuid.NewString
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.pending.newID = s.newID
	s.host.Join(o.Editor, &s.pending)
	s.host.Configure(o.InitOptions, append([]string{o.Workspace}, o.Folders...))
	s.work.Go(func() { s.host.Watch(s.ctx, func() {}) })
	s.ready = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(s.ctx, readyTime)
		defer cancel()
		s.host.SyncPlugins(ctx)
		s.host.StartMCPServers(ctx) // including those of plugins
	})
	return s
}

// Close stops running work, and waits until it has ended and callers of Hold have released the
// service.
func (s *Service) Close() {
	s.workMu.Lock()
	s.cancel()
	s.workMu.Unlock()
	s.work.Wait()
}

// Hold makes Close wait until release is called; ok is false if Close was already called.
func (s *Service) Hold() (release func(), ok bool) {
	s.workMu.Lock()
	defer s.workMu.Unlock()
	if s.ctx.Err() != nil {
		return nil, false
	}
	s.work.Add(1)
	return s.work.Done, true
}

// Closing returns a channel that is closed when Close is called.
func (s *Service) Closing() <-chan struct{} { return s.ctx.Done() }

// Bind returns a context that ends when ctx does or when the service is closed.
func (s *Service) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unbind := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { unbind(); cancel() }
}

// Disconnect announces that no caller is left. Pending and later calls are refused, questions are
// declined, and the models are informed.
func (s *Service) Disconnect() { s.pending.disconnect() }
