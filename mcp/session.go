package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// session is the conversation with a server over a transport. It numbers requests and
// finds whom answers and progress are for; it tells the server what nobody waits for any
// more, and has the server's own requests answered (incoming.go). What is asked and
// answered is not its business.
type session struct {
	transport transport
	self      self
	handlers  map[string]Handler
	calls     func() []ActiveCall // what Handlers are told
	notified  func(method string, params json.RawMessage)
	log       *slog.Logger
	listening <-chan struct{} // see transport.listen; set by the handshake

	ctx    context.Context // ends with the conversation
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	closed   bool
	version  string // of the protocol; empty until it is agreed on
	last     int64  // id of a request
	waiting  map[string]*waiter
	reports  map[string]func(string)       // whom progress is for, by token
	incoming map[string]context.CancelFunc // requests of the server
	unheard  int                           // of those, also refused ones, whose answers are not sent yet
}

// self is what a server is told about us.
type self struct {
	server       string // its name in the configuration
	info         wire.Implementation
	capabilities map[string]any
}

// waiter is a request that is not answered yet.
type waiter struct{ answer chan envelope }

// request is what a server is asked.
type request struct {
	method string
	params any // encoded as an object, or nil
	// progress hears of reports, also after the answer, until the context of the request ends:
	// those of a task come later. It must not wait.
	progress func(text string)
	header   map[string]string // over HTTP
	version  string            // of the protocol, before one is agreed on
}

func newSession(ctx context.Context, t transport) *session {
	s := &session{transport: t, waiting: map[string]*waiter{}, reports: map[string]func(string){}, incoming: map[string]context.CancelFunc{}}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// start opens the way to the server. It ends with ctx if that ends before it has opened.
func (s *session) start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	defer stop()
	return s.causeOr(s.transport.start(s.ctx, s.hear, s.cancel))
}

// close ends the conversation, and returns when nothing is left of it.
func (s *session) close() {
	s.cancel(errEnded)
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.transport.close()
	s.work.Wait()
}

// background runs work that ends with the conversation; false: that is over.
func (s *session) background(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(work)
	}
	return !s.closed
}

// causeOr prefers the reason why the conversation ended to what somebody saw of that.
func (s *session) causeOr(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// modern says whether the version of the protocol is one without a handshake.
func (s *session) modern() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.IsModernProtocol(s.version)
}

// agree takes over the version of the protocol.
func (s *session) agree(version string) {
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
	s.transport.agreed(version)
}

// call asks for something and decodes the answer into result, if that is not nil.
func (s *session) call(ctx context.Context, method string, params, result any) error {
	raw, err := s.ask(ctx, request{method: method, params: params})
	if err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("the answer to %s can not be read: %w", method, err)
	}
	return nil
}

// ask asks for something and returns the result. An error of the server is an answerError.
// The end of ctx cancels the request at the server.
func (s *session) ask(ctx context.Context, r request) (json.RawMessage, error) {
	var inputs map[string]json.RawMessage
	for round := 0; ; round++ {
		result, err := s.exchange(ctx, r, inputs)
		if err != nil {
			return nil, err
		}
		wanted, more := wantsInput(result)
		if !more {
			return result, nil
		}
		if round == maxRounds {
			return nil, fmt.Errorf("the server asked for more than %d times", maxRounds)
		}
		if inputs, err = s.inputs(ctx, wanted); err != nil {
			return nil, err
		}
	}
}

