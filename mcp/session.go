package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// session is a JSON-RPC connection to a server over a transport. It numbers requests, matches answers
// and progress reports with them, and cancels abandoned requests at the server. It passes the
// server's requests to handlers (incoming.go). It does not interpret the content of messages.
type session struct {
	transport      transport
	self           self
	handlers       map[string]Handler
	calls          func() []ActiveCall // passed to Handlers
	onNotification func(method string, params json.RawMessage)
	log            *slog.Logger
	listening      <-chan struct{} // see transport.listen; set by the handshake

	ctx    context.Context // ends with the session
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	pending  jsonrpc.Pending
	incoming jsonrpc.Running // requests of the server

	mu                sync.Mutex // guards the fields below
	closed            bool
	version           string                  // of the protocol; empty until negotiated
	progressReceivers map[string]func(string) // receivers of progress, by token
	unsentAnswers     int                     // answers to the server, including refusals, that have not been sent
}

// self is the description of eca that servers get.
type self struct {
	server       string // the server's name in the configuration
	info         wire.Implementation
	capabilities map[string]any
}

// request is a request to a server.
type request struct {
	method string
	params any // encoded as an object, or nil
	// progress receives the server's progress reports until the context of the request ends, even
	// after the answer, because the reports of a task arrive later. It must not block.
	progress func(text string)
	header   map[string]string // over HTTP
	version  string            // of the protocol, before one is negotiated
	onSent   func()            // called when the request has been sent; may be nil
}

func newSession(ctx context.Context, t transport) *session {
	s := &session{transport: t, progressReceivers: map[string]func(string){}}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// start connects to the server. It fails if ctx ends before the connection is made.
func (s *session) start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	defer stop()
	return s.causeOr(s.transport.start(s.ctx, s.handleMessage, s.cancel))
}

// close ends the session and returns when all its goroutines have ended. why is the reason, unless the
// server has already ended the session for a reason of its own.
func (s *session) close(why string) {
	s.cancel(cmp.Or(s.transport.endReason(), fmt.Errorf("eca stopped the server: %s", why)))
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.transport.close()
	s.work.Wait()
}

// background runs work that ends with the session. It returns false if close was called before.
func (s *session) background(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(work)
	}
	return !s.closed
}

// causeOr returns the reason why the session ended, or err if the session has not ended. It returns nil
// if err is nil.
func (s *session) causeOr(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// modern reports whether the protocol version has no handshake.
func (s *session) modern() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.IsModernProtocol(s.version)
}

// setVersion sets the version of the protocol.
func (s *session) setVersion(version string) {
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
	s.transport.setVersion(version)
}

// call sends a request and decodes the answer into result; a nil result ignores the answer.
func (s *session) call(ctx context.Context, method string, params, result any) error {
	raw, err := s.ask(ctx, request{method: method, params: params})
	if err != nil || result == nil {
		return err
	}
	if err := decode(raw, result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// ask sends a request and returns the result. An error from the server is an answerError. The end
// of ctx cancels the request at the server.
func (s *session) ask(ctx context.Context, r request) (json.RawMessage, error) {
	var inputs map[string]json.RawMessage
	for round := 0; ; round++ {
		result, err := s.exchange(ctx, r, inputs)
		if err != nil {
			return nil, err
		}
		wanted, more := parseInputRequest(result)
		if !more {
			return result, nil
		}
		if round == maxRounds {
			return nil, fmt.Errorf("the server requested input more than %d times", maxRounds)
		}
		if inputs, err = s.answerInputRequests(ctx, wanted); err != nil {
			return nil, err
		}
	}
}

// exchange sends one request and waits for its answer.
func (s *session) exchange(ctx context.Context, r request, inputs map[string]json.RawMessage) (json.RawMessage, error) {
	id, answer := s.pending.Add()
	defer s.pending.Forget(id)
	if r.progress != nil {
		s.registerProgress(ctx, id, r.progress)
	}
	params, err := s.encode(r, id, inputs)
	if err != nil {
		return nil, err
	}
	out := envelope{jsonrpc.Message{ID: json.RawMessage(id), Method: r.method, Params: params}, r.header}
	sending, giveUp := context.WithCancel(s.ctx)
	defer context.AfterFunc(ctx, giveUp)()
	sent := make(chan error, 1)
	if !s.background(func() {
		defer giveUp()
		sent <- s.transport.send(sending, out)
	}) {
		return nil, context.Cause(s.ctx)
	}
	for {
		select {
		case a := <-answer:
			return a.Result, answerErr(a)
		case err := <-sent:
			sent = nil
			switch {
			case err == nil:
				if r.onSent != nil {
					r.onSent()
				}
			case ctx.Err() != nil:
				giveUp()
				s.notifyCancelled(ctx, r.method, id)
				return nil, ctx.Err()
			default:
				return answerOr(answer, s.causeOr(err))
			}
		case <-ctx.Done():
			giveUp() // stop sending
			s.notifyCancelled(ctx, r.method, id)
			return nil, ctx.Err()
		case <-s.ctx.Done():
			return answerOr(answer, context.Cause(s.ctx))
		}
	}
}

// answerOr returns the answer if it arrived just before the session ended, or else err.
func answerOr(answer <-chan jsonrpc.Message, err error) (json.RawMessage, error) {
	select {
	case a := <-answer:
		return a.Result, answerErr(a)
	default:
		return nil, err
	}
}

func answerErr(e jsonrpc.Message) error {
	if e.Error != nil {
		return &answerError{e.Error}
	}
	return nil
}

// registerProgress delivers progress until ctx ends.
func (s *session) registerProgress(ctx context.Context, token string, progress func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progressReceivers[token] = func(text string) {
		if ctx.Err() == nil {
			progress(text)
		}
	}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progressReceivers, token)
	})
}

