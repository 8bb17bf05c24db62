package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

// remote is an MCP server over HTTP that behaves well or badly.
type remote struct {
	*httptest.Server
	mode string

	mu          sync.Mutex // guards the fields below
	sessions    int
	session     string // the only valid one
	tokens      []string
	received    []string // methods
	stream      chan string
	closeStream chan struct{}
}

func newRemote(t *testing.T, mode string) *remote {
	t.Helper()
	r := &remote{mode: mode, stream: make(chan string, 10), closeStream: make(chan struct{})}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *remote) methods() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.received, " ")
}

func (r *remote) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.tokens = append(r.tokens, req.Header.Get("Authorization"))
	r.mu.Unlock()
	if r.mode == "login" {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://x/meta"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.mode == "forbidden" {
		http.Error(w, "this key\nmay not: hunter22", http.StatusForbidden)
		return
	}
	if r.mode == "page" {
		fmt.Fprint(w, "<html>hello</html>")
		return
	}
	switch req.Method {
	case http.MethodGet:
		r.serveStream(w, req)
	case http.MethodDelete:
		r.note("DELETE")
	case http.MethodPost:
		if r.mode == "sse" && req.URL.Path != "/messages" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		var m message
		body, _ := io.ReadAll(req.Body)
		if json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.note(m.Method)
		r.post(w, req, m)
	}
}

func (r *remote) note(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = append(r.received, method)
}

// serveStream serves the GET stream: notifications, or all messages for the older transport.
func (r *remote) serveStream(w http.ResponseWriter, req *http.Request) {
	if r.mode == "plain" {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.mode == "sse" {
		fmt.Fprint(w, "event: endpoint\ndata: /messages\n\n")
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case data := <-r.stream:
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
			w.(http.Flusher).Flush()
		case <-r.closeStream:
			return
		case <-req.Context().Done():
			return
		}
	}
}

func (r *remote) post(w http.ResponseWriter, req *http.Request, m message) {
	r.mu.Lock()
	known := req.Header.Get("Mcp-Session-Id") == r.session
	if m.Method == "initialize" {
		r.sessions++
		r.session = fmt.Sprint("session-", r.sessions)
		known = true
	}
	session := r.session
	r.mu.Unlock()
	if !known && r.mode != "sse" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if len(m.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var result string
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", session)
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"remote","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{}}},{"name":"drop","inputSchema":{}},{"name":"hang","inputSchema":{}},{"name":"busy","inputSchema":{}},{"name":"huge","inputSchema":{}},{"name":"forget","inputSchema":{}}]}`
	case "tools/call":
		switch m.Params.Name {
		case "drop":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\n")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "hang":
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-req.Context().Done()
			return
		case "busy":
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, "slow down")
			return
		case "huge":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: ")
			_, _ = io.CopyN(w, endless{}, 1<<30)
			return
		}
		result = textResult(m.Params.Name + " " + session)
	default:
		result = `{}`
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	if r.mode == "sse" {
		w.WriteHeader(http.StatusAccepted)
		r.stream <- answer
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, answer)
}

