package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// mcpScript has the answers of an MCP server, read from a scenario's mcp.json: results by method; a
// method's prompts, resources and tools have results by name or address. A tool's "asks" are the
// server's requests before its answer; "$ANSWERS" in its result is replaced by their answers.
type mcpScript struct {
	Initialize json.RawMessage            `json:"initialize"`
	Lists      map[string]json.RawMessage `json:"lists"`
	Prompts    map[string]json.RawMessage `json:"prompts"`
	Resources  map[string]json.RawMessage `json:"resources"`
	Tools      map[string]struct {
		Asks   []json.RawMessage `json:"asks"`
		Result json.RawMessage   `json:"result"`
	} `json:"tools"`
}

// scripted is an MCP server over Streamable HTTP that plays a script.
type scripted struct {
	script mcpScript
	t      *testing.T

	mu      sync.Mutex // guards the fields below
	heard   []string
	more    chan struct{}                   // closed and replaced for each received message
	answers map[string]chan json.RawMessage // to the server's requests, by id
	last    int
	probes  int // of the newest version of the protocol
}

// scriptedMCP starts the server of a script, if there is one, and adds its address to the
// configuration.
func scriptedMCP(t *testing.T, script string, config map[string]any) *scripted {
	t.Helper()
	s := &scripted{t: t, more: make(chan struct{}), answers: map[string]chan json.RawMessage{}}
	if script == "" {
		return s
	}
	if err := json.Unmarshal([]byte(script), &s.script); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	servers, _ := config["mcpServers"].(map[string]any)
	for _, c := range servers {
		if c, _ := c.(map[string]any); c["url"] == "$MCP" {
			c["url"] = h.URL
		}
	}
	return s
}

// conversation returns the server's received messages, one per line, without those that are not
// about its use.
func (s *scripted) conversation() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.heard, "")
}

// await waits until the server has received a text.
func (s *scripted) await(text string) {
	s.t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		s.mu.Lock()
		more, heard := s.more, strings.Join(s.heard, "")
		s.mu.Unlock()
		if strings.Contains(heard, text) {
			return
		}
		select {
		case <-more:
		case <-late.C:
			s.t.Fatalf("the MCP server did not hear %q; it heard\n%s", text, heard)
		}
	}
}

type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name         string          `json:"name"`
		URI          string          `json:"uri"`
		Arguments    json.RawMessage `json:"arguments,omitempty"`
		Capabilities json.RawMessage `json:"capabilities"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// ServeHTTP implements http.Handler.
func (s *scripted) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var m mcpMessage
	body, _ := io.ReadAll(req.Body)
	if req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := json.Unmarshal(body, &m); err != nil {
		s.t.Errorf("the MCP server was sent %s: %v", body, err)
	}
	s.note(m)
	switch {
	case m.Method == "": // an answer from eca
		if ch := s.waiter(string(m.ID)); ch != nil {
			if m.Result == nil {
				m.Result = m.Error
			}
			ch <- m.Result
		}
		w.WriteHeader(http.StatusAccepted)
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call" && len(s.script.Tools[m.Params.Name].Asks) > 0:
		s.ask(w, req, m)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.answer(m))
	}
}

// note keeps the messages about the server's use.
func (s *scripted) note(m mcpMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		close(s.more)
		s.more = make(chan struct{})
	}()
	switch m.Method {
	case "server/discover":
		s.probes++
	case "initialize":
		s.heard = append(s.heard, fmt.Sprintf("initialize %s\n", m.Params.Capabilities))
	case "tools/call", "prompts/get":
		s.heard = append(s.heard, fmt.Sprintf("%s %s %s\n", m.Method, m.Params.Name, m.Params.Arguments))
	case "notifications/roots/list_changed":
		s.heard = append(s.heard, m.Method+"\n")
	case "":
		s.heard = append(s.heard, fmt.Sprintf("answer %s%s\n", m.Result, m.Error))
	}
}

func (s *scripted) waiter(id string) chan json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.answers[id]
	delete(s.answers, id)
	return ch
}

// answer answers a request at once.
func (s *scripted) answer(m mcpMessage) string {
	var result json.RawMessage
	switch m.Method {
	case "initialize":
		result = s.script.Initialize
	case "prompts/get":
		result = s.script.Prompts[m.Params.Name]
	case "resources/read":
		result = s.script.Resources[m.Params.URI]
	case "tools/call":
		result = s.script.Tools[m.Params.Name].Result
	case "ping":
		result = json.RawMessage(`{}`)
	default:
		result = s.script.Lists[m.Method]
	}
	if result == nil {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"there is none"}}`, m.ID)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// ask sends the requests of the script to eca, one after the other, and then answers the call.
func (s *scripted) ask(w http.ResponseWriter, req *http.Request, m mcpMessage) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(text string) {
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(text)); err != nil {
			s.t.Error(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", line.Bytes())
		w.(http.Flusher).Flush()
	}
	tool := s.script.Tools[m.Params.Name]
	var answers []string
	for _, asked := range tool.Asks {
		ch := make(chan json.RawMessage, 1)
		s.mu.Lock()
		s.last++
		id := fmt.Sprintf(`"ask-%d"`, s.last)
		s.answers[id] = ch
		s.mu.Unlock()
		send(`{"jsonrpc":"2.0","id":` + id + "," + strings.TrimPrefix(strings.TrimSpace(string(asked)), "{"))
		select {
		case a := <-ch:
			answers = append(answers, string(a))
		case <-req.Context().Done():
			return
		}
	}
	quoted, err := json.Marshal(strings.Join(answers, " "))
	if err != nil {
		s.t.Error(err)
	}
	result := strings.ReplaceAll(string(tool.Result), `"$ANSWERS"`, string(quoted))
	send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}
