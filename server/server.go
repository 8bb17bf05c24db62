// Package server is the ECA face: it speaks the ECA protocol with one client over a
// pair of pipes and drives the chat engine.
//
// Handlers decode, call the engine and map errors; each method family has its own type and file. The
// notifications of a chat come from its event log alone: each chat has a view (view.go) that reads
// the log, and a fold without side effects (content.go) that maps events to notifications.
//
// It guarantees the message order of eca-protocol.md section 8. It sends no notification before
// `initialized`, and none about chats that the client does not know. A client that stops reading
// delays only its own view.
package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/search"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc/scanner"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
)

// Host is the interface of the program around the face.
type Host interface {
	Providers
	MCPServers
	// Join adds the client, with the requests that it supports. It is called before Configure.
	Join(editor.Client, ask.Client) (leave func())
	Jobs
	Offers
	// Configure applies a client's options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	// SetRoots changes the workspace folders and keeps the options.
	SetRoots(roots []string)
	Config() *config.Loaded
	// Watch puts changes of configuration files into effect until ctx ends, and calls changed after
	// each change. changed does not wait.
	Watch(ctx context.Context, changed func())
	Engine() *chat.Engine
	// Search finds messages in all chats of the machine. Unless waitForIndex is set, it waits only a
	// moment for updates of the index, and then searches the index as it is.
	Search(ctx context.Context, query string, limit int, waitForIndex bool) (search.Result, error)
	// ModelChoice lists the models that can be used, without asking the network.
	ModelChoice() chat.ModelChoice
	AskLocalModels(ctx context.Context) // lists the models of model servers that the user runs
	// Variants lists the variants of a model; ok is false if the model cannot be used.
	Variants(model string) (variants []string, ok bool)
	// SyncModels gets the providers' lists of models. It may take seconds.
	SyncModels(ctx context.Context)
	// StartupTasks lists the tasks that run once after the start. They may take minutes.
	StartupTasks() []chat.StartupTask
	// ToolChoices lists the native tools and whether an agent may use them.
	ToolChoices(agent string) []tools.Choice
	// AskTrust asks the user in a chat whether to trust the workspace's own configuration, if the
	// user has not decided yet. It waits for the answer.
	AskTrust(ctx context.Context, chatID string)
	// Notices returns messages to show to the user at the start.
	Notices() []string
}

// Options configure a Server.
type Options struct {
	Host    Host
	Version string
	NewID   func() string                    // default: random UUIDs
	Log     *slog.Logger                     // default: slog.Default
	Trace   func(incoming bool, body []byte) // see jsonrpc.Options
	Monitor *Monitor                         // set to observe this server; may be nil

	// Shared means that the daemon belongs to another client: this client does not configure it,
	// and it continues when this client leaves.
	Shared bool
	// Follow adds the methods for a client that resumes at positions: see follow.go. It returns how
	// long the client waits between two pieces of a text that grows. Nil: it is an ordinary client.
	Follow func() time.Duration
}

// Server serves one client: it has the lifecycle of the connection, and passes each message to its
// method. Each family of methods is a type (see families).
type Server struct {
	*connection
	host    Host
	version string
	methods map[string]handler

	exit     chan struct{} // closed by the exit notification or the parent's death
	exitOnce sync.Once

	shared bool // see Options

	handling chan struct{} // holds one element while a message is handled, and after Serve has ended

	queues   chatQueues
	numbers  chatNumbers
	views    *views
	settings *settings

	leaveDaemon atomic.Pointer[func()] // nil before initialize

	mu        sync.Mutex // guards lifecycle
	lifecycle lifecycle
}

// lifecycle of the protocol (eca-protocol.md, section 3).
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
// ends. It is an error if the input ends in the middle of a message.
func Serve(ctx context.Context, r io.Reader, w io.Writer, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	s := newServer(ctx, o)
	trace := redactTrace(o.Trace, o.Host)
	opts := jsonrpc.Options{Decode: scanner.Decode, Trace: trace, Log: o.Log}
	if s.followPeriod != nil {
		opts.MaxQueued = followQueue
	}
	s.conn = jsonrpc.NewConn(r, w, opts)
	if s.followPeriod != nil {
		s.addFollowMethods()
	}
	s.news = o.Host.Engine().Subscribe(s.handleNews)
	if o.Monitor != nil {
		o.Monitor.views.Store(s.views)
	}
	s.background(s.settings.watch)
	s.background(func() { s.settings.jobs.watch(s.settings.firstPushed) })
	s.conn.Start(ctx, s.handle)
	var failed error
	select {
	case <-s.exit:
	case <-s.conn.EOF():
		failed = s.conn.Err()
	case <-ctx.Done():
	}
	s.news.Close()
	if leave := s.leaveDaemon.Swap(nil); leave != nil {
		(*leave)()
	}
	if !s.shared { // before the pipe closes: some clients kill the process right after exit
		s.host.Engine().Close()
	}
	s.conn.Close()
	cancel()
	select {
	case s.handling <- struct{}{}: // no message is being handled, and none will be
	case <-time.After(shutdownTime):
	}
	s.wait()
	for _, v := range s.views.all() {
		<-v.done
	}
	return failed
}

// newServer returns a server without a connection.
func newServer(ctx context.Context, o Options) *Server {
	c := &connection{ctx: ctx, log: o.Log, newID: o.NewID, followPeriod: o.Follow}
	jobs := &jobs{c, o.Host}
	views := &views{connection: c, host: o.Host, list: map[string]*view{}, deletions: map[string]chan struct{}{}}
	settings := &settings{connection: c, host: o.Host, jobs: jobs, firstPushed: make(chan struct{})}
	s := &Server{
		connection: c, host: o.Host, version: o.Version, shared: o.Shared, exit: make(chan struct{}), handling: make(chan struct{}, 1),
		queues: chatQueues{last: map[string]chan struct{}{}}, numbers: chatNumbers{ids: map[string]string{}, newID: o.NewID},
		views: views, settings: settings,
	}
	s.methods = handlerTable(families{
		Server:     s,
		prompts:    &prompts{c, o.Host, views, settings},
		chats:      &chats{c, o.Host, views, settings},
		queries:    &queries{o.Host},
		selections: &selections{c, o.Host, settings, views},
		mcpServers: &mcpServers{c, o.Host, settings},
		logins:     &logins{c, o.Host, settings},
		jobs:       jobs,
		rewrites:   &rewrites{connection: c, host: o.Host, unfinished: map[string]*rewrite{}},
	})
	return s
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

// watchParent makes Serve return when the client's process has ended.
func (s *Server) watchParent(pid int) {
	gone, stop := proc.Watch(pid)
	go func() {
		defer stop()
		select {
		case <-gone:
			s.log.Info("the client's process is gone", "pid", pid)
			s.signalExit()
		case <-s.ctx.Done():
		}
	}()
}

func (s *Server) signalExit() { s.exitOnce.Do(func() { close(s.exit) }) }

// shutdownTime limits the work of the shutdown request: clients wait three seconds.
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
	s.signalExit()
	return nil
}