// encode returns the parameters of a request, with the additions that the protocol requires.
func (s *session) encode(r request, id string, inputs map[string]json.RawMessage) (json.RawMessage, error) {
	params, meta := map[string]json.RawMessage{}, map[string]any{}
	if r.params != nil {
		raw, err := json.Marshal(r.params)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, fmt.Errorf("the parameters of %s are not an object: %w", r.method, err)
		}
		_ = json.Unmarshal(params["_meta"], &meta) // it may be missing
	}
	maps.Copy(params, inputs)
	if r.progress != nil {
		meta["progressToken"] = json.Number(id)
	}
	s.mu.Lock()
	version := cmp.Or(r.version, s.version)
	s.mu.Unlock()
	if wire.IsModernProtocol(version) {
		meta[wire.MetaKeyProtocolVersion] = version
		capabilities := maps.Clone(s.self.capabilities)
		capabilities["extensions"] = map[string]any{tasksExtension: struct{}{}}
		meta[wire.MetaKeyClientInfo], meta[wire.MetaKeyClientCapabilities] = s.self.info, capabilities
	}
	if len(meta) > 0 {
		raw, err := json.Marshal(meta)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		params["_meta"] = raw
	}
	if r.params == nil && len(params) == 0 {
		return nil, nil
	}
	return json.Marshal(params)
}

// notify sends the server a notification.
func (s *session) notify(ctx context.Context, method string, params any) error {
	out := envelope{Message: jsonrpc.Message{Method: method}}
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		out.Params = raw
	}
	return s.causeOr(s.transport.send(ctx, out))
}

// notifyCancelled notifies the server that a request was abandoned. It runs in the background, so
// that the caller does not wait.
func (s *session) notifyCancelled(ctx context.Context, method, id string) {
	if method == string(wire.MethodInitialize) || method == string(wire.MethodServerDiscover) {
		return // initialize must not be cancelled, and older servers do not know server/discover
	}
	reason := context.Cause(ctx).Error()
	s.background(func() {
		ctx, cancel := context.WithTimeout(s.ctx, pingTimeout)
		defer cancel()
		err := s.notify(ctx, string(wire.MethodNotificationCancelled), map[string]any{"requestId": json.Number(id), "reason": reason})
		if err != nil {
			s.log.Debug("cannot notify an MCP server of a cancelled request", "err", err)
		}
	})
}

// handleMessage handles a message of the server. The transport's reader calls it.
func (s *session) handleMessage(e envelope) {
	switch {
	case e.isRequest():
		s.answerInBackground(e)
	case e.Method == string(wire.MethodNotificationProgress):
		s.handleProgress(e.Params)
	case e.Method == string(wire.MethodNotificationCancelled):
		s.handleCancelled(e.Params)
	case e.isNotification():
		s.onNotification(e.Method, e.Params)
	default:
		s.pending.Deliver(e.key(), e.Message) // ignored if already answered
	}
}

// handleProgress passes on a progress report.
func (s *session) handleProgress(params json.RawMessage) {
	var p struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress json.Number     `json:"progress"`
		Total    json.Number     `json:"total"`
		Message  string          `json:"message"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	progress := s.progressReceivers[idKey(p.Token)]
	s.mu.Unlock()
	if progress == nil {
		return
	}
	switch {
	case p.Message == "" && p.Total != "":
		p.Message = p.Progress.String() + " of " + p.Total.String()
	case p.Message == "":
		p.Message = p.Progress.String()
	}
	progress(p.Message)
}

// pingTimeout limits how long a ping, and the notification of a cancellation, may take.
const pingTimeout = 5 * time.Second
