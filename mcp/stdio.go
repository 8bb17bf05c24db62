package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// stdio is a transport.BidirectionalInterface over a child's stdin and stdout: one message
// of JSON in a line. What is no message is noise: it is logged and does no harm.
type stdio struct {
	launch     Launch
	supervisor string
	log        *slog.Logger
	stderr     *stderr
	over       func(error) // hears why the child can not be talked to any more

	child  *proc.Process
	in     *os.File // of the child; ours to write to
	out    *os.File
	frames chan []byte
	quit   chan struct{} // closed when the child can not be talked to any more
	work   sync.WaitGroup
	once   sync.Once
	closed sync.Once

	mu       sync.Mutex // guards what follows
	ctx      context.Context
	pending  map[string]chan<- *transport.JSONRPCResponse
	notified func(wire.JSONRPCNotification)
	asked    transport.RequestHandler
	noise    int // bytes of it in the log
}

func newStdio(l Launch, supervisor string, log *slog.Logger) *stdio {
	return &stdio{
		launch: l, supervisor: supervisor, log: log, stderr: &stderr{log: log, clean: l.Clean}, over: func(error) {},
		frames: make(chan []byte), quit: make(chan struct{}), pending: map[string]chan<- *transport.JSONRPCResponse{},
	}
}

// errNotStarted is what requests get before Start.
var errNotStarted = errors.New("the server is not started")

// Start implements transport.Interface: it starts the child. The requests of the server run
// in ctx.
func (t *stdio) Start(ctx context.Context) error {
	if t.child != nil {
		return nil
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return err
	}
	defer stdout.Close()
	t.mu.Lock()
	t.ctx = ctx
	t.mu.Unlock()
	t.child, err = proc.Start(proc.Spec{
		Path: t.launch.Command, Args: t.launch.Args, Dir: t.launch.Dir, Env: t.launch.Env,
		Stdin: stdin, Stdout: stdout, Stderr: t.stderr, Supervisor: t.supervisor,
	})
	if err != nil {
		_, _ = in.Close(), out.Close()
		return permanentError{err}
	}
	t.in, t.out = in, out
	t.work.Go(t.write)
	t.work.Go(t.read)
	t.work.Go(func() {
		<-t.child.Done()
		if !t.within(exitTime) {
			t.end(t.farewell()) // somebody else has its stdout open
		}
	})
	return nil
}

const (
	// stdinGrace is how long a child may take to end when its input ends.
	stdinGrace = 300 * time.Millisecond
	// exitTime is how long stdout and the end of the child may be apart.
	exitTime = 300 * time.Millisecond
)

// within waits a while for the end of the conversation.
func (t *stdio) within(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.quit:
		return true
	case <-timer.C:
		return false
	}
}

// exits waits a while for the end of the child.
func (t *stdio) exits(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.child.Done():
		return true
	case <-timer.C:
		return false
	}
}

// farewell says how the child ended, and what it said last.
func (t *stdio) farewell() error {
	if !t.exits(exitTime) {
		return errors.New("it closed its output")
	}
	text := fmt.Sprintf("it ended with exit code %d", t.child.Wait().Code)
	if t.child.Wait().Code < 0 {
		text = "it was killed"
	}
	if last := t.stderr.last(); last != "" {
		text += ": " + last
	}
	return errors.New(text)
}

// end ends the conversation; only the first reason counts.
func (t *stdio) end(reason error) {
	t.once.Do(func() {
		t.over(reason)
		close(t.quit)
	})
}

// Close implements transport.Interface: the child's input ends, then it is asked to end, then
// killed, with all that it started.
func (t *stdio) Close() error {
	t.end(errEnded)
	t.closed.Do(func() {
		if t.child == nil {
			return
		}
		_ = t.in.Close()
		if !t.exits(stdinGrace) {
			t.child.Kill()
		}
		_ = t.out.Close()
	})
	t.work.Wait()
	return nil
}

