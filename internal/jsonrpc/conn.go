package jsonrpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// firstID is the id of the first request to an editor. It is high because a client may look up an
// id in its own table of pending requests before it checks the method (eca-protocol.md 1.5).
const firstID = 1_000_000_001

// drainTimeout bounds how long Close waits for a peer to read the queued messages.
const drainTimeout = 2 * time.Second

// Request is an incoming call or notification.
type Request struct {
	Method string
	Params json.RawMessage // nil when absent or null
	IsCall bool

	answered chan struct{}
	finish   func(result any, err error)
}

// Answered is closed once the response is queued for writing, so that a handler
// can order notifications after its own answer. It never closes for
// notifications.
func (r *Request) Answered() <-chan struct{} { return r.answered }

// Answer answers a request whose handler returned Deferred. It must be called once. It returns when
// the answer is queued.
func (r *Request) Answer(result any, err error) { r.finish(result, err) }

// Handler answers a request. It runs on the reading goroutine, in arrival order, and must not wait,
// except for a short disk access. To wait for a model, a tool or the peer, it returns a Later as
// its result, or Deferred.
type Handler func(ctx context.Context, req *Request) (any, error)

// Later is the part of a handler that may wait. It runs concurrently with the handlers of the following
// requests. ctx ends when the peer cancels the request or disconnects.
type Later func(ctx context.Context) (any, error)

type deferral int

// Deferred is the result of a handler that arranges for Request.Answer to be called later.
const Deferred deferral = 0

// Options configure a Conn; the zero value is for editors.
type Options struct {
	MaxFrame int                              // bytes of one incoming body; 0 means DefaultMaxFrame
	Trace    func(incoming bool, body []byte) // sees every message; must not keep body
	Log      *slog.Logger                     // default: slog.Default

	MaxQueued int // bytes that wait for a peer that does not read; 0 means DefaultMaxQueued

	// Codec frames messages in the stream; nil is ContentLength.
	Codec func(r io.Reader, limit int) Codec
	// Decode reads a message; nil accepts the ids of editors, and sends them no details.
	Decode func(body []byte) (Message, *Error)
	// Cancel is the method of the notification that cancels a call; default: $/cancelRequest. CancelID
	// is its member with the id of the call; default: id.
	Cancel, CancelID string
	// FirstID is the id of the first call to the peer; 0 means an id outside the range of
	// editors' own.
	FirstID int64
	// NoBatches passes arrays to Decode.
	NoBatches bool
	// Finish lets running handlers continue, and answer, after the input has ended.
	Finish bool
	// Failed gets the reason why the peer cannot be written to.
	Failed func(error)
}

// Conn is the connection to one peer. All methods are safe for concurrent use.
type Conn struct {
	opts  Options
	codec Codec
	src   io.Reader
	out   *writer

	cancel  context.CancelFunc
	done    chan struct{}
	ended   chan struct{} // see EOF
	failed  error         // see Err; readable once ended is closed
	endOnce sync.Once     // closes ended
	work    sync.WaitGroup

	pending Pending
	running Running
}

// NewConn returns a connection that reads from r and writes to w. Close closes r if it is an
// io.Closer.
func NewConn(r io.Reader, w io.Writer, opts Options) *Conn {
	opts.MaxFrame, opts.MaxQueued = cmp.Or(opts.MaxFrame, DefaultMaxFrame), cmp.Or(opts.MaxQueued, DefaultMaxQueued)
	opts.Cancel, opts.CancelID = cmp.Or(opts.Cancel, "$/cancelRequest"), cmp.Or(opts.CancelID, "id")
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Codec == nil {
		opts.Codec = ContentLength
	}
	if opts.Decode == nil {
		opts.Decode = DecodeEditor
	}
	c := &Conn{
		opts: opts, codec: opts.Codec(r, opts.MaxFrame), src: r, cancel: func() {},
		done: make(chan struct{}), ended: make(chan struct{}), pending: Pending{First: cmp.Or(opts.FirstID, firstID)},
	}
	if in, ok := c.codec.(*frameReader); ok {
		in.onStray = func(line string) {
			opts.Log.Error("the input is not JSON-RPC framed with Content-Length headers, as editors send it; it is skipped", "begins", shorten.Bytes(line, 80))
		}
	}
	c.out = newWriter(w, opts.MaxQueued, c.codec.Frame, func(err error) {
		c.hangUp(nil)
		if opts.Failed != nil {
			opts.Failed(err)
		}
	})
	return c
}

