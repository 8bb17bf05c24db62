// Package server is the ECA face: it speaks the ECA protocol with one client over a
// pair of pipes and drives the chat engine.
//
// Handlers decode, call the engine and map errors; one file per method family. What
// a chat shows comes from its event log alone: a view (view.go) per chat reads the
// log and a fold without effects (content.go) maps events to notifications.
//
// It guarantees the order of eca-protocol section 8, no notification before
// `initialized`, and none about chats the client does not know. A client that stops
// reading delays nothing but its own view.
package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Host is what the face needs from the program around it.
type Host interface {
	Providers
	MCPServers
	// Connect says what the client can be asked, before Configure.
	Connect(editor.Client, ask.Client)
	// Configure applies a client's options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	// SetRoots configures for other workspace folders, with the same options.
	SetRoots(roots []string)
	// Roots are the workspace folders.
	Roots() []string
	// FindFiles answers what a user types to name a file, best first (see
	// workspace.Finder).
	FindFiles(ctx context.Context, roots []string, query string) ([]workspace.Found, error)
	// MCPResources lists the resources of MCP servers that a query names.
	MCPResources(query string) []mcp.Resource
	Config() *config.Loaded
	// Watch puts changes of configuration files into effect until ctx ends, and calls
	// changed after each. changed does not wait.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	Inline() *inline.Engine
	// ModelChoice lists what can be used, as far as it is known without the network.
	ModelChoice() chat.ModelChoice
	AskLocalModels(ctx context.Context) // of servers that the user runs
	// Variants lists the variants of a model; ok is false if the model can not be used.
	Variants(model string) (variants []string, ok bool)
	// SyncModels asks providers what they offer. It may take long.
	SyncModels(ctx context.Context)
	// Tasks lists what is to be done once, after the start. They may take long.
	Tasks() []chat.Task
	// ToolChoices lists the native tools and whether an agent may use them.
	ToolChoices(agent string) []tools.Choice
	// Commands lists the slash commands.
	Commands() []command.Offer
	// AskTrust asks the user in a chat whether what the workspace brings along may act, if
	// that is a question. It waits for the answer.
	AskTrust(ctx context.Context, chatID string)
	// Jobs lists the background commands, the oldest first. KillJob ends one; false says that
	// it had ended before, or that there is none. JobOutput is the end of its output.
	Jobs() []tools.Job
	KillJob(id string) bool
	JobOutput(id string) (job tools.Job, list []tools.JobLine, ok bool)
	// WatchJobs calls changed after each change of a job, until ctx ends.
	WatchJobs(ctx context.Context, changed func())
	// Notices are things the user should be told at start.
	Notices() []string
}

// Options configure a Server.
type Options struct {
	Host    Host
	Version string
	NewID   func() string                    // default: random UUIDs
	Log     *slog.Logger                     // default: slog.Default
	Trace   func(incoming bool, body []byte) // see jsonrpc.Options
}

// Server serves one client.
type Server struct {
	host    Host
	version string
	newID   func() string
	log     *slog.Logger
	conn    *jsonrpc.Conn
	methods map[string]handler

	ctx  context.Context // ends with the connection
	exit chan struct{}   // closed by the exit notification or the parent's death
	once sync.Once
	work sync.WaitGroup // what runs in the background

	handling chan struct{} // of one: held while a message is handled, and when Serve ends

	ending sync.Mutex // guards over
	over   bool       // Serve waits for the work that there is, and there is no more

	changes order // of settings
	queues  chatQueues

	connected atomic.Pointer[client] // nil before initialize

	mu        sync.Mutex // guards what follows
	lifecycle lifecycle
	views     map[string]*view
	rewrites  map[string]*rewrite      // that are not over, by the client's id
	deletions map[string]chan struct{} // by chat; closed when chat/deleted is on its way
	numbered  map[string]string        // chats by the numbers that the client has for them
	// The agent whose tools the client shows: of the chat for which one was picked last. Empty:
	// the default.
	toolsAgent string
	agent      string // chosen for chats that are not known yet; empty: the default

	configPush configPush
}

// lifecycle of the protocol (eca-protocol, section 3).
type lifecycle int

// States, in the only order they can be entered. A second initialize is allowed and
// changes nothing here.
const (
	created lifecycle = iota
	initializing
	initialized
	shutDown
)

func (l lifecycle) String() string {
	return [...]string{"created", "initializing", "initialized", "shut down"}[l]
}

