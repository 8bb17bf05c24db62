package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// testTransport is a transport whose other end is the test.
type testTransport struct {
	out     chan envelope
	receive func(envelope)
	lost    func(error)
}

func (l *testTransport) start(_ context.Context, receive func(envelope), lost func(error)) error {
	l.receive, l.lost = receive, lost
	return nil
}

func (l *testTransport) send(ctx context.Context, e envelope) error {
	select {
	case l.out <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *testTransport) setVersion(string)       {}
func (l *testTransport) listen() <-chan struct{} { return nil }
func (l *testTransport) endReason() error        { return nil }
func (l *testTransport) close()                  {}

// next returns the next message that the session sends.
func (l *testTransport) next(t *testing.T) envelope {
	t.Helper()
	select {
	case e := <-l.out:
		return e
	case <-deadline(t):
		t.Fatal("nothing was sent")
		return envelope{}
	}
}

// say passes a message to the session.
func (l *testTransport) say(t *testing.T, text string) {
	t.Helper()
	list, err := readEnvelopes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		l.receive(e)
	}
}

func newLine(t *testing.T, handlers map[string]Handler) (*session, *testTransport) {
	t.Helper()
	l := &testTransport{out: make(chan envelope)}
	s := newSession(context.Background(), l)
	s.self = self{server: "files", capabilities: map[string]any{"roots": map[string]any{}}}
	s.handlers, s.onNotification, s.log = handlers, func(string, json.RawMessage) {}, slog.New(slog.DiscardHandler)
	s.calls = func() []ActiveCall { return []ActiveCall{{ChatID: "c", Tool: "t"}} }
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close("the test is over") })
	return s, l
}

// outcome is the outcome of a request in the background.
type outcome struct {
	raw string
	err error
}

func ask(ctx context.Context, s *session, r request) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		raw, err := s.ask(ctx, r)
		ch <- outcome{string(raw), err}
	}()
	return ch
}

// Answers find their requests in any order, even if their ids have become strings. Unknown and
// second answers are dropped.
func TestAnswers(t *testing.T) {
	s, l := newLine(t, nil)
	one := ask(t.Context(), s, request{method: "a"})
	first := l.next(t)
	two := ask(t.Context(), s, request{method: "b", params: map[string]int{"x": 1}})
	second := l.next(t)
	if first.Params != nil || string(second.Params) != `{"x":1}` || first.key() == second.key() {
		t.Errorf("%+v %+v", first, second)
	}
	l.say(t, `{"jsonrpc":"2.0","id":4711,"result":{}}`)
	l.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":"two"}`, second.key()))
	l.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":"again"}`, second.key()))
	l.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such thing"}}`, first.key()))
	if got := <-two; got.raw != `"two"` || got.err != nil {
		t.Errorf("two: %+v", got)
	}
	if got := <-one; !answered(got.err) || !strings.Contains(got.err.Error(), "no such thing") {
		t.Errorf("one: %+v", got)
	}
}

// The end of the conversation ends all requests with its reason. An answer that arrived just before
// still counts.
func TestEndOfSession(t *testing.T) {
	s, l := newLine(t, nil)
	pending := ask(t.Context(), s, request{method: "a"})
	l.next(t)
	l.lost(errors.New("it fell over"))
	if got := <-pending; got.err == nil || got.err.Error() != "it fell over" {
		t.Errorf("pending: %+v", got)
	}
	s.close("you stopped it")
	if got := <-ask(t.Context(), s, request{method: "late"}); got.err == nil {
		t.Error("a request after the end was answered")
	}
}

// Progress reports go to their request.
func TestProgress(t *testing.T) {
	s, l := newLine(t, nil)
	said := make(chan string, 10)
	pending := ask(t.Context(), s, request{method: "a", params: map[string]any{"_meta": map[string]any{"mine": 1}}, progress: func(text string) { said <- text }})
	sent := l.next(t)
	if got := string(sent.Params); got != `{"_meta":{"mine":1,"progressToken":`+sent.key()+`}}` {
		t.Errorf("params: %s", got)
	}
	for _, params := range []string{`"progress":1,"message":"one"`, `"progress":2,"total":3`, `"progress":2.5`} {
		l.say(t, `{"method":"notifications/progress","params":{"progressToken":`+sent.key()+`,`+params+`}}`)
	}
	l.say(t, `{"method":"notifications/progress","params":{"progressToken":"other","progress":1}}`)
	l.say(t, `{"method":"notifications/progress","params":[]}`)
	l.say(t, `{"id":`+sent.key()+`,"result":{}}`)
	<-pending
	close(said)
	var got []string
	for text := range said {
		got = append(got, text)
	}
	if strings.Join(got, ", ") != "one, 2 of 3, 2.5" {
		t.Errorf("heard: %q", got)
	}
}

