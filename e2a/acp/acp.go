// Package acp is an agent of the Agent Client Protocol, version 1, over lines of JSON-RPC: Zed,
// JetBrains and Neovim start it as `eca acp` (acp-a2a.md, parts A and C).
//
// It owns the wire format (lines, messages, the client's answers), the open sessions and their
// folders, and the conversion of a turn's items to session updates. e2a/turn does the work.
//
// Guarantees: requests are handled in the order in which they arrive. A prompt is answered after
// the last of its updates, and a cancelled one with the stop reason cancelled. Bad input is
// answered with an error that names the cause, and the agent keeps running. When the client
// disconnects, its turns are stopped and Serve returns.
//
// It makes no decisions about permissions, opens no files and starts no processes.
package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/tools/editor"
)

// Setup is the environment of sessions.
type Setup struct {
	Folders     []string        // absolute; at least one, the first is the working directory
	InitOptions json.RawMessage // configuration from the client (MCP servers), a JSON object
	Editor      editor.Client   // the abilities of the client
}

// Options configure Serve.
type Options struct {
	// Open returns a service that runs the turns of a Setup. closing is called when no session needs
	// the service any more.
	Open    func(Setup) (turns *turn.Service, closing func(), err error)
	Cwd     string // the folder whose sessions are listed if the client names none
	Version string // of eca
	Now     func() time.Time
	NewID   func() string
	Log     *slog.Logger
}

// agent serves one client.
type agent struct {
	opts Options
	conn *jsonrpc.Conn
	log  *slog.Logger

	ctx  context.Context // ends when the client has disconnected
	work sync.WaitGroup  // running prompts and their questions

	queue     *queue // of the handlers of messages
	instances instances

	client client // set by initialize
	ready  bool   // initialize was handled; until then all other requests fail

	mu       sync.Mutex // guards the fields below
	sessions map[string]*session
}

// Serve answers a client until it disconnects, out cannot be written, or ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &agent{
		opts: o, log: cmp.Or(o.Log, slog.Default()), ctx: ctx,
		queue: &queue{more: make(chan struct{}, 1)}, instances: instances{start: o.Open}, sessions: map[string]*session{},
	}
	a.conn = jsonrpc.NewConn(struct{ io.Reader }{in}, out, jsonrpc.Options{ // Serve must not close the reader
		MaxFrame: maxMessage, Codec: jsonrpc.Lines, Decode: readMessage, NoBatches: true, Log: a.log,
		Cancel: "$/cancel_request", CancelID: "requestId", FirstID: 1, Finish: true, Failed: cancel,
	})
	a.conn.Start(ctx, a.receive)
	go func() {
		select {
		case <-a.conn.EOF():
		case <-ctx.Done():
		}
		a.queue.close()
	}()
	handled := make(chan struct{})
	go func() { // ends with ctx, unless it writes to a client that does not read
		defer close(handled)
		a.queue.run(ctx)
	}()
	select {
	case <-handled:
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	cancel(nil)
	a.end(handled)
	a.instances.close()
	a.conn.Close()
	if cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// maxMessage limits the size of a client's message in bytes: prompts contain images.
const maxMessage = 64 << 20

// stopTimeout is how long running work may take to report its end.
const stopTimeout = 3 * time.Second

// end waits for running work to end, but at most stopTimeout, because the client may no longer read
// its output.
func (a *agent) end(handled <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		<-handled
		a.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		a.log.Warn("the client did not read the last messages")
	}
}

// receive queues a message. Answers to the agent's requests, and cancellations of requests, bypass
// the queue.
func (a *agent) receive(ctx context.Context, req *jsonrpc.Request) (any, error) {
	a.queue.add(func() { a.handle(&call{Request: req, ctx: ctx}) })
	return jsonrpc.Deferred, nil
}

// waitForQueue waits until all messages that were read so far have been handled. An answer from the
// client overtakes queued messages that the client sent before it.
func (a *agent) waitForQueue(ctx context.Context) {
	passed := make(chan struct{})
	a.queue.add(func() { close(passed) })
	select {
	case <-passed:
	case <-ctx.Done():
	}
}

// queue runs the handlers of messages one after another, while later answers from the client can be
// read.
type queue struct {
	mu     sync.Mutex // guards the fields below
	list   []func()
	closed bool
	more   chan struct{}
}

func (q *queue) add(handler func()) {
	q.mu.Lock()
	q.list = append(q.list, handler)
	q.mu.Unlock()
	q.wake()
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// run runs the queued handlers in order, until the queue is closed or ctx ends.
func (q *queue) run(ctx context.Context) {
	for {
		q.mu.Lock()
		list, closed := q.list, q.closed
		q.list = nil
		q.mu.Unlock()
		for _, do := range list {
			if ctx.Err() != nil {
				return
			}
			do()
		}
		if closed && len(list) == 0 {
			return
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-q.more:
		case <-ctx.Done():
			return
		}
	}
}
