package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

// streamable is a transport over Streamable HTTP: each message is a POST, whose answer is one
// message or a stream of them. If a stream ends before the answer, it is resumed, provided that the
// server sent a position.
type streamable struct {
	client  *http.Client
	address string
	log     *slog.Logger

	life    context.Context
	receive func(envelope)
	work    sync.WaitGroup // listening

	mu      sync.Mutex // guards the fields below
	session string
	version string
}

const (
	// The delays before a stream is resumed, unless the server gives one.
	firstResumeDelay = time.Second
	maxResumeDelay   = 30 * time.Second
	minResumeDelay   = 100 * time.Millisecond // the minimum delay, whatever the server requests
	// maxResumes limits the consecutive resumptions of a stream that receive nothing.
	maxResumes = 5
	// drainTime is how long eca waits for the end of a stream after its answer, so that the connection
	// can be used again.
	drainTime = time.Second
	// maxRefusal is how many bytes eca reads of an HTTP answer that is not a message of the protocol.
	maxRefusal = 64 << 10
)

// start implements transport. There is nothing to open.
func (t *streamable) start(life context.Context, receive func(envelope), _ func(error)) error {
	t.life, t.receive = life, receive
	return nil
}

// setVersion implements transport.
func (t *streamable) setVersion(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
}

func (t *streamable) state() (session, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session, t.version
}

// endReason implements transport. It returns nil, because only the failure of a request shows that the
// server is gone.
func (*streamable) endReason() error { return nil }

// close implements transport: it notifies the server that the session is over.
func (t *streamable) close() {
	t.work.Wait()
	if t.life == nil {
		return
	}
	if session, _ := t.state(); session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.life), closeTimeout)
	defer cancel()
	resp, err := t.do(ctx, http.MethodDelete, nil, nil)
	if err != nil {
		t.log.Debug("cannot notify an MCP server of the end of its session", "err", err)
		return
	}
	_ = resp.Body.Close()
}

// do sends a request with the headers that all requests have.
func (t *streamable) do(ctx context.Context, method string, body []byte, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	session, version := t.state()
	switch method {
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, "+sse.ContentType)
	case http.MethodGet:
		req.Header.Set("Accept", sse.ContentType)
	}
	if version != "" {
		req.Header.Set(wire.HeaderProtocolVersion, version)
	}
	if session != "" { // only an older handshake opens a session
		req.Header.Set(wire.HeaderSessionID, session)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return t.client.Do(req)
}

// send implements transport. For a request it returns when its stream is over.
func (t *streamable) send(ctx context.Context, e envelope) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	session, version := t.state()
	if wire.IsModernProtocol(version) && e.Method == string(wire.MethodNotificationCancelled) {
		return nil // no message is needed: closing the HTTP request cancels the request
	}
	header := map[string]string{}
	if e.Method != "" {
		maps.Copy(header, wire.StandardHeaders(version, wire.MCPMethod(e.Method), e.Params))
	}
	maps.Copy(header, e.header)
	resp, err := t.do(ctx, http.MethodPost, e.Encode(), header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return t.handleRefusal(e, resp, session)
	}
	if id := resp.Header.Get(wire.HeaderSessionID); id != "" && e.Method == string(wire.MethodInitialize) {
		t.mu.Lock()
		t.session = id
		t.mu.Unlock()
	}
	if !e.isRequest() || resp.StatusCode == http.StatusAccepted {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusal)) // so that the connection can be used again
		return nil
	}
	switch media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media {
	case "application/json":
		return t.handleJSON(resp.Body, e)
	case sse.ContentType:
		return t.readAnswer(ctx, cancel, resp.Body, e)
	}
	return fmt.Errorf("it answered with %q, which is not MCP: perhaps a web page or another service answers there; correct its url", shorten.Bytes(resp.Header.Get("Content-Type"), 100))
}

// handleJSON handles an answer that is not a stream.
func (t *streamable) handleJSON(body io.Reader, e envelope) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	list, err := readEnvelopes(raw)
	if err != nil {
		return err
	}
	found := false
	for _, one := range list {
		found = found || one.Method == "" && one.key() == e.key()
		t.receive(one)
	}
	if !found {
		return errors.New("the server sent the answer to another request")
	}
	return nil
}

// handleRefusal returns the error for an HTTP error, or passes on the JSON-RPC error in its body.
func (t *streamable) handleRefusal(e envelope, resp *http.Response, session string) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // errors are ignored: the status matters most
	if resp.StatusCode == http.StatusUnauthorized {
		return errUnauthorized
	}
	if resp.StatusCode == http.StatusNotFound && session != "" {
		return t.forget(session)
	}
	var errorBody envelope // often with a null id
	if json.Unmarshal(raw, &errorBody) == nil && errorBody.JSONRPC == wire.JSONRPC_VERSION && errorBody.Error != nil {
		// Some servers report a lost session only with this error.
		if resp.StatusCode == http.StatusBadRequest && session != "" && strings.Contains(strings.ToLower(errorBody.Error.Message), "session") {
			return t.forget(session)
		}
		if e.isRequest() {
			t.receive(envelope{Message: jsonrpc.Message{ID: e.ID, Error: errorBody.Error}})
			return nil
		}
	}
	const maxText = 500
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(raw[:min(len(raw), maxText)]), "")), " ")
	return &statusError{resp.StatusCode, text}
}