// Serve talks to a client until it says exit, its input ends, its process dies, or
// ctx ends.
func Serve(ctx context.Context, r io.Reader, w io.Writer, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	s := &Server{
		host: o.Host, version: o.Version, newID: o.NewID, log: o.Log, ctx: ctx,
		exit: make(chan struct{}), handling: make(chan struct{}, 1),
		views: map[string]*view{}, rewrites: map[string]*rewrite{}, deletions: map[string]chan struct{}{}, queues: chatQueues{last: map[string]chan struct{}{}},
		numbered: map[string]string{}, configPush: configPush{begun: make(chan struct{})},
	}
	s.conn = jsonrpc.NewConn(r, w, jsonrpc.Options{Trace: s.traced(o.Trace), Log: o.Log})
	s.methods = table(s)
	s.background(s.watchConfig)
	s.background(s.watchJobs)
	s.conn.Start(ctx, s.handle)
	select {
	case <-s.exit:
	case <-s.conn.EOF():
	case <-ctx.Done():
	}
	// Stored before the pipe goes away: some clients kill right after exit.
	s.host.Engine().Close()
	s.conn.Close()
	cancel()
	select {
	case s.handling <- struct{}{}: // no message is, and none will be
	case <-time.After(shutdownTime):
	}
	s.ending.Lock()
	s.over = true
	s.ending.Unlock()
	s.mu.Lock()
	views := maps.Clone(s.views)
	s.mu.Unlock()
	for _, v := range views {
		<-v.ended
	}
	s.work.Wait()
	return nil
}

// background runs work that nobody waits for but Serve; it ends with s.ctx. Where Serve waits
// already there is nobody to work for.
func (s *Server) background(work func()) {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.over {
		return
	}
	s.work.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("background work panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		work()
	})
}

// admits says whether a method may be called now.
func (s *Server) admits(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case method == "initialize" || method == "exit" || method == "shutdown":
		return nil
	case s.lifecycle < initializing:
		return jsonrpc.Errorf(jsonrpc.CodeNotInitialized, "%s before initialize", method)
	case s.lifecycle == shutDown:
		return jsonrpc.Errorf(jsonrpc.CodeNotInitialized, "%s after shutdown", method)
	}
	return nil
}

func (s *Server) advance(to lifecycle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to > s.lifecycle {
		s.lifecycle = to
	}
}

// notify sends a notification and waits while the client does not read.
func (s *Server) notify(ctx context.Context, method string, params any) {
	s.logMessage(params)
	if err := s.conn.Notify(ctx, method, params); err != nil && ctx.Err() == nil {
		s.log.Debug("notification not sent", "method", method, "err", err)
	}
}

// post sends a notification without waiting; handlers that run in order use it.
func (s *Server) post(method string, params any) {
	s.logMessage(params)
	if err := s.conn.Post(method, params); err != nil {
		s.log.Debug("notification not sent", "method", method, "err", err)
	}
}

// logMessage puts a message to the user in the log: the clients that share the webview show
// the log, and no messages.
func (s *Server) logMessage(params any) {
	if m, ok := params.(protocol.ShowMessage); ok {
		s.log.Info("message to the user", "kind", m.Type, "text", m.Message)
	}
}

// watchParent ends the server when the client's process is gone.
func (s *Server) watchParent(pid int) {
	gone, stop := proc.Watch(pid)
	go func() {
		defer stop()
		select {
		case <-gone:
			s.log.Info("the client's process is gone", "pid", pid)
			s.leave()
		case <-s.ctx.Done():
		}
	}()
}

func (s *Server) leave() { s.once.Do(func() { close(s.exit) }) }

// shutdownTime bounds the work of the shutdown request: clients wait three seconds.
const shutdownTime = 2 * time.Second

// Shutdown implements protocol.Server: all turns end and everything is stored.
func (s *Server) Shutdown(context.Context, protocol.Request[protocol.None]) (protocol.Later[protocol.Null], error) {
	s.advance(shutDown)
	return func(context.Context) (protocol.Null, error) {
		stored, closed := make(chan struct{}), make(chan struct{})
		go func() {
			s.host.Engine().CloseChats()
			close(stored)
			var servers sync.WaitGroup
			servers.Go(s.host.CloseMCPServers)
			s.host.Engine().Close()
			servers.Wait()
			close(closed)
		}()
		select {
		case <-closed:
			return protocol.Null{}, nil
		case <-time.After(shutdownTime):
			select {
			case <-stored:
				return protocol.Null{}, nil // hooks go on until exit
			default:
			}
			return protocol.Null{}, fmt.Errorf("some work did not end within %s", shutdownTime)
		}
	}, nil
}

// Exit implements protocol.Server.
func (s *Server) Exit(context.Context, protocol.None) error {
	s.leave()
	return nil
}