// A request of a server is answered by eca, by its handler, or with an error. A request that the
// server cancelled is not answered.
func TestServerAsks(t *testing.T) {
	entered := make(chan ServerRequest, 2*maxIncoming)
	s, l := newLine(t, map[string]Handler{
		"good": func(_ context.Context, r ServerRequest) (any, error) {
			return map[string]any{"from": r.Server, "because": r.Calls[0].Tool}, nil
		},
		"bad": func(context.Context, ServerRequest) (any, error) { return nil, errors.New("it can not be") },
		"coded": func(context.Context, ServerRequest) (any, error) {
			return nil, &jsonrpc.Error{Code: -1, Message: "rejected"}
		},
		"panic": func(context.Context, ServerRequest) (any, error) { panic("oops") },
		"slow": func(ctx context.Context, r ServerRequest) (any, error) {
			entered <- r
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	for method, want := range map[string]string{
		"ping":  `"result":{}`,
		"good":  `"result":{"because":"t","from":"files"}`,
		"bad":   `"error":{"code":-32603,"message":"it can not be"}`,
		"coded": `"error":{"code":-1,"message":"rejected"}`,
		"panic": `"error":{"code":-32603,"message":"internal error"}`,
		"other": `"error":{"code":-32601,"message":"eca does not know the method other"}`,
	} {
		l.say(t, `{"jsonrpc":"2.0","id":"x-`+method+`","method":"`+method+`"}`)
		raw := l.next(t).Encode()
		if got := string(raw); got != `{"jsonrpc":"2.0","id":"x-`+method+`",`+want+`}` {
			t.Errorf("%s: %s", method, got)
		}
	}
	l.say(t, `{"id":7,"method":"slow"}`)
	<-entered
	l.say(t, `{"method":"notifications/cancelled","params":{"requestId":7}}`)
	l.say(t, `{"id":8,"method":"ping"}`)
	if got := l.next(t); got.key() != "8" {
		t.Errorf("a cancelled request was answered: %+v", got)
	}
	// Requests beyond the limit are refused.
	for i := range maxIncoming + 1 {
		l.say(t, fmt.Sprintf(`{"id":%d,"method":"slow"}`, 100+i))
	}
	if got := l.next(t); got.Error == nil || !strings.Contains(got.Error.Message, "at a time") {
		t.Errorf("one too many: %+v", got)
	}
	s.close("you stopped it") // together with the running ones
}

// An abandoned request is cancelled at the server; a handshake is not.
func TestWithdraw(t *testing.T) {
	s, l := newLine(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	pending := ask(ctx, s, request{method: "a"})
	sent := l.next(t)
	cancel(errors.New("the user stopped it"))
	if got := <-pending; !errors.Is(got.err, context.Canceled) {
		t.Errorf("pending: %+v", got)
	}
	if got := l.next(t); got.Method != "notifications/cancelled" || string(got.Params) != `{"reason":"the user stopped it","requestId":`+sent.key()+`}` {
		t.Errorf("sent: %+v %s", got, got.Params)
	}
	pending = ask(ctx, s, request{method: "initialize"})
	if got := <-pending; got.err == nil {
		t.Error("no error")
	}
}

// A server without a handshake says which input it needs, and gets it with the repeated request,
// until it has everything.
func TestInputRequired(t *testing.T) {
	s, l := newLine(t, map[string]Handler{
		"roots/list":         func(context.Context, ServerRequest) (any, error) { return map[string]any{"roots": []any{}}, nil },
		"elicitation/create": func(_ context.Context, r ServerRequest) (any, error) { return r.Params, nil },
	})
	s.setVersion(wire.ProtocolVersion20260728)
	pending := ask(t.Context(), s, request{method: "tools/call", params: map[string]any{"name": "t"}})
	first := l.next(t)
	for _, want := range []string{`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"roots":{}}`, `"name":"t"`} {
		if !strings.Contains(string(first.Params), want) {
			t.Errorf("no %s in %s", want, first.Params)
		}
	}
	l.say(t, `{"id":`+first.key()+`,"result":{"resultType":"input_required","requestState":"abc","inputRequests":{"r":{"method":"roots/list"},"e":{"method":"elicitation/create","params":{"x":1}}}}}`)
	second := l.next(t)
	if got := string(second.Params); second.key() == first.key() || !strings.Contains(got, `"inputResponses":{"e":{"x":1},"r":{"roots":[]}},"name":"t","requestState":"abc"`) {
		t.Errorf("the second request: %s", got)
	}
	l.say(t, `{"id":`+second.key()+`,"result":{"resultType":"complete","content":[]}}`)
	if got := <-pending; got.err != nil || !strings.Contains(got.raw, "content") {
		t.Errorf("%+v", got)
	}
	// Endless demands, and unsupported ones, are errors.
	pending = ask(t.Context(), s, request{method: "tools/call"})
	for range maxRounds + 1 {
		l.say(t, `{"id":`+l.next(t).key()+`,"result":{"resultType":"input_required"}}`)
	}
	if got := <-pending; got.err == nil || !strings.Contains(got.err.Error(), "more than 10 times") {
		t.Errorf("without end: %+v", got)
	}
	pending = ask(t.Context(), s, request{method: "tools/call"})
	l.say(t, `{"id":`+l.next(t).key()+`,"result":{"resultType":"input_required","inputRequests":{"s":{"method":"sampling/createMessage"}}}}`)
	if got := <-pending; got.err == nil || !strings.Contains(got.err.Error(), "sampling/createMessage") {
		t.Errorf("what we do not have: %+v", got)
	}
}

// Many requests at once get their answers from many goroutines.
func TestManyAtOnce(t *testing.T) {
	s, l := newLine(t, nil)
	var work sync.WaitGroup
	const n = 200
	for i := range n {
		work.Go(func() {
			var got struct{ N int }
			if err := s.call(t.Context(), "echo", map[string]int{"n": i}, &got); err != nil || got.N != i {
				t.Errorf("%d: %d, %v", i, got.N, err)
			}
		})
	}
	for range n {
		e := l.next(t)
		work.Go(func() { l.receive(envelope{Message: jsonrpc.Message{ID: e.ID, Result: e.Params}}) })
	}
	work.Wait()
}

// A server that keeps sending requests without reading the answers does not fill the memory.
func TestUnheard(t *testing.T) {
	s, l := newLine(t, nil)
	for i := range maxUnsentAnswers {
		l.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	if s.ctx.Err() != nil {
		t.Fatalf("the session ended before the limit of unsent answers: %v", context.Cause(s.ctx))
	}
	l.next(t)
	l.say(t, `{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	l.say(t, `{"jsonrpc":"2.0","id":"b","method":"ping"}`)
	select {
	case <-s.ctx.Done():
	case <-deadline(t):
		t.Fatal("the session did not end above the limit of unsent answers")
	}
	if cause := context.Cause(s.ctx); !errors.Is(cause, errUnreadAnswers) {
		t.Errorf("%v", cause)
	}
}

// A program that ended is reported with its own exit code and error output, by whichever of the
// ways the end of its session is noticed: the notification of the end, a request that can no longer
// be sent, or eca's decision to stop a server that has already ended.
func TestOwnEndOfAProgramIsTheReason(t *testing.T) {
	needs.POSIX(t)
	pool := proc.NewPool("", 0)
	t.Cleanup(pool.Close)
	const want = "exit code 3: Error: no database"
	for name, notice := range map[string]func(*testing.T, *session) error{
		"request":      func(t *testing.T, s *session) error { return (<-ask(t.Context(), s, request{method: "a"})).err },
		"notification": func(t *testing.T, s *session) error { return s.notify(t.Context(), "a", nil) },
		"stop": func(_ *testing.T, s *session) error {
			s.close("you stopped it")
			return context.Cause(s.ctx)
		},
		"request after the stop": func(t *testing.T, s *session) error {
			s.close("you stopped it")
			return (<-ask(t.Context(), s, request{method: "a"})).err
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := newStdio(Launch{
				Command: "/bin/sh", Args: []string{"-c", "echo starting up; echo 'Error: no database' >&2; exit 3"},
				Clean: func(text string) string { return text },
			}, pool, slog.New(slog.DiscardHandler))
			late := &lateEnd{transport: program, noticed: make(chan struct{})}
			s := newSession(context.Background(), late)
			s.log = slog.New(slog.DiscardHandler)
			if err := s.start(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-program.proc.Ended()
			err := notice(t, s)
			close(late.noticed)
			s.close("you stopped it")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// lateEnd is a transport that reports its end late, as on a busy machine.
type lateEnd struct {
	transport
	noticed chan struct{} // until this is closed
}

func (l *lateEnd) start(life context.Context, receive func(envelope), lost func(error)) error {
	return l.transport.start(life, receive, func(err error) {
		go func() {
			<-l.noticed
			lost(err)
		}()
	})
}