// forget drops a session that the server no longer knows, so that no DELETE follows.
func (t *streamable) forget(session string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == session {
		t.session = ""
	}
	return errSessionLost
}

// errTooLong ends a connection over which a message exceeded the limit.
var errTooLong = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)

// newEvents reads the events of a stream. Data at its end without the empty line that ends an event
// also counts as an event.
func newEvents(r io.Reader) *sse.Reader { return sse.NewReader(r, maxMessage, errTooLong) }

// cursor is the position in a stream from which it can be resumed.
type cursor struct {
	id         string
	retry      time.Duration // the delay that the server requested; 0 without one
	progressed bool          // an event has arrived since the stream was opened
}

// read reads a stream until it ends, or until the answer with the wanted id arrives.
func (t *streamable) read(body io.Reader, at *cursor, want string) (answered bool, err error) {
	events := newEvents(body)
	events.ID = at.id
	for {
		e, err := events.Next()
		at.progressed = at.progressed || err == nil || len(e.Data) > 0 || events.ID != at.id
		at.id = events.ID
		if events.Retry >= 0 {
			at.retry = max(events.Retry, minResumeDelay)
		}
		if err != nil && len(e.Data) == 0 {
			return false, err
		}
		for _, one := range eventEnvelopes(e, t.log) {
			answered = answered || want != "" && one.Method == "" && one.key() == want
			t.receive(one)
		}
		if answered {
			return true, nil
		}
	}
}

// readAnswer reads the stream of a request until the answer arrives, and resumes the stream if
// necessary.
func (t *streamable) readAnswer(ctx context.Context, cancel context.CancelFunc, body io.Reader, e envelope) error {
	var at cursor
	answered, err := t.read(body, &at, e.key())
	for fruitless := 0; !answered; {
		_, version := t.state()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errTooLong):
			return err
		case at.id == "" || wire.IsModernProtocol(version):
			return fmt.Errorf("the stream ended before the answer: %w", err)
		case at.progressed:
			fruitless = 0
		default:
			if fruitless++; fruitless == maxResumes {
				return fmt.Errorf("the stream ended before the answer, and did not continue: %w", err)
			}
		}
		at.progressed = false
		if !pauseFor(ctx, at.wait(fruitless)) {
			return ctx.Err()
		}
		var status *statusError
		if answered, err = t.resume(ctx, &at, e.key(), func() {}); errors.As(err, &status) || errors.Is(err, errSessionLost) {
			return fmt.Errorf("the stream ended before the answer, and could not be resumed: %w", err)
		}
	}
	end := time.AfterFunc(drainTime, cancel)
	defer end.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxRefusal))
	return nil
}

// wait returns the delay before a stream is resumed.
func (c cursor) wait(fruitless int) time.Duration {
	if c.retry > 0 {
		return c.retry
	}
	return min(firstResumeDelay<<fruitless, maxResumeDelay)
}

// pauseFor waits; it returns false if ctx ended first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	again, giveUp := timer(d)
	defer giveUp()
	select {
	case <-again:
		return true
	case <-ctx.Done():
		return false
	}
}

// resume reopens a stream at its position and reads it.
func (t *streamable) resume(ctx context.Context, at *cursor, want string, opened func()) (answered bool, err error) {
	header := map[string]string{}
	if at.id != "" {
		header[wire.HeaderLastEventID] = at.id
	}
	session, _ := t.state()
	resp, err := t.do(ctx, http.MethodGet, nil, header)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		return false, t.handleRefusal(envelope{}, resp, session)
	case media != sse.ContentType:
		return false, &statusError{resp.StatusCode, "not an event stream"}
	}
	opened()
	return t.read(resp.Body, at, want)
}

// listen implements transport: it reads the stream of unsolicited messages as long as the
// server offers one.
func (t *streamable) listen() <-chan struct{} {
	open := make(chan struct{})
	opened := sync.OnceFunc(func() { close(open) })
	t.work.Go(func() {
		defer opened()
		var at cursor
		for fruitless := 0; ; fruitless++ {
			at.progressed = false
			_, err := t.resume(t.life, &at, "", opened)
			var status *statusError
			if t.life.Err() != nil || errors.As(err, &status) || errors.Is(err, errSessionLost) || errors.Is(err, errUnauthorized) {
				return // there is no such stream, or the next request will report the error
			}
			if at.progressed {
				fruitless = 0
			}
			if !pauseFor(t.life, at.wait(min(fruitless, maxResumes))) {
				return
			}
		}
	})
	return open
}
