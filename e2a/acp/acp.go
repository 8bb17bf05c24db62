// Package acp is an agent of the Agent Client Protocol, version 1, over lines of JSON-RPC:
// what Zed, JetBrains and Neovim start as `eca acp` (acp-a2a.md, parts A and C).
//
// It owns the wire (lines, messages, the client's answers), which sessions are open in
// which folders, and what frames look like as session updates. Everything that is done is an
// envelope to e2a/gateway; permission, questions and plans come out of its frames.
//
// It guarantees: requests are taken in the order they came; a prompt is answered behind the
// last of its updates, and a cancelled one with the stop reason cancelled; bad input is
// answered with an error that names the cause, and the agent lives on; when the client
// leaves, its turns are stopped and Serve returns.
//
// It decides nothing about permission, opens no file and starts no process.
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

	"github.com/seed-dec29ce4/eca/e2a/gateway"
	"github.com/seed-dec29ce4/eca/tools/editor"
)

// Place is what sessions run in: their folders, the first of which is the working
// directory, and configuration that the client brought along as a JSON object (MCP servers).
type Place struct {
	Folders     []string // absolute; at least one
	InitOptions json.RawMessage
	Editor      editor.Client // the client, as far as it can be asked
}

// Options configure Serve.
type Options struct {
	// Open returns a gateway for a place, and what to call when no session needs it any
	// more.
	Open    func(Place) (g *gateway.Gateway, closing func(), err error)
	Cwd     string // of sessions that are listed without one
	Version string // of eca
	Now     func() time.Time
	NewID   func() string
	Log     *slog.Logger
}

// agent serves one client.
type agent struct {
	opts Options
	peer *peer
	log  *slog.Logger

	ctx  context.Context // ends when the client has left
	work sync.WaitGroup  // prompts that run, and what they ask

	queue *queue // of what is done about the messages that were read

	// client is what the client said of itself. It is set by initialize, which everything
	// else comes behind.
	client client
	ready  bool // initialize was answered

	mu       sync.Mutex // guards what follows
	places   map[string]*place
	sessions map[string]*session
	cancels  map[string]context.CancelFunc // of requests that are being answered, by their ids
}

// Serve answers a client until it leaves, its output can not be written, or ctx ends.
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
		opts: o, log: cmp.Or(o.Log, slog.Default()), ctx: ctx, peer: &peer{out: out, gone: cancel},
		places: map[string]*place{}, sessions: map[string]*session{}, cancels: map[string]context.CancelFunc{},
		queue: newQueue(),
	}
	go a.read(in) // ends with its reader at the latest
	taken := make(chan struct{})
	go func() { // ends with ctx, unless it tells a client that does not listen
		defer close(taken)
		a.queue.run(ctx)
	}()
	select {
	case <-taken:
	case <-ctx.Done():
	}
	gone := context.Cause(ctx)
	a.peer.leave()
	cancel(nil)
	a.end(taken)
	a.closePlaces()
	if gone != nil && !errors.Is(gone, context.Canceled) {
		return gone
	}
	return nil
}

// farewell is how long what runs may take to tell its end.
const farewell = 3 * time.Second

// end waits for what runs, but not for a client that reads nothing.
func (a *agent) end(taken <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		<-taken
		a.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(farewell):
		a.log.Warn("the client does not read what was told last")
	}
}

// read reads messages to the end. What must not wait behind others is done at once: answers
// to our requests, and that a request is cancelled.
func (a *agent) read(in io.Reader) {
	defer a.queue.close()
	lines := gateway.NewLines(in)
	for a.ctx.Err() == nil {
		line, err := lines.NextMessage()
		switch {
		case errors.Is(err, gateway.ErrTooLong):
			a.peer.answer(nil, nil, failure(codeRequest, "%v", err))
			continue
		case err != nil:
			return
		}
		m, bad := readMessage(line)
		switch {
		case bad != nil:
			a.peer.answer(m.ID, nil, bad)
		case m.answer():
			a.peer.answered(m)
		case m.Method == "$/cancel_request" && !m.request():
			a.cancelRequest(m.Params)
		default:
			if m.request() {
				a.register(&m)
			}
			a.queue.add(func() { a.take(m) })
		}
	}
}

// caughtUp waits until what was read so far was taken: an answer passes what its sender has
// said before it.
func (a *agent) caughtUp(ctx context.Context) {
	passed := make(chan struct{})
	a.queue.add(func() { close(passed) })
	select {
	case <-passed:
	case <-ctx.Done():
	}
}

// queue holds what is done about messages, one after the other, so that answers behind them
// are read meanwhile.
type queue struct {
	mu     sync.Mutex // guards what follows
	list   []func()
	closed bool
	more   chan struct{}
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

func (q *queue) add(do func()) {
	q.mu.Lock()
	q.list = append(q.list, do)
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

// run does what is in the queue, in order, until it is closed or ctx ends.
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
