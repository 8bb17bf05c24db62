package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
)

// firstID is added to the ids of requests we send: a client may look an id up in
// its own table of pending requests before it looks at the method
// (eca-protocol 1.5).
const firstID = 1_000_000_000

// drainTimeout bounds how long Close waits for a peer to read what is queued.
const drainTimeout = 2 * time.Second

// Request is an incoming call or notification.
type Request struct {
	Method string
	Params json.RawMessage // nil when absent or null
	IsCall bool

	id       jsonrpc2.ID
	answered chan struct{}
}

// Answered is closed once the response is queued for writing, so that a handler
// can order notifications after its own answer. It never closes for
// notifications.
func (r *Request) Answered() <-chan struct{} { return r.answered }

// Handler answers a request. It runs on the reading goroutine, in arrival order,
// and must not wait for anything but a short look at a disk; to wait for a model, a
// tool or the peer, it returns a Later as its result.
type Handler func(ctx context.Context, req *Request) (any, error)

// Later is the part of a handler that may wait. It runs concurrently with the
// requests that follow; ctx ends when the peer cancels the request or goes away.
type Later func(ctx context.Context) (any, error)

// Options configure a Conn; the zero value is usable.
type Options struct {
	MaxFrame int                              // bytes of one incoming body; 0 means DefaultMaxFrame
	Trace    func(incoming bool, body []byte) // sees every message; must not keep body
	Log      *slog.Logger                     // default: slog.Default
}

// Conn is one peer. All methods are safe for concurrent use.
type Conn struct {
	stream *stream
	conn   jsonrpc2.Conn
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}

	running running
}

// running are the requests whose handlers run, for $/cancelRequest.
type running struct {
	mu   sync.Mutex // guards byID
	byID map[jsonrpc2.ID]context.CancelFunc
}

// add registers a request; the returned function removes it.
func (r *running) add(id jsonrpc2.ID, cancel context.CancelFunc) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[jsonrpc2.ID]context.CancelFunc{}
	}
	r.byID[id] = cancel
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.byID, id)
	}
}

func (r *running) cancel(id jsonrpc2.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.byID[id]; cancel != nil {
		cancel()
	}
}

// NewConn returns a connection that reads from r and writes to w. r is closed by
// Close if it is an io.Closer.
func NewConn(r io.Reader, w io.Writer, opts Options) *Conn {
	if opts.MaxFrame == 0 {
		opts.MaxFrame = DefaultMaxFrame
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	s := &stream{
		in:      newFrameReader(r, opts.MaxFrame),
		src:     r,
		trace:   opts.Trace,
		pending: map[jsonrpc2.ID]*answer{},
		ended:   make(chan struct{}),
	}
	s.out = newWriter(w, s.markEOF)
	return &Conn{
		stream: s,
		conn:   jsonrpc2.NewConn(s, jsonrpc2.WithCodec(codec{})),
		log:    opts.Log,
		done:   make(chan struct{}),
	}
}

// Start begins reading and dispatching to h. ctx is the parent of every
// request's context.
func (c *Conn) Start(ctx context.Context, h Handler) {
	ctx, c.cancel = context.WithCancel(ctx)
	c.conn.Go(ctx, c.dispatcher(ctx, h))
	go func() {
		defer close(c.done)
		// The module does not cancel running handlers at end of input; we do.
		select {
		case <-c.stream.ended:
		case <-c.conn.Done():
			c.stream.markEOF()
		}
		c.cancel()
		<-c.conn.Done()
	}()
}

// dispatcher adapts h: ownership, cancellation, panics, Later, error mapping.
//
// Handlers get contexts derived from root. The module's own request context is
// recycled when the handler returns, and a context derived from it may touch it
// later, which panics.
func (c *Conn) dispatcher(root context.Context, h Handler) jsonrpc2.Handler {
	return func(libCtx context.Context, lib *jsonrpc2.Request) (result any, err error) {
		if lib.Method() == "$/cancelRequest" {
			if id, ok := cancelledID(lib.Params()); ok {
				c.running.cancel(id)
			}
			return nil, nil
		}
		ctx, cancel := context.WithCancel(root)
		defer cancel()
		req := &Request{
			Method: string(append([]byte(nil), lib.Method()...)),
			IsCall: lib.IsCall(),
			id:     lib.ID(),
		}
		if p := bytes.TrimSpace(lib.Params()); len(p) > 0 && !bytes.Equal(p, []byte("null")) {
			req.Params = append(json.RawMessage(nil), p...)
		}
		if req.IsCall {
			req.answered = c.stream.expectAnswer(req.id)
			defer c.running.add(req.id, cancel)()
		}
		defer func() {
			if p := recover(); p != nil {
				c.log.Error("handler panicked", "method", req.Method, "panic", p, "stack", string(debug.Stack()))
				result, err = nil, wireError(Errorf(CodeInternal, "internal error in %s: %v", req.Method, p))
			}
			if !req.IsCall && err != nil {
				// An error of a notification would end the connection.
				c.log.Warn("notification failed", "method", req.Method, "err", err)
				result, err = nil, nil
			}
		}()
		result, err = h(ctx, req)
		if later, ok := result.(Later); ok && err == nil {
			jsonrpc2.Async(libCtx)
			result, err = later(ctx)
		}
		if req.IsCall {
			c.stream.keepMembers(req.id, err)
		}
		return result, wireError(err)
	}
}

// Notify sends a notification. It waits while the peer does not read, until ctx
// ends.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	raw, err := marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	return c.stream.write(ctx, jsonrpc2.AppendNotification(nil, method, raw), false)
}

