package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Fetching a page asks the user, and gives Markdown. Servers of this machine can only be reached if
// the user makes an exception.
func TestWebFetch(t *testing.T) {
	t.Parallel()
	asked := 0
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<h1>Title</h1><p>Some <b>text</b></p>")
	}))
	defer site.Close()
	model := fmt.Sprintf("cassette: 1\nturns:\n  - steps:\n      - calls: [{id: call_1, tool: eca__web_fetch, arguments: {url: %q}}]\n      - {text: Done.}\n", site.URL)
	r := newRig(t, options{model: model})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "trust": true})
	r.Await(0, "a refusal", fake.Content("toolCalled", `"error":true`, "not on the public internet", "toolCall.webFetch.privateHosts"))
	r.Await(0, "the end", fake.Finished())
	if asked != 0 {
		t.Fatal("the server was asked")
	}
	r = newRig(t, options{model: model, config: map[string]any{"toolCall": map[string]any{"webFetch": map[string]any{"privateHosts": []string{"127.0.0.1", "not a host"}}}}})
	r.Await(0, "the wrong entry", fake.Contains("$/showMessage", `toolCall.webFetch.privateHosts: \"not a host\" is not a host`))
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`, "Fetching "+site.URL))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
	r.Await(0, "the page", fake.Content("toolCalled", `"error":false`, `200 OK, text/html\n\n# Title\n\nSome **text**"`))
	r.Await(0, "the end", fake.Finished())
	bodies := r.bodies()
	if last := bodies[len(bodies)-1]; asked != 1 || !strings.Contains(last, `# Title`) {
		t.Errorf("asked %d times; the model got %s", asked, last)
	}
}

// The output of a long command is shown while it runs, without secrets, and is not stored.
func TestLiveOutput(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	r := newRig(t, options{
		model: `
cassette: 1
turns:
  - steps:
      - calls: [{id: call_1, tool: eca__shell_command, arguments: {timeout: 600000, command: "i=0; until [ -e go ]; do i=$((i+1)); echo line $i sk-mo''ck-0123456789; sleep 0.1; done"}}]
      - {text: Done.}
`, config: map[string]any{"providers": map[string]any{"mock": map[string]any{"key": "sk-mock-0123456789"}}},
	})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "trust": true})
	r.Await(0, "a line", fake.Content("progress", `"text":"Calling tool: line `, "[REDACTED]"))
	r.save(t, filepath.Join(r.root, "go"), "")
	r.Await(0, "the end", fake.Finished())
	for _, m := range r.Since(0) {
		if strings.Contains(string(m.Params), "sk-mock-0123456789") {
			t.Errorf("the client was told %s", m.Params)
		}
	}
	if history := string(r.Call("chat/history", map[string]any{"chatId": "c"})); strings.Contains(history, "Calling tool: line") {
		t.Errorf("stored: %s", history)
	}
}

// A user's own tool gets its arguments unchanged. A tool that is unsafe to offer, or has the name
// of a native one, is left out and named.
func TestCustomTools(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	schema := map[string]any{"properties": map[string]any{"x": map[string]any{"type": "string"}}, "required": []string{"x"}}
	r := newRig(t, options{
		model: `
cassette: 1
turns:
  - steps:
      - calls: [{id: call_1, tool: eca__shout, arguments: {x: "$(touch pwned); a 'b'"}}]
      - {text: Done.}
`, config: map[string]any{"customTools": map[string]any{
			"shout":     map[string]any{"description": "Shouts.", "command": `printf '%s!' "{{x}}"`, "schema": schema},
			"risky":     map[string]any{"description": "Risky.", "command": `sh -c "echo {{x}}"`, "schema": schema},
			"read_file": map[string]any{"description": "Not ours.", "command": "true", "schema": schema},
		}},
	})
	r.Await(0, "the risky one", fake.Contains("$/showMessage", "customTools.risky is left out: arguments would become code of sh"))
	r.Await(0, "the false one", fake.Contains("$/showMessage", "customTools.read_file is left out: a tool of eca has this name"))
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(0, "the question", fake.Content("toolCallRun", `"name":"shout"`, `"manualApproval":true`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
	r.Await(0, "its result", fake.Content("toolCalled", `"error":false`, `Stdout:\n$(touch pwned); a 'b'!`))
	r.Await(0, "the end", fake.Finished())
	if strings.Contains(tree(t, r.root), "pwned") {
		t.Error("an argument ran")
	}
	if body := r.bodies()[0]; strings.Contains(body, "eca__risky") || strings.Contains(body, "Not ours") {
		t.Error("the model was offered what is left out")
	}
}
