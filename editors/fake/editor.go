// Package fake is an editor for tests: it speaks the ECA protocol over real pipes,
// keeps every message that it receives, and waits for expectations instead of sleeping.
//
// Its methods take no context and return no error: the editor fails the test, with
// the whole conversation and all goroutines, if an expected message does not arrive.
package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// patience is how long Await waits for an expectation. Only a failing test waits that long.
const patience = time.Minute

// Editor is one client.
type Editor struct {
	t    testing.TB
	conn *jsonrpc.Conn
	ctx  context.Context
	stop context.CancelFunc

	mu        sync.Mutex // guards the fields below
	received  []Message
	responses []string // the daemon's responses, as received
	changed   chan struct{}
	watch     func(Message, time.Time)
	answers   map[string]Answer
	rpc       bytes.Buffer
}

// Answer answers a request of the daemon. It may wait; ctx ends when the daemon cancels
// the request with its id, or the connection ends.
type Answer func(ctx context.Context, params json.RawMessage) (any, error)

// Message is a notification or a request that the editor received.
type Message struct {
	Method string
	Params json.RawMessage
}

// String renders a message compactly.
func (m Message) String() string { return m.Method + " " + string(m.Params) }

// Connect starts an editor that reads the daemon's output from r and writes to w.
func Connect(t testing.TB, r io.Reader, w io.Writer) *Editor {
	t.Helper()
	e := &Editor{t: t, changed: make(chan struct{}), answers: map[string]Answer{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.conn = jsonrpc.NewConn(r, w, jsonrpc.Options{Trace: e.trace})
	e.conn.Start(e.ctx, e.handle)
	t.Cleanup(e.Close)
	return e
}

// Close ends the connection.
func (e *Editor) Close() {
	e.stop()
	e.conn.Close()
}

func (e *Editor) trace(incoming bool, body []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	arrow := "-> "
	if incoming {
		arrow = "<- "
		if !bytes.Contains(body, []byte(`"method":`)) {
			e.responses = append(e.responses, string(body))
			e.signal()
		}
	}
	const limit = 4 << 20 // more output would not help to find a failure
	if e.rpc.Len() < limit {
		fmt.Fprintf(&e.rpc, "%s%s\n", arrow, body)
	}
}

func (e *Editor) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received = append(e.received, Message{req.Method, req.Params})
	if e.watch != nil {
		e.watch(e.received[len(e.received)-1], time.Now())
	}
	e.signal()
	if !req.IsCall {
		return nil, nil
	}
	answer, ok := e.answers[req.Method]
	if !ok {
		return nil, jsonrpc.MethodNotFound(req.Method)
	}
	return jsonrpc.Later(func(ctx context.Context) (any, error) { return answer(ctx, req.Params) }), nil
}

// Answer sets how requests of a method are answered from now on. Other requests are
// answered with the error "method not found".
func (e *Editor) Answer(method string, answer Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers[method] = answer
}

// signal makes Await check its expectation again. e.mu is held.
func (e *Editor) signal() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// Call sends a request and returns its result.
func (e *Editor) Call(method string, params any) json.RawMessage {
	e.t.Helper()
	res, err := e.TryCall(method, params)
	if err != nil {
		e.Fatalf("%s failed: %v", method, err)
	}
	return res
}

// TryCall sends a request and returns its result or its error.
func (e *Editor) TryCall(method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	var res json.RawMessage
	err := e.conn.Call(ctx, method, params, &res)
	return res, err
}

// Begin sends a request and does not wait for its response; AwaitResponse does. cancel
// withdraws it, as editors do.
func (e *Editor) Begin(method string, params any) (cancel func()) {
	ctx, cancel := context.WithCancel(e.ctx)
	go func() { _ = e.conn.Call(ctx, method, params, nil) }()
	return cancel
}

// AwaitResponse waits for a response that contains all of the given pieces of JSON text
// and returns its text.
func (e *Editor) AwaitResponse(what string, pieces ...string) string {
	e.t.Helper()
	response := ""
	e.Await(0, what, func([]Message) Verdict {
		for _, response = range e.responses {
			if containsAll(response, pieces) {
				return Met
			}
		}
		return Unmet
	})
	return response
}

// Conversation returns the messages of both directions so far, one per line, in order.
func (e *Editor) Conversation() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rpc.String()
}

// Notify sends a notification.
func (e *Editor) Notify(method string, params any) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	if err := e.conn.Notify(ctx, method, params); err != nil {
		e.Fatalf("%s could not be sent: %v", method, err)
	}
}

// Open does the handshake for a workspace folder. options are merged into the
// parameters of initialize.
func (e *Editor) Open(root string, options map[string]any) json.RawMessage {
	e.t.Helper()
	params := map[string]any{
		"processId": nil, "clientInfo": map[string]any{"name": "fake", "version": "1"},
		"capabilities":     map[string]any{"codeAssistant": map[string]any{"chat": true}},
		"workspaceFolders": []any{map[string]any{"uri": "file://" + root, "name": "ws"}},
	}
	for k, v := range options {
		params[k] = v
	}
	res := e.Call("initialize", params)
	e.Notify("initialized", map[string]any{})
	return res
}

// Watch calls fn with every message received from now on; a nil fn stops that.
func (e *Editor) Watch(fn func(m Message, at time.Time)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watch = fn
}

