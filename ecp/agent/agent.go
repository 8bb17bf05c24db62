// Package agent is the ECP face: it lets an evaluation runtime drive the chat engine.
//
// It owns the agent's side of the protocol (package ecp) on both transports: lines of JSON
// on a pair of pipes (Serve) and Streamable HTTP (Handler). A step is a whole turn of the
// engine, with its own tools in a real workspace. One Agent has one conversation: as the
// protocol has no sessions, whoever calls it next goes on with it, until reset or
// initialize begins another.
//
// It guarantees: calls are carried out one after the other, in the order in which they
// came, except that reset stops the step that runs; each call gets one answer; nothing is
// approved that the approval policy of initialize does not allow, and no workspace is
// trusted; not more tool calls run than the budget says; a step is answered before the
// runtime's limit of a call (ECP_RPC_TIMEOUT), with what there is by then; whatever comes
// in, the agent lives on. What it does not do: put back what steps did to the workspace,
// which is the caller's.
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

// Host is what the face needs from the program around it.
type Host interface {
	// Connect says what the client can be asked, before Configure.
	Connect(editor.Client, ask.Client)
	// Guard has all tools pass through a function, before they are offered to a model.
	Guard(func(tools.Tool) (t tools.Tool, offered bool))
	// Configure applies a client's options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	Config() *config.Loaded
	// Watch puts changes of configuration files into effect until ctx ends.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	// Extensions returns what users added in files, agents among it.
	Extensions() *extensions.Set
	// CheckModel returns the full id of a model, or an error that names it if it can not be
	// used. It may ask its provider.
	CheckModel(ctx context.Context, name string) (id string, err error)
	// SyncPlugins and StartMCPServers get ready what brings tools. They may take long.
	SyncPlugins(ctx context.Context)
	StartMCPServers(ctx context.Context)
	// Untrusted lists what in the workspace does nothing because the user does not trust it.
	Untrusted() []config.Unit
	// Clean removes secrets from a text.
	Clean(text string) string
}

// Options configure an Agent.
type Options struct {
	Host      Host
	Version   string
	Workspace string        // folder for runtimes that name none, absolute
	Limit     time.Duration // of one call, as the runtime has it; 0: none
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

	// Owned by the call whose turn it is (queue).
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
	a.host.Connect(editor.Client{}, questions{a})
	return a
}

// Close stops the step that runs, and ends the conversation. Calls that come later are
// refused.
func (a *Agent) Close() {
	a.line.close()
	a.forget()
	a.cancel()
	a.work.Wait()
}

// reset begins another conversation (1.1). What steps did to the workspace stays.
func (a *Agent) reset(context.Context, json.RawMessage, time.Time) (any, *ecp.Error) {
	a.forget()
	return true, nil
}

// forget ends the conversation. Nobody reads evaluations in an editor's list of chats.
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