// write is the only one to write to the child: one that does not read holds up nobody else.
func (t *stdio) write() {
	for {
		select {
		case frame := <-t.frames:
			if _, err := t.in.Write(frame); err != nil {
				// The reader knows better why: the child's last words are still to be read.
				if !t.within(exitTime) {
					t.end(fmt.Errorf("it does not take its input any more: %w", err))
				}
				return
			}
		case <-t.quit:
			return
		}
	}
}

// send hands a message to the writer.
func (t *stdio) send(ctx context.Context, message any) error {
	frame, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if t.child == nil {
		return errNotStarted
	}
	select {
	case t.frames <- append(frame, '\n'):
		return nil
	case <-t.quit:
		return transport.ErrTransportClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SendRequest implements transport.Interface.
func (t *stdio) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	answer, id := make(chan *transport.JSONRPCResponse, 1), r.ID.String()
	t.mu.Lock()
	t.pending[id] = answer
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.pending, id)
		t.mu.Unlock()
	}()
	if err := t.send(ctx, r); err != nil {
		return nil, err
	}
	select {
	case response := <-answer:
		return response, nil
	case <-t.quit:
		select {
		case response := <-answer:
			return response, nil
		default:
			return nil, transport.ErrTransportClosed
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SendNotification implements transport.Interface.
func (t *stdio) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	return t.send(ctx, n)
}

// SetNotificationHandler implements transport.Interface.
func (t *stdio) SetNotificationHandler(handle func(wire.JSONRPCNotification)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notified = handle
}

// SetRequestHandler implements transport.BidirectionalInterface.
func (t *stdio) SetRequestHandler(handle transport.RequestHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = handle
}

// GetSessionId implements transport.Interface: there is none.
func (t *stdio) GetSessionId() string { return "" }

func (t *stdio) read() {
	r := bufio.NewReaderSize(t.out, 32<<10)
	for {
		line, err := readLine(r, maxMessage)
		switch {
		case errors.Is(err, errTooLong):
			t.end(err)
			return
		case err != nil:
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				t.log.Debug("MCP server's stdout", "err", err)
			}
			t.end(t.farewell())
			return
		}
		t.message(line)
	}
}

// message handles one line.
func (t *stdio) message(line []byte) {
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		t.loud(line)
		return
	}
	hasID := len(head.ID) > 0 && string(head.ID) != "null"
	t.mu.Lock()
	notified := t.notified
	t.mu.Unlock()
	switch {
	case head.Method != "" && !hasID:
		var n wire.JSONRPCNotification
		if json.Unmarshal(line, &n) != nil {
			t.loud(line)
		} else if notified != nil {
			notified(n)
		}
	case head.Method != "":
		var r transport.JSONRPCRequest
		if json.Unmarshal(line, &r) != nil {
			t.loud(line)
			return
		}
		t.request(r)
	default:
		var response transport.JSONRPCResponse
		if !hasID || json.Unmarshal(line, &response) != nil {
			t.loud(line)
			return
		}
		t.mu.Lock()
		answer := t.pending[response.ID.String()]
		delete(t.pending, response.ID.String()) // a second answer is nobody's
		t.mu.Unlock()
		if answer != nil {
			answer <- &response
		}
	}
}

// request answers a request of the server, beside the reader.
func (t *stdio) request(r transport.JSONRPCRequest) {
	t.mu.Lock()
	ctx, handle := t.ctx, t.asked
	t.mu.Unlock()
	if handle == nil {
		return
	}
	t.work.Go(func() {
		response, err := handle(ctx, r)
		switch {
		case err != nil:
			response = transport.NewJSONRPCErrorResponse(r.ID, wire.INTERNAL_ERROR, err.Error(), nil)
		case response == nil:
			return
		}
		_ = t.send(ctx, response) // it fails when the conversation is over
	})
}

// loud logs what is no message, up to a limit.
func (t *stdio) loud(line []byte) {
	t.mu.Lock()
	t.noise += len(line)
	quiet := t.noise > maxLogged
	t.mu.Unlock()
	if !quiet && len(line) > 0 {
		t.log.Debug("MCP server wrote what is no message to stdout", "text", cut(t.launch.Clean(string(line[:min(len(line), maxLogLine)])), maxLogLine))
	}
}

var _ transport.BidirectionalInterface = (*stdio)(nil)
