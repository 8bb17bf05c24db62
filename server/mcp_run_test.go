package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/mcp"
)

// mcpServer is a remote MCP server. A call of its tool change changes its list of tools.
type mcpServer struct {
	*httptest.Server

	mu     sync.Mutex // guards the fields below
	extra  bool
	lists  int
	calls  []string
	stream chan string

	relisted chan struct{} // closed when the changed tools are listed
	once     sync.Once
}

func newMCPServer(t *testing.T) *mcpServer {
	t.Helper()
	s := &mcpServer{stream: make(chan string, 1), relisted: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (s *mcpServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for {
			select {
			case data := <-s.stream:
				fmt.Fprintf(w, "data: %s\n\n", data)
				w.(http.Flusher).Flush()
			case <-req.Context().Done():
				return
			}
		}
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	body, _ := io.ReadAll(req.Body)
	if json.Unmarshal(body, &m) != nil || len(m.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, s.answer(m.Method, m.Params.Name, string(m.Params.Arguments)))
}

func (s *mcpServer) answer(method, name, args string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "initialize":
		return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"t","version":"1"},"instructions":"Be brief."}`
	case "tools/list":
		s.lists++
		if s.extra {
			s.once.Do(func() {
				close(s.relisted) // the call is answered first, and the turn has to wait for this list
				s.mu.Unlock()
				time.Sleep(300 * time.Millisecond)
				s.mu.Lock()
			})
		}
		list := []string{}
		for _, tool := range []string{"look", "long", "change", "hidden", "extra"} {
			if tool != "extra" || s.extra {
				list = append(list, `{"name":"`+tool+`","description":"To `+tool+`.","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}}}`)
			}
		}
		return `{"tools":[` + strings.Join(list, ",") + `]}`
	case "tools/call":
		s.calls = append(s.calls, name+" "+args)
		switch name {
		case "look":
			return `{"content":[{"type":"text","text":"seen"},{"type":"image","mimeType":"image/png","data":"` + onePixel + `"},{"type":"resource","resource":{"uri":"file:///a","text":"inner"}},{"type":"resource_link","uri":"file:///b","name":"b"}]}`
		case "long":
			return `{"content":[{"type":"text","text":"` + strings.Repeat(`line\n`, 5000) + `the end"}],"isError":true}`
		case "change":
			s.extra = true
			s.stream <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
			s.mu.Unlock()
			select { // the call is answered once the client has listed the tools again
			case <-s.relisted:
			case <-time.After(30 * time.Second):
			}
			s.mu.Lock()
		}
		return `{"content":[]}`
	}
	return `{}`
}

const mcpTape = `
cassette: 1
turns:
  - steps:
      - calls:
          - {id: c2, tool: files__look, arguments: {q: "y"}}
          - {id: c3, tool: files__long, arguments: {}}
      - {text: "Fine."}
  - steps:
      - calls: [{id: c4, tool: files__change, arguments: {}}]
      - {text: "Changed."}
  - {steps: [{text: "Now."}]}
`

// offered lists the tools of MCP servers in the last request to the model.
func (r *rig) offered() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var body struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(r.requests[len(r.requests)-1].body, &body); err != nil {
		return err.Error()
	}
	var out []string
	for _, tool := range body.Tools {
		if !strings.HasPrefix(tool.Name, "eca__") {
			out = append(out, tool.Name)
		}
	}
	return strings.Join(out, " ")
}

