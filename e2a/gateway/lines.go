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
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/lines"
)

// MaxLine limits the length of a message from a caller, in bytes. It is large because prompts contain
// images.
const MaxLine = 64 << 20

// ErrTooLong is the error for a line longer than MaxLine.
var ErrTooLong = fmt.Errorf("the line is longer than %d MiB", MaxLine>>20)

// Serve reads envelopes as lines of JSON and writes frames as lines of JSON. A line that is not an
// envelope is answered with E2A.INVALID_JSON or E2A.INVALID_ENVELOPE. When the input ends, calls that
// need approval are refused, because no caller can decide about them any more, and Serve returns when
// everything has been answered. When ctx ends, running work is stopped and answered with
// E2A.DISCONNECTED; Serve waits at most CloseGrace for a caller that does not read.
func (g *Gateway) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	shutdownCtx := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(shutdownCtx, func() { cancel(turn.ErrShutdown) })()
	var mu sync.Mutex // frames are written completely
	send := func(r e2a.Response) error {
		line, err := e2a.Line(r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err = out.Write(line); err != nil {
			cancel(err) // the caller has stopped reading
		}
		return err
	}
	lineCh := make(chan line)
	go readLines(ctx, in, lineCh) // returns at the end of the input, or after the next line once ctx has ended
	answered := make(chan struct{})
	go func() { // returns when everything is answered, or the caller has stopped reading
		defer close(answered)
		g.answerAll(ctx, lineCh, send)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		select {
		case <-answered:
		case <-time.After(g.opts.CloseGrace):
			g.opts.Log.Warn("the caller did not read the last answers")
		}
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, turn.ErrShutdown) {
		return err
	}
	return nil
}

// defaultCloseGrace is the default time for a caller to read the last answers.
const defaultCloseGrace = 3 * time.Second

// answerAll answers lines until the input or ctx ends, and waits for all answers.
func (g *Gateway) answerAll(ctx context.Context, read <-chan line, send Send) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case l, ok := <-read:
			if !ok {
				if ctx.Err() == nil {
					g.opts.Turns.Disconnect()
				}
				return
			}
			g.startAnswer(ctx, l, send, &running)
		case <-ctx.Done():
			return
		}
	}
}

// startAnswer starts to answer a line. It returns when the next line may be started: a prompt must
// have been accepted by its session, other methods must have ended.
func (g *Gateway) startAnswer(ctx context.Context, l line, send Send, running *sync.WaitGroup) {
	e, bad := readEnvelope(l)
	if bad != nil {
		s := e2a.NewStream(e, g.opts.NewID, g.opts.Now)
		if r, err := s.Fail(string(bad.Code), bad.Message, struct{}{}); err == nil {
			if bad.Code == codeBadJSON {
				r.Provenance.Details = e2a.Object{"kind": json.RawMessage(`"json_parse_error"`)} // e2a.md 7
			}
			_ = send(r) // an error ends Serve
		}
		return
	}
	g.opts.Log.Debug("envelope", "method", e.Method, "request", e.RequestID)
	accepted := make(chan struct{})
	once := sync.OnceFunc(func() { close(accepted) })
	running.Go(func() {
		defer once()
		if err := g.Run(ctx, e, send, once); err != nil && ctx.Err() == nil {
			g.opts.Log.Warn("cannot send an answer", "err", err)
		}
	})
	<-accepted
}

// readEnvelope decodes a line. With an error it returns an envelope that has only a request id for
// the answer: that of the line, or a substitute.
func readEnvelope(l line) (e2a.Envelope, *turn.Error) {
	requestID := "invalid-json"
	if l.err != nil {
		return e2a.Envelope{RequestID: &requestID}, turn.Errorf(codeBadJSON, "%v", l.err)
	}
	e, err := e2a.DecodeEnvelope(l.text)
	if err == nil {
		err = checkHeartbeat(e)
	}
	if err == nil {
		return e, nil
	}
	var field *e2a.FieldError
	if !errors.As(err, &field) {
		return e2a.Envelope{RequestID: &requestID}, turn.Errorf(codeBadJSON, "%v", err)
	}
	var header struct {
		RequestID any `json:"request_id"`
	}
	if json.Unmarshal(l.text, &header) == nil {
		if id, ok := header.RequestID.(string); ok && id != "" {
			requestID = id
		}
	}
	return e2a.Envelope{RequestID: &requestID}, turn.Errorf(codeBadEnvelope, "%v", err)
}

// checkHeartbeat returns an error for an envelope without a method that is not a heartbeat. Without the
// check, an envelope whose method is misspelled would be answered with success.
func checkHeartbeat(e e2a.Envelope) error {
	missing := func(s *string) bool { return s == nil || *s == "" }
	if missing(e.Method) && (missing(e.RequestID) || len(e.Params) > 0 || !missing(e.ExtMethod)) {
		return &e2a.FieldError{Field: "method", Reason: "it is missing; only a heartbeat has no method, and it has a request_id and no params"}
	}
	return nil
}

// line is a line of the input, or the error of reading it.
type line struct {
	text []byte
	err  error
}

// readLines sends the nonempty lines to out, and closes out after the last one.
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

// NewLines returns a reader of messages, one per line. For a line that is too long, the reader
// returns ErrTooLong and continues with the next line.
func NewLines(in io.Reader) *lines.Reader { return lines.NewReader(in, MaxLine, ErrTooLong) }