// exchange is one request with its answer.
func (s *session) exchange(ctx context.Context, r request, inputs map[string]json.RawMessage) (json.RawMessage, error) {
	w := &waiter{answer: make(chan envelope, 1)}
	id, forget := s.expect(w)
	defer forget()
	if r.progress != nil {
		s.report(ctx, id, r.progress)
	}
	params, err := s.encode(r, id, inputs)
	if err != nil {
		return nil, err
	}
	out := envelope{JSONRPC: wire.JSONRPC_VERSION, ID: json.RawMessage(id), Method: r.method, Params: params, header: r.header}
	sending, giveUp := context.WithCancel(s.ctx)
	defer context.AfterFunc(ctx, giveUp)()
	sent := make(chan error, 1)
	if !s.background(func() {
		defer giveUp()
		sent <- s.transport.send(sending, out)
	}) {
		return nil, s.causeOr(errEnded)
	}
	for {
		select {
		case a := <-w.answer:
			return a.Result, answerOf(a)
		case err := <-sent:
			sent = nil
			switch {
			case err == nil: // it is on its way
			case ctx.Err() != nil:
				giveUp()
				s.withdraw(ctx, r.method, id)
				return nil, ctx.Err()
			default:
				return lastly(w, s.causeOr(err))
			}
		case <-ctx.Done():
			giveUp() // also where its end is too slow to do it
			s.withdraw(ctx, r.method, id)
			return nil, ctx.Err()
		case <-s.ctx.Done():
			return lastly(w, context.Cause(s.ctx))
		}
	}
}

// lastly prefers an answer that came just before the end.
func lastly(w *waiter, err error) (json.RawMessage, error) {
	select {
	case a := <-w.answer:
		return a.Result, answerOf(a)
	default:
		return nil, err
	}
}

func answerOf(e envelope) error {
	if e.Error != nil {
		return &answerError{*e.Error}
	}
	return nil
}

// expect has an answer delivered, under the id that it returns.
func (s *session) expect(w *waiter) (id string, forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id = strconv.FormatInt(s.last, 10)
	s.waiting[id] = w
	return id, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, id)
	}
}

// report has progress delivered until ctx ends.
func (s *session) report(ctx context.Context, token string, progress func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports[token] = func(text string) {
		if ctx.Err() == nil {
			progress(text)
		}
	}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.reports, token)
	})
}

// encode returns the parameters of a request, with what the protocol wants in them.
func (s *session) encode(r request, id string, inputs map[string]json.RawMessage) (json.RawMessage, error) {
	params, meta := map[string]json.RawMessage{}, map[string]any{}
	if r.params != nil {
		raw, err := json.Marshal(r.params)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, fmt.Errorf("the parameters of %s are no object: %w", r.method, err)
		}
		_ = json.Unmarshal(params["_meta"], &meta) // there may be none
	}
	for name, value := range inputs {
		params[name] = value
	}
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

// notify tells the server something.
func (s *session) notify(ctx context.Context, method string, params any) error {
	out := envelope{JSONRPC: wire.JSONRPC_VERSION, Method: method}
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		out.Params = raw
	}
	return s.causeOr(s.transport.send(ctx, out))
}

// withdraw tells the server that nobody waits for an answer any more, in the background:
// who waited is gone.
func (s *session) withdraw(ctx context.Context, method, id string) {
	if method == string(wire.MethodInitialize) || method == string(wire.MethodServerDiscover) {
		return // it must not be cancelled, and an older server knows nothing of it yet
	}
	reason := context.Cause(ctx).Error()
	s.background(func() {
		ctx, cancel := context.WithTimeout(s.ctx, pingTime)
		defer cancel()
		err := s.notify(ctx, string(wire.MethodNotificationCancelled), map[string]any{"requestId": json.Number(id), "reason": reason})
		if err != nil {
			s.log.Debug("an MCP server could not be told of a cancelled request", "err", err)
		}
	})
}

// hear takes what the server says. It is called where the transport reads.
func (s *session) hear(e envelope) {
	switch {
	case e.isRequest():
		s.asked(e)
	case e.Method == string(wire.MethodNotificationProgress):
		s.progressed(e.Params)
	case e.Method == string(wire.MethodNotificationCancelled):
		s.cancelled(e.Params)
	case e.isNotification():
		s.notified(e.Method, e.Params)
	default:
		s.mu.Lock()
		w := s.waiting[e.key()]
		delete(s.waiting, e.key()) // a second answer is nobody's
		s.mu.Unlock()
		if w != nil {
			w.answer <- e
		}
	}
}

// progressed passes on a report of progress.
func (s *session) progressed(params json.RawMessage) {
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
	progress := s.reports[idKey(p.Token)]
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

// errEnded is why a conversation that eca closed is over.
var errEnded = errors.New("eca stopped the server")

// pingTime is how long a server may take to answer a ping.
const pingTime = 5 * time.Second