// The tools of a server are offered, judged, called and shown like other tools.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	server := newMCPServer(t)
	r := newRig(t, options{model: mcpTape, config: map[string]any{
		"mcpServers":    map[string]any{"files": map[string]any{"url": server.URL}},
		"disabledTools": []any{"files__hidden"},
		"toolCall":      map[string]any{"approval": map[string]any{"allow": map[string]any{"files__long": map[string]any{}, "files__change": map[string]any{}}}},
	}})
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "it runs", fake.Contains("tool/serverUpdated", `"name":"files","status":"running"`, `"instructions":"Be brief."`,
		`{"name":"look","description":"To look.","parameters":{"type":"object","properties":{"q":{"type":"string"}}},"disabled":false}`, `"name":"hidden"`, `"disabled":true}]`))
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "look"})
	r.Await(mark, "a question", fake.Contains("chat/contentReceived", `"toolCallRun"`, `"id":"c2"`, `"server":"files"`, `"origin":"mcp"`, `"name":"look"`, `"manualApproval":true`, `"summary":"files: look`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "c2"})
	r.Await(mark, "the result", fake.Contains("chat/contentReceived", `"toolCalled"`, `"id":"c2"`, `"error":null`, "seen", `inner`, "[resource file:///b: b]"))
	r.Await(mark, "an error", fake.Contains("chat/contentReceived", `"toolCalled"`, `"id":"c3"`, `"error":true`, "The whole output is in "))
	r.Await(mark, "the end", fake.Finished())
	var where string
	for _, m := range r.Since(mark) {
		if found := regexp.MustCompile(`The whole output is in ([^;]+);`).FindStringSubmatch(m.String()); found != nil {
			where = found[1]
		}
	}
	if whole, err := os.ReadFile(where); err != nil || !strings.HasSuffix(string(whole), "the end") {
		t.Errorf("the whole output: %d bytes, %v", len(whole), err)
	}
	const before = "files__change files__long files__look"
	if got := r.offered(); got != before {
		t.Errorf("offered: %s", got)
	}

	// Tools that a call adds can be used in the same turn.
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "change"})
	r.Await(mark, "the end", fake.Finished())
	if got := r.offered(); got != "files__change files__extra files__long files__look" {
		t.Errorf("offered in the turn in which they changed: %s", got)
	}
	r.Await(mark, "the new tool", fake.Contains("tool/serverUpdated", `"name":"files","status":"running"`, `"name":"extra"`))
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "now"})
	r.Await(mark, "the end", fake.Finished())
	if got := r.offered(); got != "files__change files__extra files__long files__look" {
		t.Errorf("offered in the next turn: %s", got)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if got := strings.Join(server.calls, "|"); got != `look {"q":"y"}|long {}|change {}` && got != `long {}|look {"q":"y"}|change {}` {
		t.Errorf("calls: %s", got)
	}
}

// Each request about a server leads to the status that it asks for, and a removed server disappears.
//
// Covers: mcp/startServer, mcp/stopServer
func TestMCPServerStatus(t *testing.T) {
	t.Parallel()
	server := newMCPServer(t)
	r := newRig(t, options{state: tempDir(t)})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.Call("mcp/addServer", map[string]any{"name": "s", "url": server.URL})
	r.Await(mark, "it runs", fake.Contains("tool/serverUpdated", `"name":"s","status":"running"`, `"name":"look"`))
	for _, step := range []struct{ method, status string }{
		{"mcp/stopServer", "stopped"},
		{"mcp/startServer", "running"},
		{"mcp/disableServer", "disabled"},
		{"mcp/startServer", "running"},
		{"mcp/enableServer", "running"},
		{"mcp/stopServer", "stopped"},
		{"mcp/connectServer", "running"},
	} {
		mark = r.Mark()
		r.Notify(step.method, map[string]any{"name": "s"})
		r.Await(mark, step.method, fake.Contains("tool/serverUpdated", `"name":"s","status":"`+step.status+`"`))
	}
	mark = r.Mark()
	r.Call("mcp/removeServer", map[string]any{"name": "s"})
	r.Await(mark, "the end", fake.Contains("tool/serverRemoved", `{"name":"s"}`))
	if got := len(r.daemon.Tools().All()); got == 0 {
		t.Error("removing the server also removed the native tools")
	}
}

// Requests take effect in their order: a server that is enabled and then stopped does not run.
func TestMCPRequestsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	server := newMCPServer(t)
	r := newRig(t, options{state: tempDir(t)})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.Call("mcp/addServer", map[string]any{"name": "s", "url": server.URL})
	r.Await(mark, "it runs", fake.Contains("tool/serverUpdated", `"name":"s","status":"running"`))
	for range 3 {
		for _, method := range []string{"mcp/disableServer", "mcp/enableServer", "mcp/stopServer"} {
			r.Notify(method, map[string]any{"name": "s"})
		}
	}
	mark = r.Mark()
	r.Call("mcp/addServer", map[string]any{"name": "later", "url": server.URL, "disabled": true})
	r.Call("mcp/removeServer", map[string]any{"name": "later"})
	for {
		status, _ := r.daemon.MCPStatus("s", "code")
		if status.State == mcp.Stopped {
			return
		}
		if status.State != mcp.Stopping {
			t.Fatalf("the server is %s", status.State)
		}
		r.Await(mark, "it is stopped", fake.Contains("tool/serverUpdated", `"name":"s","status":"stopped"`))
	}
}
