// Package gateway runs the chat engine for callers that speak in E2A envelopes: every
// envelope that comes in is answered with frames, in order, the last of them final.
//
// It owns what methods there are (contract e2a.md 10; methods.go), how the engine's events
// become frames (frames.go), and how content blocks become a prompt (prompt.go). It
// guarantees: frames of one envelope keep the invariants of e2a.Stream; each envelope gets
// exactly one final frame, whatever happens; what a turn does is told completely and in
// order however slowly frames are taken, because they are read from the chat's log; a turn
// that the user stopped is complete, not failed.
//
// The faces above it (the lines of `eca e2a`, WebSocket, ACP, A2A) only carry envelopes
// and frames. It does not trust folders or approve calls by itself: a call that asks is
// shown with manual_approval, and waits for chat.approve or chat.reject.
package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
)

// Host is what the gateway needs from the program around it.
type Host interface {
	// Connect says what the client can be asked, before Configure.
	Connect(editor.Client, ask.Client)
	// Configure applies options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	Config() *config.Loaded
	// Watch puts changes of configuration files into effect until ctx ends.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	// Extensions returns what users added in files, agents among it.
	Extensions() *extensions.Set
	// ModelChoice is the choice of models, as far as it is known without the network.
	ModelChoice() chat.ModelChoice
	// SyncModels asks providers what they offer. It may take seconds.
	SyncModels(ctx context.Context)
	// Variants lists those of a model; ok is false if the model can not be used.
	Variants(model string) (variants []string, ok bool)
	// Commands lists the slash commands.
	Commands() []command.Offer
	// CheckModel returns the full id of a model, or an error that names it.
	CheckModel(ctx context.Context, name string) (id string, err error)
	SyncPlugins(ctx context.Context)
	StartMCPServers(ctx context.Context)
	// Clean removes secrets from a text.
	Clean(text string) string
}

// Options configure a Gateway.
type Options struct {
	Host      Host
	Workspace string   // absolute
	Folders   []string // more folders of the workspace, absolute

	// InitOptions are configuration of the client's, as a JSON object; may be nil.
	InitOptions json.RawMessage

	Editor editor.Client // what the client can be asked
	// Farewell is how long last answers may take to be read when the program ends; default:
	// three seconds.
	Farewell time.Duration
	Now      func() time.Time
	NewID    func() string
	Log      *slog.Logger
}

// Gateway runs envelopes. Close must be called.
type Gateway struct {
	host  Host
	now   func() time.Time
	newID func() string
	log   *slog.Logger

	farewell time.Duration

	closing sync.Mutex      // nothing is added to work behind Close
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup
	ready   func() // waits for what brings tools, once

	questions questions
	pending   pending
}

// readyTime is how long the first prompt waits for plugins and MCP servers.
const readyTime = 10 * time.Second

// New configures the host for a workspace and returns a gateway to it.
func New(o Options) *Gateway {
	g := &Gateway{
		host: o.Host, now: o.Now, newID: o.NewID, log: cmp.Or(o.Log, slog.Default()), farewell: cmp.Or(o.Farewell, farewell),
	}
	if g.now == nil {
		g.now = time.Now
	}
	if g.newID == nil {
		g.newID = uuid.NewString
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.questions.newID = g.newID
	g.host.Connect(o.Editor, &g.questions)
	g.host.Configure(o.InitOptions, append([]string{o.Workspace}, o.Folders...))
	g.work.Go(func() { g.host.Watch(g.ctx, func() {}) })
	g.ready = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(g.ctx, readyTime)
		defer cancel()
		g.host.SyncPlugins(ctx)
		g.host.StartMCPServers(ctx) // those of plugins too
	})
	return g
}

// Close stops what runs. Envelopes that run then are answered, those of WebSockets before
// Close returns, if their answers are read.
func (g *Gateway) Close() {
	g.closing.Lock()
	g.cancel()
	g.closing.Unlock()
	g.work.Wait()
}

// enter has Close wait until work.Done is called; false says that it is too late.
func (g *Gateway) enter() bool {
	g.closing.Lock()
	defer g.closing.Unlock()
	if g.ctx.Err() != nil {
		return false
	}
	g.work.Add(1)
	return true
}

// Send takes a frame on its way. An error says that nobody takes frames any more.
type Send func(e2a.Response) error

// Leave says that nobody will answer any more: what asks now or later is refused, and the
// models are told.
func (g *Gateway) Leave() {
	g.pending.leave()
	g.questions.leave()
}

// Run answers an envelope. It returns when the final frame was sent, or with the error of
// send or ctx. If ctx ends or send fails while a turn runs, the turn is stopped: nobody
// would answer for it.
//
// Frames are sent one after the other; envelopes may run side by side.
//
// accepted, unless it is nil, is called once a prompt is in its session: what comes later
// is behind it.
func (g *Gateway) Run(ctx context.Context, e e2a.Envelope, send Send, accepted func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	if e.RequestID == nil || *e.RequestID == "" {
		id := g.newID()
		e.RequestID = &id
	}
	a := &answer{Stream: e2a.NewStream(e, g.newID, g.now), g: g, envelope: e, send: send, accepted: accepted}
	if a.accepted == nil {
		a.accepted = func() {}
	}
	err := a.run(ctx)
	if errors.Is(err, errSend) {
		return err
	}
	if a.Ended() {
		return nil
	}
	ending := g.ctx.Err() != nil || errors.Is(context.Cause(ctx), errEnding)
	if ctx.Err() != nil && !ending {
		return ctx.Err()
	}
	var failure *failure
	switch {
	case errors.As(err, &failure):
	case ending:
		failure = fail(codeGone, "%v", errEnding)
	default:
		failure = fail(codeAgent, "%v", err)
	}
	return a.failed(failure)
}

// answer is an envelope that is being answered.
type answer struct {
	*e2a.Stream
	g        *Gateway
	envelope e2a.Envelope
	send     Send
	accepted func()
}

// errSend wraps what Send returned.
var errSend = errors.New("frame not taken")

// put sends the frame that one of Stream's methods made.
func (a *answer) put(r e2a.Response, err error) error {
	if err != nil {
		return err
	}
	if err := a.send(r); err != nil {
		return errors.Join(errSend, err)
	}
	return nil
}

func (a *answer) failed(f *failure) error {
	return a.put(a.Fail(f.code, a.g.host.Clean(f.message), map[string]any{"error_type": f.kind}))
}