func TestRemote(t *testing.T) {
	for _, mode := range []string{"good", "plain", "sse"} {
		t.Run(mode, func(t *testing.T) {
			server := newRemote(t, mode)
			r := newRig(t, nil)
			r.m.Apply(Settings{}, map[string]config.MCPServer{"s": {URL: server.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer hunter22"}}})
			if s := r.await("s", Running); s.Offer.Server != "remote 1" || len(s.Offer.Tools) != 6 {
				t.Errorf("offer: %+v", s.Offer)
			}
			if got := r.text("s", "echo", `{}`); !strings.HasPrefix(got, "echo session-") {
				t.Error(got)
			}
			r.m.Close()
			server.mu.Lock()
			defer server.mu.Unlock()
			for _, token := range server.tokens {
				if token != "Bearer hunter22" {
					t.Errorf("a request came without its header: %v", server.tokens)
				}
			}
			if ended := strings.Contains(strings.Join(server.received, " "), "DELETE"); ended != (mode != "sse") {
				t.Errorf("heard: %v", server.received)
			}
		})
	}
}

// A refusal of the server has a readable reason.
func TestRemoteRefuses(t *testing.T) {
	for mode, want := range map[string]struct {
		state State
		why   string
	}{
		"login":     {NeedsLogin, "login"},
		"forbidden": {Failed, "HTTP 403: this key may not: ***"},
		"page":      {Failed, "which is not MCP"},
	} {
		server := newRemote(t, mode)
		r := newRig(t, map[string]string{"s": server.URL})
		if s := r.await("s", want.state); !strings.Contains(s.Reason, want.why) || strings.Contains(r.log.String(), "hunter22") {
			t.Errorf("%s: %+v\n%s", mode, s, r.log)
		}
		r.m.Close()
	}
}

// When a server has forgotten its session, eca opens a new one and repeats the call.
func TestRemoteForgets(t *testing.T) {
	server := newRemote(t, "plain")
	r := newRig(t, map[string]string{"s": server.URL})
	r.await("s", Running)
	server.mu.Lock()
	server.session = "other"
	server.mu.Unlock()
	if got := r.text("s", "echo", `{}`); got != "echo session-2" {
		t.Error(got)
	}
}

// A broken stream or an HTTP error ends its call but not the connection.
func TestRemoteDrops(t *testing.T) {
	server := newRemote(t, "good")
	r := newRig(t, map[string]string{"s": server.URL})
	r.await("s", Running)
	if _, err := r.call("s", "drop", `{}`); err == nil || !strings.Contains(err.Error(), "connection was lost") {
		t.Errorf("drop: %v", err)
	}
	if _, err := r.call("s", "busy", `{}`); err == nil || !strings.Contains(err.Error(), "the server answered HTTP 429: slow down. eca does not know") || strings.Contains(err.Error(), "lost") {
		t.Errorf("busy: %v", err)
	}
	if _, err := r.call("s", "huge", `{}`); err == nil {
		t.Error("a gigabyte was taken")
	}
	if got := r.text("s", "echo", `{}`); got != "echo session-1" {
		t.Error(got)
	}
	// Changed tools are announced over the stream.
	before := strings.Count(server.methods(), "tools/list")
	server.stream <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	r.until("the list", func() bool { return strings.Count(server.methods(), "tools/list") > before })
}

// The older transport has one stream. When it breaks, the server counts as gone and is started
// again.
func TestOlderTransportBreaks(t *testing.T) {
	server := newRemote(t, "sse")
	r := newRig(t, map[string]string{"s": server.URL + "/sse"})
	r.await("s", Running)
	close(server.closeStream)
	if s := r.await("s", Failed); !strings.Contains(s.Reason, "connection was lost") {
		t.Errorf("reason: %q", s.Reason)
	}
	server.mu.Lock()
	server.closeStream = make(chan struct{})
	server.mu.Unlock()
	r.fireTimers()
	r.await("s", Running)
}

// An abandoned call is cancelled at the server, over HTTP too.
func TestRemoteCancel(t *testing.T) {
	server := newRemote(t, "good")
	r := newRig(t, nil)
	r.m.Apply(Settings{}, map[string]config.MCPServer{"s": {URL: server.URL, CallTimeoutSeconds: 0.1}})
	r.await("s", Running)
	if _, err := r.tool("s", "hang").Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{}`)}, nil); err == nil || !strings.Contains(err.Error(), "said nothing") {
		t.Errorf("hang: %v", err)
	}
	late := deadline(t)
	for !strings.Contains(server.methods(), "notifications/cancelled") {
		select {
		case <-late:
			t.Fatalf("heard: %s", server.methods())
		case <-time.After(time.Millisecond):
		}
	}
}

// Pings detect that a remote server is gone.
func TestKeepAlive(t *testing.T) {
	server := newRemote(t, "plain")
	r := newRig(t, map[string]string{"s": server.URL}, func(_ *rig, s *Settings) { s.KeepAlive = 5 * time.Millisecond })
	r.await("s", Running)
	server.CloseClientConnections()
	server.Listener.Close()
	if s := r.await("s", Failed); !strings.Contains(s.Reason, "no longer answers") {
		t.Errorf("reason: %q", s.Reason)
	}
}

// The host to which a server redirects gets neither the configured headers nor the server's address,
// which may contain a key.
func TestRedirectKeepsSecrets(t *testing.T) {
	var got http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &hostTransport{next: http.DefaultTransport, host: address.Host, headers: map[string]string{"X-Key": "secret"}}}
	resp, err := client.Post(server.URL+"/?api_key=secret", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	client.CloseIdleConnections()
	if text := fmt.Sprint(got); got == nil || strings.Contains(text, "secret") {
		t.Error(text)
	}
}