// Post sends a notification without ever waiting. It is for the few small messages
// that handlers send while requests wait behind them.
func (c *Conn) Post(method string, params any) error {
	raw, err := marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	return c.stream.write(context.Background(), jsonrpc2.AppendNotification(nil, method, raw), true)
}

// Call sends a request and waits for its answer, which it decodes into result.
// When ctx ends first, the peer is told with $/cancelRequest.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	id, err := c.conn.Call(ctx, method, params, &raw)
	if err != nil && ctx.Err() != nil {
		if n, ok := id.Number(); ok {
			bg, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = c.Notify(bg, "$/cancelRequest", map[string]int64{"id": n + firstID})
		}
		return ctx.Err()
	}
	if err != nil || result == nil || len(raw) == 0 {
		return localError(err)
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("the answer to %s: %w", method, Explain(raw, err))
	}
	return nil
}

// Done is closed when the peer has gone and every handler has returned.
func (c *Conn) Done() <-chan struct{} { return c.done }

// EOF is closed as soon as the peer's input has ended, or it can not be written to.
func (c *Conn) EOF() <-chan struct{} { return c.stream.ended }

// Close ends the connection: handlers are cancelled, what is queued is written as
// long as the peer reads it within a short time.
func (c *Conn) Close() {
	if c.cancel != nil {
		c.cancel()
	}
	c.stream.out.close()
	select {
	case <-c.stream.out.ended:
	case <-time.After(drainTimeout):
	}
	_ = c.stream.Close()
}

func cancelledID(params []byte) (jsonrpc2.ID, bool) {
	var p struct{ ID any }
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.UseNumber()
	if dec.Decode(&p) != nil {
		return jsonrpc2.ID{}, false
	}
	switch id := p.ID.(type) {
	case string:
		return jsonrpc2.NewStringID(id), true
	case json.Number:
		n, err := id.Int64()
		return jsonrpc2.NewNumberID(n), err == nil
	}
	return jsonrpc2.ID{}, false
}

// codec encodes payloads with encoding/json: the module's default keeps zero
// values that `omitempty` fields must not show.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) { return marshal(v) }

func (codec) Unmarshal(data []byte, v any) error {
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = append(json.RawMessage(nil), data...)
		return nil
	}
	return json.Unmarshal(data, v)
}

// marshal encodes v without HTML escaping, so that emoji and `<` stay as they are.
func marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return []byte("null"), nil
	case json.RawMessage:
		return v, nil
	case jsonrpc2.RawMessage:
		return v, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