// DecodeEditor is Decode for editors, whose ids are whole numbers or strings. An empty name counts
// as an unknown method.
func DecodeEditor(body []byte) (Message, *Error) {
	m, bad := Decode(body)
	if IsNull(m.ID) {
		m.ID = nil
	}
	_, err := strconv.ParseInt(string(m.ID), 10, 64)
	switch validID := m.ID == nil || m.ID[0] == '"' || err == nil; {
	case bad == nil && validID:
		return m, nil
	case m.JSONRPC == "2.0" && validID && hasEmptyMethod(body):
		return m, Errorf(CodeMethodNotFound, "Method not found")
	}
	m.ID = nil
	return m, Errorf(CodeInvalidRequest, "not a JSON-RPC 2.0 message")
}

// wantsAnswer reports whether a message has to be answered: calls have to, and invalid messages
// except notifications whose method is empty.
func wantsAnswer(m Message, bad *Error) bool {
	if bad != nil {
		return m.ID != nil || bad.Code != CodeMethodNotFound
	}
	return m.IsCall()
}

func hasEmptyMethod(body []byte) bool {
	var m struct{ Method *string }
	return json.Unmarshal(body, &m) == nil && m.Method != nil && *m.Method == ""
}

// hangUp marks the end of the peer's input, which is incomplete if failed is not nil.
func (c *Conn) hangUp(failed error) {
	c.endOnce.Do(func() {
		c.failed = failed
		close(c.ended)
	})
	c.pending.Close()
}

// Start begins to read and to dispatch to h. ctx is the parent of every request's context.
func (c *Conn) Start(ctx context.Context, h Handler) {
	ctx, c.cancel = context.WithCancel(ctx)
	readingDone := make(chan struct{})
	go c.read(ctx, h, readingDone)
	go func() {
		defer close(c.done)
		<-c.ended
		if !c.opts.Finish {
			c.cancel()
		}
		<-readingDone
		c.work.Wait()
	}()
}

// read dispatches messages until the end of the input, and then closes readingDone. It answers malformed
// messages itself. Work that may wait runs on this goroutine, and another one continues to read: so
// the work begins at once, without waiting until the scheduler notices that this goroutine is
// blocked in a read.
func (c *Conn) read(ctx context.Context, h Handler, readingDone chan<- struct{}) {
	var failed error
	defer func() {
		if readingDone != nil {
			c.hangUp(failed)
			close(readingDone)
		}
	}()
	for ctx.Err() == nil {
		body, err := c.codec.Next()
		var bad *Error
		if errors.As(err, &bad) {
			c.opts.Log.Error("a message cannot be read", "err", bad)
			err = c.reply(Respond(nil, nil, bad))
		} else if err == nil {
			if c.opts.Trace != nil {
				c.opts.Trace(true, body)
			}
			if list, batch := Split(body); batch && !c.opts.NoBatches {
				c.handleBatch(ctx, h, list)
			} else {
				m, bad := c.opts.Decode(body)
				if later := c.dispatch(ctx, h, m, bad, func(m Message) { _ = c.reply(m) }); later != nil {
					c.work.Add(1)
					defer c.work.Done()
					go c.read(ctx, h, readingDone)
					readingDone = nil
					later()
					return
				}
			}
		}
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				failed = fmt.Errorf("the input is incomplete: %w", err)
			}
			return
		}
	}
}

// handleBatch handles the members of a batch, whose responses are sent together.
func (c *Conn) handleBatch(ctx context.Context, h Handler, list []json.RawMessage) {
	if len(list) == 0 {
		_ = c.reply(Respond(nil, nil, Errorf(CodeInvalidRequest, "an empty batch")))
		return
	}
	var mu sync.Mutex // guards answers
	var answers [][]byte
	var members sync.WaitGroup
	for _, body := range list {
		m, bad := c.opts.Decode(body)
		if m.IsAnswer() || !wantsAnswer(m, bad) {
			c.runInBackground(c.dispatch(ctx, h, m, bad, nil))
			continue
		}
		members.Add(1)
		c.runInBackground(c.dispatch(ctx, h, m, bad, func(m Message) {
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, m.Encode())
			members.Done()
		}))
	}
	c.work.Go(func() {
		members.Wait()
		if len(answers) > 0 {
			_ = c.write(context.Background(), fmt.Appendf(nil, "[%s]", bytes.Join(answers, []byte(","))), true)
		}
	})
}

// runInBackground runs what dispatch returned, if it is not nil.
func (c *Conn) runInBackground(later func()) {
	if later != nil {
		c.work.Go(later)
	}
}

