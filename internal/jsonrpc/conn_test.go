package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// raw is a peer that writes bytes and reads bodies.
type raw struct {
	t    *testing.T
	conn net.Conn
	r    Codec
}

func serve(t *testing.T, h Handler, opts Options) (*raw, *Conn) {
	t.Helper()
	a, b := net.Pipe()
	c := NewConn(a, a, opts)
	c.Start(context.Background(), h)
	t.Cleanup(func() {
		_ = b.Close()
		c.Close()
		<-c.Done()
	})
	return &raw{t, b, ContentLength(bufio.NewReader(b), DefaultMaxFrame)}, c
}

func (r *raw) send(s string) {
	r.t.Helper()
	go func() { _, _ = io.WriteString(r.conn, s) }()
}

func (r *raw) read() string {
	r.t.Helper()
	_ = r.conn.SetReadDeadline(time.Now().Add(time.Minute))
	body, err := r.r.Next()
	if err != nil {
		r.t.Fatalf("no message: %v", err)
	}
	return string(body)
}

func (r *raw) expect(want string) {
	r.t.Helper()
	if got := r.read(); got != want {
		r.t.Errorf("got  %s\nwant %s", got, want)
	}
}

func echo(_ context.Context, req *Request) (any, error) {
	switch req.Method {
	case "echo":
		return req.Params, nil
	case "nothing":
		return nil, nil
	case "panic":
		panic("oh no")
	case "members":
		return nil, fmt.Errorf("wrapped: %w", &Error{Code: -1, Message: "no", Data: json.RawMessage(`{"a":1}`), Members: map[string]any{"type": "info", "b": "<\"}}"}})
	case "plain":
		return nil, errors.New("a plain error")
	case "html":
		return map[string]string{"x": "<b>&👋"}, nil
	}
	if !req.IsCall {
		return nil, errors.New("bad notification")
	}
	return nil, MethodNotFound(req.Method)
}

func TestAnswers(t *testing.T) {
	r, _ := serve(t, echo, Options{})
	for _, c := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":0,"method":"echo","params":{"a":[1]}}`, `{"jsonrpc":"2.0","id":0,"result":{"a":[1]}}`},
		{`{"jsonrpc":"2.0","id":"abc","method":"nothing","params":null}`, `{"jsonrpc":"2.0","id":"abc","result":null}`},
		{`{"jsonrpc":"2.0","id":2,"method":"nothing","params":[]}`, `{"jsonrpc":"2.0","id":2,"result":null}`},
		{`{"jsonrpc":"2.0","id":3,"method":"nope"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found","data":{"method":"nope"}}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"panic"}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"internal error in panic: oh no"}}`},
		{`{"jsonrpc":"2.0","id":5,"method":"plain"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"a plain error"}}`},
		{`{"jsonrpc":"2.0","id":11,"method":"members"}`, `{"jsonrpc":"2.0","id":11,"error":{"code":-1,"message":"no","data":{"a":1},"b":"<\"}}","type":"info"}}`},
		{`{"jsonrpc":"2.0","id":"s","method":"members"}`, `{"jsonrpc":"2.0","id":"s","error":{"code":-1,"message":"no","data":{"a":1},"b":"<\"}}","type":"info"}}`},
		{`{"jsonrpc":"2.0","id":11,"method":"plain"}`, `{"jsonrpc":"2.0","id":11,"error":{"code":-32603,"message":"a plain error"}}`},
		{`{"jsonrpc":"2.0","id":6,"method":"html"}`, `{"jsonrpc":"2.0","id":6,"result":{"x":"<b>&👋"}}`},
		{`{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not a JSON-RPC 2.0 message"}}`},
		{`{"id":7}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not a JSON-RPC 2.0 message"}}`},
		{`{"jsonrpc":"2.0","id":12,"method":""}`, `{"jsonrpc":"2.0","id":12,"error":{"code":-32601,"message":"Method not found"}}`},
		{`[{"jsonrpc":"2.0","method":""},{"jsonrpc":"2.0","id":13,"method":""}]`, `[{"jsonrpc":"2.0","id":13,"error":{"code":-32601,"message":"Method not found"}}]`},
		{`[{"jsonrpc":"2.0","id":8,"method":"nothing"},{"jsonrpc":"2.0","method":"nothing"},7]`, ``},
		{`[]`, ``},
	} {
		r.send(frame(c.in))
		got := r.read()
		if c.want == "" { // in batches, the order of members does not matter
			if !strings.Contains(got, `"error"`) {
				t.Errorf("%s: %s", c.in, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.in, got, c.want)
		}
	}
	// Responses are never answered, valid or not.
	r.send(frame(`{"jsonrpc":"2.0","id":5,"error":null,"result":{}}`) + frame(`{"jsonrpc":"2.0","id":{},"result":1}`) + frame(`{"jsonrpc":"2.0","id":10,"method":"nothing"}`))
	r.expect(`{"jsonrpc":"2.0","id":10,"result":null}`)
	// Failing notifications, even panics, end nothing.
	r.send(frame(`{"jsonrpc":"2.0","method":""}`) + frame(`{"jsonrpc":"2.0","method":"unknown"}`) + frame(`{"jsonrpc":"2.0","method":"panic"}`) + frame(`{"jsonrpc":"2.0","id":9,"method":"nothing"}`))
	r.expect(`{"jsonrpc":"2.0","id":9,"result":null}`)
}

