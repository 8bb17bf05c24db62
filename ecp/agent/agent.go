// Package agent serves ECP: it lets an evaluation runtime drive the chat engine.
//
// It owns the agent's side of the protocol (package ecp) on both transports: lines of JSON on a
// pair of pipes (Serve) and Streamable HTTP (Handler). A step is a whole turn of the engine, with
// its own tools in a real workspace. One Agent has one conversation. The protocol has no sessions,
// so the next caller continues the conversation, until reset or initialize begins another.
//
// Guarantees:
//   - Requests are executed one after the other, in the order of their arrival, except
//     that reset stops the running step.
//   - Each request gets one answer.
//   - Tool calls are approved only if the approval policy of initialize allows it.
//   - A runtime cannot make eca trust a workspace.
//   - No more tool calls run than the budget allows.
//   - A step is answered before the runtime's time limit for calls (ECP_RPC_TIMEOUT), with the
//     results so far.
//   - The agent survives any input.
//
// It does not undo the changes that steps make to the workspace, which belongs to the caller.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
)

// Host is the part of the program that an Agent uses.
type Host interface {
	// Join adds a client with its abilities, before Configure is called.
	Join(editor.Client, ask.Client) (leave func())
	// Guard sets a function that wraps or drops each tool before it is offered to a model.
	Guard(func(tools.Tool) (t tools.Tool, offered bool))
	// Configure applies a client's options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	// Watch applies changes of configuration files until ctx ends.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	// CheckAgent returns an error if a turn cannot use an agent. The name "" means the default
	// agent.
	CheckAgent(name string) error
	// CheckModel returns the full id of a model, or an error if the model cannot be used. It may send a
	// request to the provider.
	CheckModel(ctx context.Context, name string) (id string, err error)
	// SyncPlugins and StartMCPServers make more tools available. They may take a long time.
	SyncPlugins(ctx context.Context)
	StartMCPServers(ctx context.Context)
	// UnknownTool returns a message if there is no tool with a name, otherwise "".
	UnknownTool(name string) string
	// Untrusted lists the configuration of the workspace that is ignored because the user does not
	// trust it.
	Untrusted() []config.Unit
	// Clean removes secrets from a text.
	Clean(text string) string
}

// Options configure an Agent.
type Options struct {
	Host      Host
	Version   string
	Workspace string        // absolute; used if the runtime names no folder
	Limit     time.Duration // the runtime's time limit for one request; 0: no limit
	Now       func() time.Time
	NewID     func() string
	Log       *slog.Logger
}

// Agent serves one runtime at a time. Close must be called.
type Agent struct {
	opts Options

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	queue  queue
	gate   gate

	// Owned by the request that the queue admits.
	settings *settings     // nil before the first initialize or step
	session  *chat.Session // nil before the first step of a conversation
	paused   *run          // a turn whose question the next step answers
}

// New returns an agent.
func New(o Options) *Agent {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	a := &Agent{opts: o}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.opts.Host.Join(editor.Client{}, questions{a})
	return a
}

// Close stops the running step and ends the conversation. Later requests are refused.
func (a *Agent) Close() {
	a.queue.close()
	a.deleteChat()
	a.cancel()
	a.work.Wait()
}

// reset begins another conversation (docs/contracts/ecp.md 1.1). It keeps the changes that steps
// made to the workspace.
func (a *Agent) reset(context.Context, json.RawMessage, time.Time) (any, *ecp.Error) {
	a.deleteChat()
	return true, nil
}

// deleteChat ends and deletes the conversation, so that editors do not list it.
func (a *Agent) deleteChat() {
	if a.session == nil {
		return
	}
	id := a.session.ID()
	a.session, a.paused = nil, nil
	if err := a.opts.Host.Engine().Delete(id)(); err != nil {
		a.opts.Log.Warn("cannot delete the conversation", "chat", id, "err", err)
	}
}
