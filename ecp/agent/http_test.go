package agent_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/agent"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// site is an HTTP client of the agent.
type site struct {
	*httptest.Server
	t testing.TB
}

func (r *rig) site(o httpguard.Options) site {
	r.t.Helper()
	s := httptest.NewUnstartedServer(nil)
	o.Address = s.Listener.Addr().String()
	s.Config.Handler = r.agent.Handler(o)
	s.Start()
	r.t.Cleanup(s.Close)
	return site{s, r.t}
}

// answer is an HTTP response of the agent.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s site) do(method, path, body string, header map[string]string) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(raw)}
}

const (
	resetCall = `{"jsonrpc": "2.0", "method": "agent/reset", "params": {}, "id": 1}`
	resetNote = `{"jsonrpc": "2.0", "method": "agent/reset"}`
	isTrue    = `{"jsonrpc":"2.0","id":1,"result":true}`
)

// The HTTP statuses (docs/contracts/ecp.md 1.6).
func TestHTTPStatus(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	s := r.site(httpguard.Options{Origins: []string{"https://good.example"}, Hosts: []string{"eval.example"}})
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, c := range []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
		want                     string // the beginning of the body
	}{
		{"call", "POST", "/ecp", resetCall, nil, 200, isTrue},
		{"as the reference calls", "POST", "/ecp", resetCall, map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}, 200, isTrue},
		{"query", "POST", "/ecp?x=1", resetCall, nil, 200, isTrue},
		{"charset", "POST", "/ecp", resetCall, map[string]string{"Content-Type": "application/json; charset=utf-8"}, 200, isTrue},
		{"events only", "POST", "/ecp", resetCall, map[string]string{"Accept": "text/event-stream"}, 200, "event: message\ndata: " + isTrue + "\n\n"},
		{"anything", "POST", "/ecp", resetCall, map[string]string{"Accept": "*/*"}, 200, isTrue},
		{"not acceptable", "POST", "/ecp", resetCall, map[string]string{"Accept": "text/html"}, 406, ""},
		{"unwanted", "POST", "/ecp", resetCall, map[string]string{"Accept": "application/json;q=0, text/html"}, 406, ""},
		{"other content", "POST", "/ecp", resetCall, map[string]string{"Content-Type": "text/plain"}, 415, ""},
		{"notification", "POST", "/ecp", resetNote, nil, 202, ""},
		{"unknown notification", "POST", "/ecp", `{"jsonrpc":"2.0","method":"x"}`, nil, 202, ""},
		{"answer", "POST", "/ecp", isTrue, nil, 202, ""},
		{"notification, events only", "POST", "/ecp", resetNote, map[string]string{"Accept": "text/event-stream"}, 202, ""},
		{"batch", "POST", "/ecp", "[" + resetCall + "," + resetNote + "]", nil, 200, "[" + isTrue + "]"},
		{"batch of notifications", "POST", "/ecp", "[" + resetNote + "]", nil, 202, ""},
		{"empty batch", "POST", "/ecp", "[]", nil, 200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{"no JSON", "POST", "/ecp", "{", nil, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"no UTF-8", "POST", "/ecp", "\"\xff\"", nil, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"no JSON, events only", "POST", "/ecp", "{", map[string]string{"Accept": "text/event-stream"}, 400, `{"jsonrpc"`},
		{"nothing", "POST", "/ecp", "", nil, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"unknown method", "POST", "/ecp", `{"jsonrpc":"2.0","method":"x","id":1}`, nil, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601`},
		{"too long", "POST", "/ecp", `"` + strings.Repeat("x", agent.MaxMessage), nil, 413, ""},
		{"GET", "GET", "/ecp", "", map[string]string{"Accept": "text/event-stream"}, 405, ""},
		{"DELETE", "DELETE", "/ecp", "", nil, 405, ""},
		{"PUT", "PUT", "/ecp", resetCall, nil, 405, ""},
		{"HEAD", "HEAD", "/ecp", "", nil, 405, ""},
		{"other path", "POST", "/", resetCall, nil, 404, ""},
		{"slash", "POST", "/ecp/", resetCall, nil, 404, ""},
		{"foreign origin", "POST", "/ecp", resetCall, map[string]string{"Origin": "https://evil.example"}, 403, ""},
		{"other port", "POST", "/ecp", resetCall, map[string]string{"Origin": "http://localhost:1"}, 403, ""},
		{"origin null", "POST", "/ecp", resetCall, map[string]string{"Origin": "null"}, 403, ""},
		{"own origin", "POST", "/ecp", resetCall, map[string]string{"Origin": "http://localhost:" + port}, 200, isTrue},
		{"origin that may", "POST", "/ecp", resetCall, map[string]string{"Origin": "https://good.example"}, 200, isTrue},
		{"may it?", "OPTIONS", "/ecp", "", map[string]string{"Origin": "https://good.example", "Access-Control-Request-Method": "POST"}, 204, ""},
		{"it may not", "OPTIONS", "/ecp", "", map[string]string{"Origin": "https://evil.example"}, 403, ""},
		{"OPTIONS of nobody", "OPTIONS", "/ecp", "", nil, 405, ""},
		{"rebound name", "POST", "/ecp", resetCall, map[string]string{"Host": "evil.example"}, 403, ""},
		{"rebound name with port", "POST", "/ecp", resetCall, map[string]string{"Host": "evil.example:" + port}, 403, ""},
		{"name that may", "POST", "/ecp", resetCall, map[string]string{"Host": "eval.example"}, 200, isTrue},
		{"localhost", "POST", "/ecp", resetCall, map[string]string{"Host": "LOCALHOST:" + port}, 200, isTrue},
		{"address", "POST", "/ecp", resetCall, map[string]string{"Host": "[::1]:" + port}, 200, isTrue},
		{"other address", "POST", "/ecp", resetCall, map[string]string{"Host": "10.0.0.1"}, 403, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.do(c.method, c.path, c.body, c.header)
			if a.status != c.status || !strings.HasPrefix(a.body, c.want) || c.status == 202 && a.body != "" {
				t.Errorf("%d %s, not %d %s", a.status, a.body, c.status, c.want)
			}
			if c.status == 405 && a.header.Get("Allow") != "POST" {
				t.Errorf("Allow is %q", a.header.Get("Allow"))
			}
			if a.header.Get("Content-Encoding") != "" || c.status == 403 && a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%v", a.header)
			}
		})
	}
}

