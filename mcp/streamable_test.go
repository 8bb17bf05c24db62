package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
)

// scriptedHTTP is a server over Streamable HTTP. The test provides its tools/call and GET streams.
type scriptedHTTP struct {
	*httptest.Server
	call, get http.HandlerFunc

	mu    sync.Mutex // guards the fields below
	calls []message
	heard []message // all except calls
}

func newScriptedHTTP(t *testing.T, call, get http.HandlerFunc) *scriptedHTTP {
	t.Helper()
	s := &scriptedHTTP{call: call, get: get}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *scriptedHTTP) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		s.get(w, req)
		return
	}
	var m message
	body, _ := io.ReadAll(req.Body)
	_ = json.Unmarshal(body, &m)
	s.mu.Lock()
	if m.Method == "tools/call" {
		s.calls = append(s.calls, m)
	} else {
		s.heard = append(s.heard, m)
	}
	s.mu.Unlock()
	result := `{}`
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "the-session")
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"r","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		s.call(w, req)
		return
	}
	if len(m.ID) == 0 || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// last returns the id of the last call.
func (s *scriptedHTTP) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.calls[len(s.calls)-1].ID)
}

func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, text)
	w.(http.Flusher).Flush()
}

func noStream(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }

// A stream that ends before its answer is resumed at its position, as often as it delivers
// something.
func TestResume(t *testing.T) {
	var s *scriptedHTTP
	var mu sync.Mutex
	var from []string
	s = newScriptedHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		stream(w, "id: e1\nretry: 10\ndata: \n\n")
		if strings.Contains(s.last(), "0") {
			panic(http.ErrAbortHandler)
		}
	}, func(w http.ResponseWriter, req *http.Request) {
		id := req.Header.Get("Last-Event-ID")
		if id == "" {
			noStream(w, req)
			return
		}
		mu.Lock()
		from = append(from, id)
		mu.Unlock()
		if req.Header.Get("Mcp-Session-Id") != "the-session" || req.Header.Get("Mcp-Protocol-Version") != "2025-11-25" {
			t.Errorf("the headers: %v", req.Header)
		}
		switch id {
		case "e1":
			stream(w, "id: e2\nretry: 20\ndata: {\"method\":\"notifications/progress\",\"params\":{}}\n\n")
		case "e2":
			stream(w, "id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+s.last()+",\"result\":"+textResult("after all")+"}\n\n")
		}
	})
	r := newRig(t, map[string]string{"s": s.URL})
	r.await("s", Running)
	if got := r.text("s", "t", `{}`); got != "after all" {
		t.Error(got)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(from, " "); got != "e1 e2" {
		t.Errorf("resumed from %s", got)
	}
}

// A stream that cannot be resumed, or delivers nothing more, ends its call with a reason. The next
// call still reaches the server.
func TestNoResume(t *testing.T) {
	for name, c := range map[string]struct {
		first string
		get   http.HandlerFunc
		why   string
	}{
		"no id":    {": hello\n\n", noStream, "the stream ended before the answer: EOF"},
		"refused":  {"id: 1\nretry: 10\ndata: \n\n", noStream, "could not be resumed: the server answered HTTP 405"},
		"no news":  {"id: 1\nretry: 10\ndata: \n\n", func(w http.ResponseWriter, _ *http.Request) { stream(w, "") }, "did not continue"},
		"no event": {"id: 1\nretry: 10\ndata: \n\n", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "not an event stream"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScriptedHTTP(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, c.first) }, func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Last-Event-ID") == "" {
					noStream(w, req)
					return
				}
				c.get(w, req)
			})
			r := newRig(t, map[string]string{"s": s.URL})
			r.await("s", Running)
			for range 2 {
				if _, err := r.call("s", "t", `{}`); err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "gone") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// A server's request on the stream of a call is answered while the call runs, also with the older
