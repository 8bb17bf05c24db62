package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/gateway"
)

// socket is a client over WebSocket.
type socket struct {
	t     testing.TB
	conn  *websocket.Conn
	check checker
}

func (r *rig) dial() *socket {
	r.t.Helper()
	server := httptest.NewServer(r.gateway.Socket())
	r.t.Cleanup(server.Close)
	conn, res, err := websocket.Dial(r.t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	r.t.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{t: r.t, conn: conn}
}

func (s *socket) say(text string) {
	s.t.Helper()
	if err := s.conn.Write(s.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) frame() e2a.Response {
	s.t.Helper()
	kind, text, err := s.conn.Read(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if kind != websocket.MessageText || !json.Valid(text) {
		s.t.Fatalf("%v %q", kind, text)
	}
	var f e2a.Response
	if err := json.Unmarshal(text, &f); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	if err := s.check.check(f); err != nil {
		s.t.Error(err)
	}
	return f
}

func (s *socket) readFinal() e2a.Response {
	s.t.Helper()
	for {
		if f := s.frame(); f.IsFinal {
			return f
		}
	}
}

// A connection still carries envelopes and frames after an invalid line. Its end stops its own
// turns, and not those of another connection.
func TestSocket(t *testing.T) {
	r := newRig(t, `
turns:
  - user: hang
    steps: [{text: "one two three four", delay: 1h}]
default: {steps: [{text: Hello.}]}
`)
	s := r.dial()
	s.say("no envelope")
	if got := code(t, s.readFinal()); got != "E2A.INVALID_JSON" {
		t.Error(got)
	}
	s.say(`{"request_id":"a","method":"chat.send","session_id":"one","params":{"text":"hi"}}`)
	if res := result(t, s.readFinal()); res["content"] != "Hello." {
		t.Errorf("%v", res)
	}
	other := r.dial()
	s.say(`{"request_id":"b","method":"chat.send","session_id":"one","params":{"text":"hang"}}`)
	for f := s.frame(); body(f.Body)["event_type"] != "turn_started"; f = s.frame() {
	}
	if err := s.conn.CloseNow(); err != nil {
		t.Fatal(err)
	}
	other.say(`{"request_id":"c","method":"chat.send","session_id":"two","params":{"text":"hi"}}`)
	if res := result(t, other.readFinal()); res["content"] != "Hello." {
		t.Errorf("%v", res)
	}
	for n, running := 0, true; running; n++ {
		other.say(fmt.Sprintf(`{"request_id":"d%d","method":"session.load","session_id":"one"}`, n))
		running = result(t, other.readFinal())["running"] == true
	}
}

// When the gateway closes, running work of a connection is answered before the connection ends, and
// Close waits for that.
func TestSocketEnds(t *testing.T) {
	r := newRig(t, hangs)
	s := r.dial()
	s.say(`{"request_id":"a","method":"chat.send","session_id":"one","params":{"text":"hang"}}`)
	<-r.Heard
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		r.turns.Close()
	}()
	if got := code(t, s.readFinal()); got != "E2A.DISCONNECTED" {
		t.Error(got)
	}
	if _, _, err := s.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the connection ends with %v", err)
	}
	<-closed
	server := httptest.NewServer(r.gateway.Socket())
	t.Cleanup(server.Close)
	res, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a closed gateway answers %s", res.Status)
	}
}

// A turn whose caller has left is stopped, whether the gateway first notices the caller's end or
// that a frame cannot be sent.
func TestTurnStopsWhenItsCallerLeaves(t *testing.T) {
	r := newRig(t, hangs)
	run := func(ctx context.Context, line string, send gateway.Send) {
		t.Helper()
		e, err := e2a.DecodeEnvelope([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.gateway.Run(ctx, e, send, func() {}) // ends with its caller
	}
	for n := range 12 {
		ctx, leave := context.WithCancel(t.Context())
		run(ctx, fmt.Sprintf(`{"request_id":"a%d","method":"chat.send","session_id":"one","params":{"text":"hi"}}`, n), func(f e2a.Response) error {
			if body(f.Body)["event_type"] == "progress" { // the last event before the model's output
				leave()
				time.Sleep(20 * time.Millisecond) // so that both can be noticed
			}
			return nil
		})
		leave()
		for end, running := time.Now().Add(time.Minute), true; running; {
			if time.Now().After(end) {
				t.Fatalf("round %d: the turn still runs", n)
			}
			run(t.Context(), `{"request_id":"b","method":"session.load","session_id":"one"}`, func(f e2a.Response) error {
				if f.IsFinal {
					running = result(t, f)["running"] == true
				}
				return nil
			})
		}
	}
}