// Every call requires the token.
func TestHTTPToken(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	s := r.site(httpguard.Options{Token: "let-me-in"})
	for header, status := range map[string]int{"": 401, "Bearer let-me": 401, "let-me-in": 401, "Bearer let-me-in": 200} {
		if a := s.do("POST", "/ecp", resetCall, map[string]string{"Authorization": header}); a.status != status {
			t.Errorf("%q: %d", header, a.status)
		}
	}
}

// A step over HTTP, as JSON and as an event.
func TestHTTPStep(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: hello ä}]}"})
	s := r.site(httpguard.Options{})
	call := `{"jsonrpc":"2.0","method":"agent/step","params":{"input":"hi"},"id":7}`
	for accept, prefix := range map[string]string{"application/json": "", "text/event-stream": "event: message\ndata: "} {
		a := s.do("POST", "/ecp", call, map[string]string{"Accept": accept})
		body, ok := strings.CutPrefix(a.body, prefix)
		res, err := ecp.ParseResponse([]byte(strings.TrimSpace(body)))
		if err != nil || !ok || !res.Answers([]byte("7")) || a.header.Get("Content-Type") != accept {
			t.Fatalf("%v: %+v", err, a)
		}
		if step := checkComplete(t, res.Result); *step.PublicOutput != "hello ä" {
			t.Errorf("%+v", step)
		}
	}
}

// A client that disconnects during a step stops it, and the next client is served.
func TestHTTPClientDisconnects(t *testing.T) {
	r := newRig(t, options{model: "turns:\n  - {user: hang, steps: [{text: \"x \", hang: true}]}\n  - {user: next, steps: [{text: served}]}\n"})
	s := r.site(httpguard.Options{})
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/ecp", strings.NewReader(`{"jsonrpc":"2.0","method":"agent/step","params":{"input":"hang"},"id":1}`))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if res, err := s.Client().Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	r.awaitRequest()
	leave()
	<-left
	checkContains(t, s.do("POST", "/ecp", `{"jsonrpc":"2.0","method":"agent/step","params":{"input":"next"},"id":2}`, nil).body, `"public_output":"served"`)
}

// A client that stops in the middle of a message blocks no others.
func TestHTTPStalledClient(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	s := r.site(httpguard.Options{})
	conn, err := net.DialTimeout("tcp", s.Listener.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /ecp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if a := s.do("POST", "/ecp", resetCall, nil); a.body != isTrue {
		t.Errorf("%+v", a)
	}
}

// A chunked body is read, unlike in the reference.
func TestHTTPChunks(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	s := r.site(httpguard.Options{})
	res, err := s.Client().Post(s.URL+"/ecp", "application/json", io.MultiReader(strings.NewReader(resetCall[:10]), strings.NewReader(resetCall[10:])))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != isTrue {
		t.Errorf("%s, %v", body, err)
	}
}

// The agent disconnects a client that stops in the middle of a message within two minutes.
func TestHTTPHalfAMessage(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	for want, token := range map[string]string{"400": "let-me-in", "401": "let-others-in"} {
		answer, after := testkit.Stalled(t, &http.Server{Handler: r.agent.Handler(httpguard.Options{Token: token})}, "POST /ecp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer let-me-in\r\nContent-Length: 1000\r\n\r\n{")
		if !strings.HasPrefix(answer, "HTTP/1.1 "+want) || after > 2*time.Minute {
			t.Errorf("%s: %q after %s", want, answer, after)
		}
	}
}
