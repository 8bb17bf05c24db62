package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/internal/lines"
)

// MaxLine is how long an envelope, or another message of a caller, may be, in bytes: prompts
// bring images along.
const MaxLine = 64 << 20

// ErrTooLong is a line beyond that.
var ErrTooLong = fmt.Errorf("the line is longer than %d MiB", MaxLine>>20)

// Serve answers envelopes that come as lines of JSON, with frames as lines of JSON. A line
// that is no envelope is answered with an E2A.INVALID_JSON or E2A.INVALID_ENVELOPE. When
// the lines end, nobody decides about calls any more: those that ask are refused, and
// Serve returns when everything is answered. When ctx ends, what runs is stopped, and
// answered with E2A.DISCONNECTED; who does not read that is not waited for long.
func (g *Gateway) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ending := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ending, func() { cancel(errEnding) })()
	var mu sync.Mutex // frames are written whole
	send := func(r e2a.Response) error {
		line, err := e2a.Line(r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err = out.Write(line); err != nil {
			cancel(err) // nobody reads what else is said
		}
		return err
	}
	read := make(chan line)
	go readLines(ctx, in, read) // ends with ctx at the latest when its reader does
	answered := make(chan struct{})
	go func() { // ends when everything is answered, or nobody takes answers
		defer close(answered)
		g.takeAll(ctx, read, send)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		select {
		case <-answered:
		case <-time.After(g.farewell):
			g.log.Warn("what was answered last is not read")
		}
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, errEnding) {
		return err
	}
	return nil
}

// errEnding says that the program ends.
var errEnding = errors.New("eca is ending")

// farewell is how long last answers may take to be read, if nothing else is said.
const farewell = 3 * time.Second

// takeAll answers lines until there are no more, or ctx ends.
func (g *Gateway) takeAll(ctx context.Context, read <-chan line, send Send) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case l, ok := <-read:
			if !ok {
				if ctx.Err() == nil {
					g.Leave()
				}
				return
			}
			g.take(ctx, l, send, &running)
		case <-ctx.Done():
			return
		}
	}
}

// take begins to answer a line. It returns when what comes next can not overtake it.
func (g *Gateway) take(ctx context.Context, l line, send Send, running *sync.WaitGroup) {
	e, bad := readEnvelope(l)
	if bad != nil {
		s := e2a.NewStream(e, g.newID, g.now)
		if r, err := s.Fail(bad.code, bad.message, nil); err == nil {
			if bad.code == codeBadJSON {
				r.Provenance.Details = map[string]any{"kind": "json_parse_error"} // e2a.md 7
			}
			_ = send(r) // Serve ends if it failed
		}
		return
	}
	g.log.Debug("envelope", "method", e.Method, "request", e.RequestID)
	accepted := make(chan struct{})
	once := sync.OnceFunc(func() { close(accepted) })
	running.Go(func() {
		defer once()
		if err := g.Run(ctx, e, send, once); err != nil && ctx.Err() == nil {
			g.log.Warn("an answer was not taken", "err", err)
		}
	})
	<-accepted
}

// readEnvelope reads a line. What is none is answered under the request's id, if it has
// one.
func readEnvelope(l line) (e2a.Envelope, *failure) {
	unnamed := "invalid-json"
	if l.err != nil {
		return e2a.Envelope{RequestID: &unnamed}, fail(codeBadJSON, "%v", l.err)
	}
	e, err := e2a.DecodeEnvelope(l.text)
	if err == nil {
		return e, nil
	}
	var field *e2a.FieldError
	if !errors.As(err, &field) {
		return e2a.Envelope{RequestID: &unnamed}, fail(codeBadJSON, "%v", err)
	}
	var named struct {
		RequestID any `json:"request_id"`
	}
	if json.Unmarshal(l.text, &named) == nil {
		if id, ok := named.RequestID.(string); ok && id != "" {
			unnamed = id
		}
	}
	return e2a.Envelope{RequestID: &unnamed}, fail("E2A.INVALID_ENVELOPE", "%v", err)
}

// line is one of the input's, or why it can not be read.
type line struct {
	text []byte
	err  error
}

// readLines sends the lines that say something, and closes the channel behind the last.
func readLines(ctx context.Context, in io.Reader, out chan<- line) {
	defer close(out)
	for r := NewLines(in); ; {
		text, err := r.NextMessage()
		if err != nil && !errors.Is(err, ErrTooLong) {
			return
		}
		select {
		case out <- line{text: bytes.Clone(text), err: err}:
		case <-ctx.Done():
			return
		}
	}
}

// NewLines reads the lines of a caller, one message each. One that is too long is ErrTooLong,
// and the next can be read.
func NewLines(in io.Reader) *lines.Reader { return lines.NewReader(in, MaxLine, ErrTooLong) }
