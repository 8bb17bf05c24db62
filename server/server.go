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
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// Host is what the face needs from the program around it.
type Host interface {
	// Configure applies a client's options and workspace folders.
	Configure(initOptions json.RawMessage, roots []string)
	Config() *config.Loaded
	Engine() *chat.Engine
	// ModelChoice lists what can be used, as far as it is known without the network.
	ModelChoice() chat.ModelChoice
	// SyncModels asks providers what they offer. It may take long.
	SyncModels(ctx context.Context)
	// ToolChoices lists the native tools and whether an agent may use them.
	ToolChoices(agent string) []tools.Choice
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

	mu        sync.Mutex // guards what follows
	lifecycle lifecycle
	views     map[string]*view
	deletions map[string]chan struct{} // by chat; closed when chat/deleted is on its way
	sent      protocol.ChatConfig      // what config/updated told the client last
}

// handler is one method. It runs in arrival order; a jsonrpc.Later result continues
// concurrently.
type handler func(ctx context.Context, req *jsonrpc.Request) (any, error)

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
		conn:  jsonrpc.NewConn(r, w, jsonrpc.Options{Trace: o.Trace, Log: o.Log}),
		exit:  make(chan struct{}),
		views: map[string]*view{}, deletions: map[string]chan struct{}{},
	}
	s.methods = s.table()
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
	s.mu.Lock()
	views := maps.Clone(s.views)
	s.mu.Unlock()
	for _, v := range views {
		<-v.ended
	}
	return nil
}

// table lists the methods.
func (s *Server) table() map[string]handler {
	return map[string]handler{
		"initialize":           s.initialize,
		"initialized":          s.initialized,
		"shutdown":             s.shutdown,
		"exit":                 s.exitNow,
		"chat/prompt":          s.chatPrompt,
		"chat/promptStop":      s.chatPromptStop,
		"chat/toolCallApprove": s.chatToolCallApprove,
		"chat/toolCallReject":  s.chatToolCallReject,
		"chat/delete":          s.chatDelete,
	}
}

// handle dispatches one message.
func (s *Server) handle(ctx context.Context, req *jsonrpc.Request) (any, error) {
	h, ok := s.methods[req.Method]
	if !ok {
		if !req.IsCall {
			s.log.Debug("unknown notification", "method", req.Method)
			return nil, nil
		}
		return nil, jsonrpc.MethodNotFound(req.Method)
	}
	if err := s.admits(req.Method); err != nil {
		return nil, err
	}
	return h(ctx, req)
}

// admits says whether a method may be called now.
func (s *Server) admits(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case method == "initialize" || method == "exit" || method == "shutdown":
		return nil
	case method == "initialized" && s.lifecycle >= initializing:
		return nil
	case s.lifecycle < initialized:
		return jsonrpc.Errorf(jsonrpc.CodeNotInitialized, "%s before initialized", method)
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

// decode reads params; the error is fit to be returned by a handler.
func decode(req *jsonrpc.Request, v any) error {
	if err := protocol.Decode(req.Params, v); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", req.Method, err)
	}
	return nil
}

// notify sends a notification and waits while the client does not read.
func (s *Server) notify(ctx context.Context, method string, params any) {
	if err := s.conn.Notify(ctx, method, params); err != nil && ctx.Err() == nil {
		s.log.Debug("notification not sent", "method", method, "err", err)
	}
}

// post sends a notification without waiting; handlers that run in order use it.
func (s *Server) post(method string, params any) {
	if err := s.conn.Post(method, params); err != nil {
		s.log.Debug("notification not sent", "method", method, "err", err)
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

func (s *Server) shutdown(context.Context, *jsonrpc.Request) (any, error) {
	s.advance(shutDown)
	return jsonrpc.Later(func(ctx context.Context) (any, error) {
		closed := make(chan struct{})
		go func() {
			s.host.Engine().Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(shutdownTime):
			return nil, fmt.Errorf("some work did not end within %s", shutdownTime)
		}
		return nil, nil
	}), nil
}

func (s *Server) exitNow(context.Context, *jsonrpc.Request) (any, error) {
	s.leave()
	return nil, nil
}