// transport.
func TestServerAsksOverHTTP(t *testing.T) {
	var s *scriptedHTTP
	pong := make(chan struct{})
	s = newScriptedHTTP(t, func(w http.ResponseWriter, req *http.Request) {
		stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"theirs\",\"method\":\"ping\"}\n\n")
		select {
		case <-pong:
		case <-req.Context().Done():
		}
		stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":"+s.last()+",\"result\":"+textResult("asked")+"}\n\n")
	}, noStream)
	hear := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		hear.ServeHTTP(w, req)
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.heard); n > 0 && string(s.heard[n-1].ID) == `"theirs"` && string(s.heard[n-1].Result) == `{}` {
			select {
			case <-pong:
			default:
				close(pong)
			}
		}
	})
	r := newRig(t, map[string]string{"s": s.URL})
	r.await("s", Running)
	if got := r.text("s", "t", `{}`); got != "asked" {
		t.Error(got)
	}

	older := newRemote(t, "sse")
	o := newRig(t, map[string]string{"s": older.URL + "/sse"})
	o.await("s", Running)
	older.stream <- `{"jsonrpc":"2.0","id":"theirs","method":"ping"}`
	late := deadline(t)
	for !strings.HasSuffix(older.methods(), " ") { // an answer has no method
		select {
		case <-late:
			t.Fatalf("heard: %q", older.methods())
		case <-time.After(time.Millisecond):
		}
	}
}

// A server reports lost sessions in one of several ways; the call is repeated with a new session.
func TestLostSession(t *testing.T) {
	for name, refuse := range map[string]http.HandlerFunc{
		"404": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Session not found", http.StatusNotFound) },
		"400 in JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s *scriptedHTTP
			s = newScriptedHTTP(t, func(w http.ResponseWriter, req *http.Request) {
				s.mu.Lock()
				n := len(s.calls)
				s.mu.Unlock()
				if n == 1 {
					refuse(w, req)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, s.last(), textResult("in a new session"))
			}, noStream)
			r := newRig(t, map[string]string{"s": s.URL})
			r.await("s", Running)
			if got := r.text("s", "t", `{}`); got != "in a new session" {
				t.Error(got)
			}
		})
	}
}

// The older transport sends messages to the server's own host only.
func TestForeignEndpoint(t *testing.T) {
	for data, why := range map[string]string{
		"event: endpoint\ndata: http://elsewhere.example/messages\n\n": "another host",
		"event: message\ndata: {}\n\n":                                 "does not begin with an endpoint",
		"":                                                             "EOF",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method != http.MethodGet {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			stream(w, data)
		}))
		older := newRig(t, nil)
		older.m.Apply(Settings{}, map[string]config.MCPServer{"s": {URL: server.URL}})
		s := older.await("s", Failed)
		if !strings.Contains(s.Reason, "HTTP 404") { // the reason of the first way counts
			t.Errorf("%s: %+v", why, s)
		}
		if log := older.log.String(); !strings.Contains(log, why) {
			t.Errorf("%q is not in the log:\n%s", why, log)
		}
		older.m.Close()
		server.Close()
	}
}

// A configured version is the only one that is spoken.
func TestConfiguredVersion(t *testing.T) {
	s := newScriptedHTTP(t, noStream, noStream)
	r := newRig(t, nil)
	r.m.Apply(Settings{}, map[string]config.MCPServer{
		"old": {URL: s.URL, ProtocolVersion: "2025-03-26"}, "new": {URL: s.URL, ProtocolVersion: "2026-07-28"},
		"modern": {Command: "both", ProtocolVersion: "2026-07-28"},
	})
	r.await("old", Running)
	r.await("new", Running) // the fake answers any request
	if got := r.await("modern", Running); got.Offer.Protocol != "2026-07-28" {
		t.Errorf("offer: %+v", got.Offer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	greeted := 0
	for _, m := range s.heard {
		if m.Method == "initialize" {
			greeted++
		}
	}
	if greeted != 1 {
		t.Errorf("%d handshakes", greeted)
	}
}
