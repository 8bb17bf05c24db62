// Package agent is the ECP face: it lets an evaluation runtime drive the chat engine.
//
// It owns the agent's side of the protocol (package ecp) on both transports: lines of JSON on a
// pair of pipes (Serve) and Streamable HTTP (Handler). A step is a whole turn of the engine, with
// its own tools in a real workspace. One Agent has one conversation. The protocol has no sessions,
// so the next caller continues the conversation, until reset or initialize begins another.
//
// Guarantees:
//   - Calls are carried out one after the other, in the order of their arrival, except that reset
//     stops the running step.
//   - Each call gets one answer.
//   - Only calls that the approval policy of initialize allows are approved, and no workspace is
//     trusted.
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
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
)

// Host is the interface of the program around the face.
type Host interface {
	// Join adds the client, with the requests that it supports. It is called before Configure.
	Join(editor.Client, ask.Client) (leave func())
	// Guard passes all tools through a function before they are offered to a model.
	Guard(func(tools.Tool) (t tools.Tool, offered bool))
	// Configure applies a client's options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	Config() *config.Loaded
	// Watch puts changes of configuration files into effect until ctx ends.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	// Extensions returns the extensions that users added in files, such as agents.
	Extensions() *extensions.Set
	// CheckModel returns the full id of a model, or an error that names it if it cannot be used. It
	// may ask its provider.
	CheckModel(ctx context.Context, name string) (id string, err error)
	// SyncPlugins and StartMCPServers make further tools available. They may take long.
	SyncPlugins(ctx context.Context)
	StartMCPServers(ctx context.Context)
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
	Limit     time.Duration // of one call, as set by the runtime; 0: none
	Now       func() time.Time
	NewID     func() string
	Log       *slog.Logger
}

// Agent serves one runtime at a time. Close must be called.
type Agent struct {
	host      Host
	version   string
	workspace string
	limit     time.Duration
	now       func() time.Time
	newID     func() string
	log       *slog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	line   queue
	gate   gate

	// Owned by the call that the queue admits.
	settings *settings     // nil before the first initialize or step
	session  *chat.Session // nil before the first step of a conversation
	asking   *run          // a turn that waits for the answer to its question
}

// New returns an agent.
func New(o Options) *Agent {
	a := &Agent{
		host: o.Host, version: o.Version, workspace: o.Workspace, limit: o.Limit,
		now: o.Now, newID: o.NewID, log: cmp.Or(o.Log, slog.Default()),
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.newID == nil {
		a.newID = uuid.NewString
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.host.Join(editor.Client{}, questions{a})
	return a
}

// Close stops the running step and ends the conversation. Later calls are refused.
func (a *Agent) Close() {
	a.line.close()
	a.forget()
	a.cancel()
	a.work.Wait()
}

// reset begins another conversation (1.1). It keeps the changes that steps made to the workspace.
func (a *Agent) reset(context.Context, json.RawMessage, time.Time) (any, *ecp.Error) {
	a.forget()
	return true, nil
}

// forget ends and deletes the conversation: evaluations do not belong into an editor's list of
// chats.
func (a *Agent) forget() {
	if a.session == nil {
		return
	}
	id := a.session.ID()
	a.session, a.asking = nil, nil
	if err := a.host.Engine().Delete(id)(); err != nil {
		a.log.Warn("the conversation could not be removed", "chat", id, "err", err)
	}
}