func TestHundredMegabytes(t *testing.T) {
	r, _ := serve(t, echo, Options{})
	const size = 100 << 20
	go func() {
		_, _ = io.WriteString(r.conn, "Content-Length: 104857600\r\n\r\n")
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range size / len(chunk) {
			if _, err := r.conn.Write(chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(r.conn, frame(`{"jsonrpc":"2.0","id":1,"method":"nothing"}`))
	}()
	if got := r.read(); !strings.Contains(got, "over the limit") {
		t.Errorf("got %s", got)
	}
	r.expect(`{"jsonrpc":"2.0","id":1,"result":null}`)
}

// A request whose handler returns Later does not delay the following requests, and the peer can
// cancel it.
func TestLaterAndCancel(t *testing.T) {
	r, _ := serve(t, func(_ context.Context, req *Request) (any, error) {
		if req.Method == "wait" {
			return Later(func(ctx context.Context) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}), nil
		}
		return "quick", nil
	}, Options{})
	r.send(frame(`{"jsonrpc":"2.0","id":1,"method":"wait"}`) + frame(`{"jsonrpc":"2.0","id":2,"method":"quick"}`))
	r.expect(`{"jsonrpc":"2.0","id":2,"result":"quick"}`)
	r.send(frame(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}}`) + frame(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`))
	r.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"Request cancelled"}}`)
}

// The ids of our requests are out of the range of clients' own; a cancelled call notifies the peer.
func TestOwnCalls(t *testing.T) {
	r, c := serve(t, echo, Options{})
	got := make(chan string, 1)
	go func() {
		var res struct{ Answer string }
		err := c.Call(context.Background(), "ask", map[string]int{"id": 1}, &res)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- res.Answer
	}()
	if got := r.read(); !strings.Contains(got, `"params":{"id":1}`) || !strings.Contains(got, `"id":1000000001`) {
		t.Errorf("call: %s", got)
	}
	r.send(frame(`{"jsonrpc":"2.0","id":1000000001,"result":{"answer":"yes"}}`))
	if a := <-got; a != "yes" {
		t.Errorf("answer %q", a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { got <- c.Call(ctx, "ask", nil, nil).Error() }()
	var sent struct{ ID int64 }
	if err := json.Unmarshal([]byte(r.read()), &sent); err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := r.read(); !strings.Contains(got, `"$/cancelRequest"`) || !strings.Contains(got, "1000000002") {
		t.Errorf("cancelled call %d: %s", sent.ID, got)
	}
	<-got
}

// A peer that does not read blocks senders only until their context ends.
func TestPeerStopsReading(t *testing.T) {
	r, c := serve(t, echo, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	big := strings.Repeat("x", 100<<10)
	var err error
	for range 50 {
		if err = c.Notify(ctx, "flood", big); err != nil {
			break
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sending to a peer that does not read: %v", err)
	}
	if got := r.read(); !strings.Contains(got, "flood") {
		t.Errorf("after reading again: %.50s", got)
	}
}

// Over lines, requests may be answered from anywhere, in any order. The protocol decides the name
// of the cancellation and the form of ids.
func TestLines(t *testing.T) {
	in, toConn := io.Pipe()
	fromConn, out := io.Pipe()
	c := NewConn(in, out, Options{Codec: Lines, Decode: Decode, NoBatches: true, Cancel: "stop", CancelID: "call", FirstID: 1, Finish: true, MaxFrame: 1 << 20})
	kept := make(chan *Request, 1)
	c.Start(t.Context(), func(ctx context.Context, req *Request) (any, error) {
		switch req.Method {
		case "keep":
			context.AfterFunc(ctx, func() { req.Answer(nil, errors.New("stopped")) })
			return Deferred, nil
		case "ask":
			kept <- req
			return Deferred, nil
		}
		return req.Params, nil
	})
	t.Cleanup(func() {
		_ = toConn.Close()
		c.Close()
		_ = fromConn.Close()
		<-c.Done()
	})
	lines := bufio.NewReader(fromConn)
	for _, step := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1.5,"method":"echo","params":[1]}`, `{"jsonrpc":"2.0","id":1.5,"result":[1]}`},
		{`{"jsonrpc":"2.0","id":null,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"result":null}`},
		{`{"jsonrpc":"2.0","id":{},"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id must be a string, a number or null"}}`},
		{`{"jsonrpc":"2.0","id":7}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"method must be a non-empty string"}}`},
		{`[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message must be an object"}}`},
		{strings.Repeat("x", 2<<20), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the line is longer than 1 MiB"}}`},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"keep\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"stop\",\"params\":{\"call\":\"a\"}}", `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"stopped"}}`},
	} {
		go func() { _, _ = io.WriteString(toConn, step.in+"\n") }()
		if got, err := lines.ReadString('\n'); got != step.want+"\n" {
			t.Errorf("%.60s: %s, %v", step.in, got, err)
		}
	}
	// Answers after the end of the input are still written.
	_, _ = io.WriteString(toConn, `{"jsonrpc":"2.0","id":9,"method":"ask"}`+"\n")
	_ = toConn.Close()
	<-c.EOF()
	(<-kept).Answer("late", nil)
	if got, err := lines.ReadString('\n'); got != `{"jsonrpc":"2.0","id":9,"result":"late"}`+"\n" {
		t.Errorf("%s, %v", got, err)
	}
	if err := c.Call(t.Context(), "anything", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a call to a peer that has left: %v", err)
	}
}