// dispatch handles a message: it makes a call cancellable, runs its handler, and replies with the
// result, the error or the panic of the handler. It returns the part that may wait, if there is
// one.
func (c *Conn) dispatch(ctx context.Context, h Handler, m Message, bad *Error, reply func(Message)) (rest func()) {
	switch {
	case m.IsAnswer():
		c.pending.Deliver(string(m.ID), m) // responses are not answered
		return nil
	case bad != nil:
		if wantsAnswer(m, bad) {
			reply(Respond(m.ID, nil, bad))
		}
		return nil
	}
	req := &Request{Method: m.Method, Params: m.Params, IsCall: m.IsCall(), answered: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	remove := func() {}
	if req.IsCall {
		remove = c.running.Add(string(m.ID), cancel)
	}
	req.finish = func(result any, err error) {
		remove() // the peer may use the id again as soon as it reads the answer
		cancel()
		switch {
		case req.IsCall:
			reply(Respond(m.ID, result, err))
			close(req.answered)
		case err != nil:
			c.opts.Log.Warn("notification failed", "method", req.Method, "err", err)
		}
	}
	if m.Method == c.opts.Cancel {
		c.running.Cancel(c.cancelledID(m.Params))
		req.finish(nil, nil)
		return nil
	}
	result, err := c.recoverPanic(req, func() (any, error) { return h(ctx, req) })
	later, waits := result.(Later)
	switch {
	case err == nil && result == Deferred:
	case err == nil && waits:
		return func() { req.finish(c.recoverPanic(req, func() (any, error) { return later(ctx) })) }
	default:
		req.finish(result, err)
	}
	return nil
}

// recoverPanic turns a panic into an error.
func (c *Conn) recoverPanic(req *Request, do func() (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.opts.Log.Error("handler panicked", "method", req.Method, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, Errorf(CodeInternal, "internal error in %s: %v", req.Method, p)
		}
	}()
	return do()
}

// cancelledID returns the id in a notification that cancels a call.
func (c *Conn) cancelledID(params []byte) string {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(params, &members)
	return string(members[c.opts.CancelID])
}

// Notify sends a notification. While the peer does not read, it waits until ctx ends.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	return c.sendNotification(ctx, method, params, false)
}

// Post sends a notification without waiting. It is for the few small messages that handlers send
// while requests wait for them.
func (c *Conn) Post(method string, params any) error {
	return c.sendNotification(context.Background(), method, params, true)
}

func (c *Conn) sendNotification(ctx context.Context, method string, params any, urgent bool) error {
	raw, err := marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	return c.write(ctx, Message{Method: method, Params: raw}.Encode(), urgent)
}

// reply queues a response, unless the peer has disconnected. The peer must get the response even if
// its request was cancelled, and reply must not delay the reading of further messages.
func (c *Conn) reply(m Message) error {
	select {
	case <-c.ended:
		if !c.opts.Finish {
			return ErrClosed
		}
	default:
	}
	return c.write(context.Background(), m.Encode(), true)
}

func (c *Conn) write(ctx context.Context, body []byte, urgent bool) error {
	if c.opts.Trace != nil {
		c.opts.Trace(false, body)
	}
	return c.out.send(ctx, body, urgent)
}

// Call sends a request, waits for its answer, and decodes it into result. If ctx ends first, the
// peer is notified.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	raw, err := marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	id, answer := c.pending.Add()
	defer c.pending.Forget(id)
	if id != "" {
		if err := c.write(ctx, Message{ID: json.RawMessage(id), Method: method, Params: raw}.Encode(), false); err != nil {
			return err
		}
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return ErrClosed
		case m.Error != nil:
			return m.Error
		case result == nil || m.Result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("the answer to %s: %w", method, Explain(m.Result, err))
		}
		return nil
	case <-ctx.Done():
		bg, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Notify(bg, c.opts.Cancel, map[string]json.RawMessage{c.opts.CancelID: json.RawMessage(id)})
		return context.Cause(ctx)
	}
}

// Done is closed when the peer has disconnected and every handler has returned.
func (c *Conn) Done() <-chan struct{} { return c.done }

// EOF is closed as soon as the peer's input has ended, or the peer cannot be written to.
func (c *Conn) EOF() <-chan struct{} { return c.ended }

// Err is the error of an input that ended in the middle of a message. It is valid once EOF is closed.
func (c *Conn) Err() error { return c.failed }

// Close ends the connection. It cancels handlers, and writes queued messages if the peer reads them
// within a short time.
func (c *Conn) Close() {
	c.cancel()
	c.out.close()
	c.hangUp(nil)
	select {
	case <-c.out.ended:
	case <-time.After(drainTimeout):
	}
	if closer, ok := c.src.(io.Closer); ok {
		_ = closer.Close()
	}
}