// Verdict of an expectation about the messages so far.
type Verdict int

// Verdicts. Unmeetable means that waiting is pointless.
const (
	Unmet Verdict = iota
	Met
	Unmeetable
)

// Expectation judges the messages from a mark on.
type Expectation func(received []Message) Verdict

// Mark returns the number of messages so far, from which Since and Await can continue.
func (e *Editor) Mark() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.received)
}

// Forget drops the messages and the conversation so far, because a benchmark receives many.
func (e *Editor) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received, e.rpc = nil, bytes.Buffer{}
}

// Since returns the messages from a mark on.
func (e *Editor) Since(mark int) []Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Message(nil), e.received[mark:]...)
}

// Await waits until an expectation about the messages from a mark on is met.
func (e *Editor) Await(mark int, what string, expect Expectation) {
	e.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		e.mu.Lock()
		verdict, changed := expect(e.received[mark:]), e.changed
		e.mu.Unlock()
		switch verdict {
		case Met:
			return
		case Unmeetable:
			e.Fatalf("%s cannot happen any more", what)
		}
		select {
		case <-changed:
		case <-deadline.C:
			e.Fatalf("%s did not happen within %s", what, patience)
		case <-e.conn.Done():
			// Everything in the pipe has been handled by now.
			e.mu.Lock()
			verdict := expect(e.received[mark:])
			e.mu.Unlock()
			if verdict != Met {
				e.Fatalf("the daemon ended before %s", what)
			}
			return
		}
	}
}

// Contains expects a message whose method is given and whose params contain all of
// the given pieces of JSON text.
func Contains(method string, pieces ...string) Expectation {
	return func(received []Message) Verdict {
		for _, m := range received {
			if m.Method == method && containsAll(string(m.Params), pieces) {
				return Met
			}
		}
		return Unmet
	}
}

// Times expects n messages like that of Contains.
func Times(n int, method string, pieces ...string) Expectation {
	return func(received []Message) Verdict {
		count := 0
		for _, m := range received {
			if m.Method == method && containsAll(string(m.Params), pieces) {
				count++
			}
		}
		if count >= n {
			return Met
		}
		return Unmet
	}
}

func containsAll(s string, pieces []string) bool {
	for _, p := range pieces {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// Ready expects that every task of the daemon's start has ended.
func Ready() Expectation {
	return func(received []Message) Verdict {
		verdict, open := Unmet, map[string]bool{}
		for _, m := range received {
			var p struct{ Type, TaskID string }
			if m.Method != "$/progress" || json.Unmarshal(m.Params, &p) != nil {
				continue
			}
			if p.Type == "start" {
				open[p.TaskID] = true
			} else {
				delete(open, p.TaskID)
			}
			verdict = Unmet
			if len(open) == 0 {
				verdict = Met
			}
		}
		return verdict
	}
}

// Finished expects the end of a turn.
func Finished() Expectation { return Contains("chat/contentReceived", `"state":"finished"`) }

// Content expects a content of a type whose JSON contains the pieces. A text is streamed in parts that
// differ between runs, so the pieces are also searched in the joined parts.
func Content(kind string, pieces ...string) Expectation {
	pieces = append(pieces, `"type":"`+kind+`"`)
	whole := Contains("chat/contentReceived", pieces...)
	if kind != "text" {
		return whole
	}
	return func(received []Message) Verdict {
		if whole(received) == Met || Contains("chat/contentReceived", pieces...)(joinTexts(received)) == Met {
			return Met
		}
		return Unmet
	}
}

// joinTexts joins consecutive texts of a model into one message. Messages of other chats, progress and
// usage do not separate texts.
func joinTexts(received []Message) []Message {
	type content struct {
		ChatID  string         `json:"chatId"`
		Role    string         `json:"role"`
		Content map[string]any `json:"content"`
	}
	var out []Message
	open := map[string]*content{}
	end := func(chat string) {
		if c := open[chat]; c != nil {
			params, _ := json.Marshal(c)
			out = append(out, Message{Method: "chat/contentReceived", Params: params})
			delete(open, chat)
		}
	}
	for _, m := range received {
		var c content
		if m.Method != "chat/contentReceived" || json.Unmarshal(m.Params, &c) != nil {
			continue
		}
		text, _ := c.Content["text"].(string)
		switch kind := c.Content["type"]; {
		case kind == "text" && c.Role == "assistant":
			if before := open[c.ChatID]; before != nil {
				before.Content["text"] = before.Content["text"].(string) + text
			} else {
				open[c.ChatID] = &c
			}
		case kind != "progress" && kind != "usage":
			end(c.ChatID)
		}
	}
	for chat := range open {
		end(chat)
	}
	return out
}

// Fatalf fails the test with the conversation and all goroutines.
func (e *Editor) Fatalf(format string, args ...any) {
	e.t.Helper()
	e.mu.Lock()
	rpc := e.rpc.String()
	e.mu.Unlock()
	stacks := make([]byte, 256<<10)
	stacks = stacks[:runtime.Stack(stacks, true)]
	e.t.Fatalf("%s\n--- conversation\n%s--- goroutines\n%s", fmt.Sprintf(format, args...), rpc, stacks)
}
