// Package server is the ECA face: it speaks the ECA protocol with one client over a
// pair of pipes and drives the chat engine.
//
// Handlers decode, call the engine and map errors; each method family has its own file. The
// notifications of a chat come from its event log alone: each chat has a view (view.go) that reads
// the log, and a fold without side effects (content.go) that maps events to notifications.
//
// It guarantees the order of eca-protocol section 8. It sends no notification before `initialized`,
// and none about chats that the client does not know. A client that stops reading delays only its
// own view.
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
	"github.com/seed-dec29ce4/eca/chat/search"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc/scanner"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Host is the interface of the program around the face.
type Host interface {
	Providers
	MCPServers
	// Join adds the client, with the requests that it supports. It is called before Configure.
	Join(editor.Client, ask.Client) (leave func())
	// Configure applies a client's options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	// SetRoots changes the workspace folders and keeps the options.
	SetRoots(roots []string)
	// Roots are the workspace folders.
	Roots() []string
	// FindFiles returns the files that match what a user types, best first (see workspace.Finder).
	FindFiles(ctx context.Context, roots []string, query string) ([]workspace.Found, error)
	// MCPResources lists the resources of MCP servers that match a query.
	MCPResources(query string) []mcp.Resource
	Config() *config.Loaded
	// Watch puts changes of configuration files into effect until ctx ends, and calls changed after
	// each change. changed does not wait.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	// Search finds messages in all chats of the machine. Unless all is set, it waits only a moment
	// for the index and then searches what the index has.
	Search(ctx context.Context, query string, limit int, all bool) (search.Result, error)
	Inline() *inline.Engine
	// ModelChoice lists the models that can be used, without asking the network.
	ModelChoice() chat.ModelChoice
	AskLocalModels(ctx context.Context) // of model servers that the user runs
	// Variants lists the variants of a model; ok is false if the model cannot be used.
	Variants(model string) (variants []string, ok bool)
	// SyncModels gets the providers' lists of models. It may take long.
	SyncModels(ctx context.Context)
	// Tasks lists the tasks that run once after the start. They may take long.
	Tasks() []chat.Task
	// ToolChoices lists the native tools and whether an agent may use them.
	ToolChoices(agent string) []tools.Choice
	// Commands lists the slash commands.
	Commands() []command.Offer
	// AskTrust asks the user in a chat whether to trust the workspace's own configuration, if that
	// is still undecided. It waits for the answer.
	AskTrust(ctx context.Context, chatID string)
	// Jobs lists the background commands, the oldest first. KillJob ends one; it returns false if
	// the job has ended already or does not exist. JobOutput returns the end of its output.
	Jobs() []tools.Job
	KillJob(id string) bool
	JobOutput(id string) (job tools.Job, list []tools.JobLine, ok bool)
	// WatchJobs calls changed after each change of a job, until ctx ends.
	WatchJobs(ctx context.Context, changed func())
	// Notices are messages for the user at the start.
	Notices() []string
}

// Options configure a Server.
type Options struct {
	Host    Host
	Version string
	NewID   func() string                    // default: random UUIDs
	Log     *slog.Logger                     // default: slog.Default
	Trace   func(incoming bool, body []byte) // see jsonrpc.Options
	Monitor *Monitor                         // gets the server; may be nil

	// Shared says that the daemon belongs to another client: it is configured, and it goes on when
	// this client leaves.
	Shared bool
	// Follow serves a client that reads positions: see follow.go.
	Follow bool
}

// Server serves one client. It implements protocol.Server, which has a method for each method of
// the protocol; the methods are in the files of their families.
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
	work sync.WaitGroup // background work

	shared, follow bool               // see Options
	news           *chat.Subscription // of what other clients do

	handling chan struct{} // holds one element while a message is handled, and when Serve ends

	ending sync.Mutex // guards over
	over   bool       // Serve waits for the remaining work, and no more may start

	changes serialQueue // of settings
	queues  chatQueues

	leaveDaemon atomic.Pointer[func()] // nil before initialize

	connected atomic.Pointer[client]                // nil before initialize
	announced atomic.Pointer[protocol.Capabilities] // nil before initialize

	mu        sync.Mutex // guards the fields below
	lifecycle lifecycle
	views     map[string]*view
	rewrites  map[string]*rewrite      // unfinished ones, by the client's id
	deletions map[string]chan struct{} // by chat; closed when chat/deleted is queued
	numbered  map[string]string        // chat ids by the client's own numbers
	// The agent whose tools the client shows: the agent of the chat for which one was picked last.
	// Empty means the default.
	toolsAgent string
	agent      string // chosen for chats that do not exist yet; empty: the default

	configPush configPush
}

// lifecycle of the protocol (eca-protocol, section 3).
type lifecycle int

// States, in the only order in which they can be entered. A second initialize is allowed and
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

// Serve talks to a client until the client sends exit, its input ends, its process dies, or ctx
// ends.
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
		host: o.Host, version: o.Version, newID: o.NewID, log: o.Log, ctx: ctx, shared: o.Shared, follow: o.Follow,
		exit: make(chan struct{}), handling: make(chan struct{}, 1),
		views: map[string]*view{}, rewrites: map[string]*rewrite{}, deletions: map[string]chan struct{}{}, queues: chatQueues{last: map[string]chan struct{}{}},
		numbered: map[string]string{}, configPush: configPush{begun: make(chan struct{})},
	}
	s.conn = jsonrpc.NewConn(r, w, jsonrpc.Options{Decode: scanner.Decode, Trace: s.traced(o.Trace), Log: o.Log})
	s.methods = table(s)
	if s.follow {
		s.addFollowMethods()
	}
	s.news = o.Host.Engine().Subscribe(s.heed)
	if o.Monitor != nil {
		o.Monitor.server.Store(s)
	}
	s.background(s.watchConfig)
	s.background(s.watchJobs)
	s.conn.Start(ctx, s.handle)
	select {
	case <-s.exit:
	case <-s.conn.EOF():
	case <-ctx.Done():
	}
	s.news.Close()
	if leave := s.leaveDaemon.Swap(nil); leave != nil {
		(*leave)()
	}
	if !s.shared { // stored before the pipe closes: some clients kill right after exit
		s.host.Engine().Close()
	}
	s.conn.Close()
	cancel()
	select {
	case s.handling <- struct{}{}: // no message is being handled, and none will be
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

// background runs work that only Serve waits for; it ends with s.ctx. Once Serve waits, the work is
// dropped, because there is no client any more.
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

// admits returns an error if a method may not be called now.
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

// notify sends a notification. It waits while the client does not read.
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

// logMessage also logs a message to the user: the clients that share the webview show the log, but
// no messages.
func (s *Server) logMessage(params any) {
	if m, ok := params.(protocol.ShowMessage); ok {
		s.log.Info("message to the user", "kind", m.Type, "text", m.Message)
	}
}

// watchParent ends the server when the client's process has ended.
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

// Shutdown implements protocol.Server: it ends all turns and stores everything.
func (s *Server) Shutdown(context.Context, protocol.Request[protocol.None]) (protocol.AsyncResult[protocol.Null], error) {
	s.advance(shutDown)
	if s.shared {
		return protocol.Immediate(protocol.Null{}), nil
	}
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
				return protocol.Null{}, nil // hooks run on until exit
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
