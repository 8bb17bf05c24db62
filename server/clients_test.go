package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

const day = `
cassette: 1
turns:
  - user: write
    steps:
      - text: "Writing."
        calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "x\n"}}]
      - {text: "Done."}
  - {user: slow, steps: [{text: "one two", hang: true}]}
  - {user: problems, steps: [{calls: [{id: call_2, tool: eca__editor_diagnostics, arguments: {}}]}, {text: "I see."}]}
  - {user: tools, steps: [{text: "These."}]}
`

// newDay returns a rig that has not started, with a file and an MCP server.
func newDay(t *testing.T) *rig {
	t.Helper()
	root := tempDir(t)
	write(t, root, map[string]string{"a.txt": "a\n"})
	r := newRig(t, options{root: root, model: day, closed: true, config: map[string]any{
		"mcpServers": map[string]any{"files": map[string]any{"command": "eca-no-such-server", "args": []any{"-y"}}},
	}})
	r.Answer("editor/getDiagnostics", r.result(`{"diagnostics":[{"uri":"file://$WS/a.txt","severity":"error","source":"lint","range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},"code":"wrong-args","message":"odd"}]}`))
	return r
}

// mayWrite reports whether the model's last request offered a tool that writes.
func (r *rig) mayWrite() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var body struct{ Tools []struct{ Name string } }
	err := json.Unmarshal(r.requests[len(r.requests)-1].body, &body)
	return err == nil && slices.ContainsFunc(body.Tools, func(tool struct{ Name string }) bool { return tool.Name == "eca__write_file" })
}

// A client that follows the first published protocol exactly: no chat ids of its own, the behaviour family of
// names, no server in tool calls.
//
// Covers: initialize, initialized, shutdown, exit, chat/queryCommands
func TestSeedClient(t *testing.T) {
	t.Parallel()
	r := newDay(t)
	res := r.Call("initialize", map[string]any{
		"processId": nil, "clientInfo": map[string]any{"name": "seed"},
		"initializationOptions": map[string]any{"chatBehavior": "plan"},
		"capabilities":          map[string]any{"codeAssistant": map[string]any{"chat": true, "editor": map[string]any{"diagnostics": true}}},
		"workspaceFolders":      []any{map[string]any{"uri": "file://" + r.root, "name": "ws"}},
	})
	if res[0] != '{' {
		t.Errorf("initialize answered %s", res)
	}
	r.Notify("initialized", map[string]any{})
	r.Await(0, "the configuration", fake.Contains("config/updated",
		`"behaviors":["code","plan"]`, `"selectBehavior":"plan"`, `"models":["mock/m"]`, `"selectModel":"mock/m"`, `"welcomeMessage":"`))
	r.Await(0, "the tools", fake.Contains("tool/serverUpdated", `"type":"native"`, `"name":"ECA"`, `"status":"running"`, `"name":"read_file"`))
	r.Await(0, "the MCP servers", fake.Contains("tool/serverUpdated", `"type":"mcp"`, `"name":"files"`, `"command":"eca-no-such-server"`, `"args":["-y"]`, `"status":"starting"`))

	// Its context and command queries.
	if got := r.query("chat/queryContext", map[string]any{"query": "", "contexts": []any{}}); got != "repoMap, cursor, directory $WS, file $WS/a.txt" {
		t.Errorf("contexts: %s", got)
	}
	if got := string(r.Call("chat/queryCommands", map[string]any{"query": "doct"})); !hasAll(got, []string{`"name":"doctor"`, `"type":"native"`, `"arguments":[`}) {
		t.Errorf("commands: %s", got)
	}

	// A turn with a tool.
	var prompted struct{ ChatID, Model, Status string }
	contexts := []any{map[string]any{"type": "file", "path": r.root + "/a.txt"}, map[string]any{"type": "repoMap"}}
	raw := r.Call("chat/prompt", map[string]any{"message": "write", "behavior": "agent", "model": "mock/m", "contexts": contexts})
	if err := json.Unmarshal(raw, &prompted); err != nil || prompted.ChatID == "" || prompted.Model != "mock/m" || prompted.Status != "prompting" {
		t.Fatalf("chat/prompt answered %s", raw)
	}
	prompt := func(text string) (mark int) {
		mark = r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": prompted.ChatID, "message": text, "behavior": "agent", "model": "mock/m", "contexts": []any{}})
		return mark
	}
	r.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`, `"type":"fileChange"`, `"origin":"native"`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": prompted.ChatID, "toolCallId": "call_1"})
	r.Await(0, "the end", fake.Content("progress", `"state":"finished"`, `"text":""`))
	if got := readFile(t, filepath.Join(r.root, "out.txt")); got != "x\n" {
		t.Errorf("the file: %q", got)
	}

	// It stops a turn, and answers requests about its editor.
	mark := prompt("slow")
	r.Await(mark, "text", fake.Content("text", "one"))
	r.Notify("chat/promptStop", map[string]any{"chatId": prompted.ChatID})
	r.Await(mark, "the end", fake.Finished())
	mark = prompt("problems")
	r.Await(mark, "the result", fake.Content("toolCalled", "a.txt:1:1: error: odd", `"error":false`))
	r.Await(mark, "the end", fake.Finished())
	// The edit asked about its file.
	if asked := r.requestParams("editor/getDiagnostics"); len(asked) == 0 || asked[len(asked)-1] != "{}" {
		t.Errorf("asked %v", asked)
	}

	// It changes the behaviour, also for prompts that do not name one.
	mark = prompt("tools")
	if r.Await(mark, "the end", fake.Finished()); !r.mayWrite() {
		t.Error("behavior agent may not write")
	}
	mark = r.Mark()
	r.Notify("chat/selectedBehaviorChanged", map[string]any{"behavior": "agent"})
	r.Await(mark, "agent", fake.Contains("config/updated", `"selectBehavior":"code"`))
	r.Notify("chat/selectedBehaviorChanged", map[string]any{"behavior": "plan"})
	r.Await(mark, "plan", fake.Contains("config/updated", `"selectBehavior":"plan"`))
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"message": "tools"})
	if r.Await(mark, "the end", fake.Finished()); r.mayWrite() {
		t.Error("behavior plan may write")
	}
	r.Notify("mcp/stopServer", map[string]any{"name": "files"})
	r.Await(mark, "the server", fake.Contains("tool/serverUpdated", `"name":"files"`))

	if string(r.Call("chat/delete", map[string]any{"chatId": prompted.ChatID})) != "{}" || string(r.Call("chat/delete", map[string]any{})) != "{}" {
		t.Error("chat/delete did not answer {}")
	}
	if string(r.Call("shutdown", nil)) != "null" {
		t.Error("shutdown did not answer null")
	}
	r.Notify("exit", nil)
}

// A client written to the current protocol.
//
// Covers: chat/prompt, chat/deleted
func TestCurrentClient(t *testing.T) {
	t.Parallel()
	r := newDay(t)
	r.Open(r.root, map[string]any{
		"initializationOptions": map[string]any{"chatAgent": nil},
		"capabilities": map[string]any{"codeAssistant": map[string]any{
			"chat": true, "chatCapabilities": map[string]any{"askQuestion": true}, "editor": map[string]any{"diagnostics": true},
		}},
	})
	r.Await(0, "the configuration", fake.Contains("config/updated", `"agents":["code","plan"]`, `"selectAgent":"code"`, `"selectVariant":null`, `"variants":[]`))
	r.Await(0, "the MCP servers", fake.Contains("tool/serverUpdated", `"name":"files"`, `"disabled":false`, `"hasAuth":false`))
	r.Await(0, "the start", fake.Ready())
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	if got := r.query("chat/queryContext", map[string]any{"chatId": id, "query": "a.t", "contexts": []any{map[string]any{"type": "cursor"}}}); got != id+":, file $WS/a.txt, repoMap, directory $WS" {
		t.Errorf("contexts: %s", got)
	}
	if got := r.query("chat/queryFiles", map[string]any{"chatId": id, "query": "a.t"}); got != id+":, file $WS/a.txt" {
		t.Errorf("files: %s", got)
	}
	if got := string(r.Call("chat/queryCommands", map[string]any{"chatId": id, "query": ""})); !hasAll(got, []string{`"chatId":"` + id + `"`, `"name":"doctor"`}) {
		t.Errorf("commands: %s", got)
	}

	// A turn with a tool that the user approves.
	mark := r.Mark()
	prompt := func(text string, more map[string]any) (mark int) {
		mark = r.Mark()
		p := map[string]any{"chatId": id, "message": text, "model": "mock/m", "agent": "code", "requestId": "0", "contexts": []any{map[string]any{"type": "cursor"}}}
		merge(p, more)
		if raw := string(r.Call("chat/prompt", p)); raw != `{"chatId":"`+id+`","model":"mock/m","status":"prompting"}` {
			t.Errorf("chat/prompt answered %s", raw)
		}
		return mark
	}
	prompt(" write ", nil)
	r.Await(mark, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": id, "toolCallId": "call_1", "save": "session"})
	r.Await(mark, "the end", fake.Finished())
	order := []string{`chat/opened`, `"text":"write\n"`, `"status":"running"`, `Waiting model`, `toolCallPrepare`, `"type":"usage"`, `toolCallRun"`, `Waiting for tool call approval`, `toolCallRunning`, `toolCalled`, `Done.`, `"status":"idle"`, `"finished"`}
	at := 0
	for _, m := range r.Since(mark) {
		if at < len(order) && strings.Contains(m.String(), order[at]) {
			at++
		}
	}
	if at < len(order) {
		t.Errorf("no %s in its place in:\n%v", order[at], r.Since(mark))
	}

	mark = prompt("slow", nil)
	r.Await(mark, "text", fake.Content("text", "one"))
	r.Notify("chat/promptStop", map[string]any{"chatId": id})
	r.Await(mark, "the end", fake.Finished())
	mark = prompt("problems", nil)
	r.Await(mark, "the result", fake.Content("toolCalled", "a.txt:1:1: error: odd"))
	r.Await(mark, "the end", fake.Finished())

	mark = r.Mark()
	r.Notify("chat/selectedAgentChanged", map[string]any{"chatId": id, "agent": "plan"})
	r.Await(mark, "the chat's model", fake.Contains("config/updated", `"chatId":"`+id+`"`, `"selectModel":"mock/m"`))
	r.Await(mark, "the tools", fake.Contains("tool/serverUpdated", `"name":"ECA"`))
	mark = prompt("tools", map[string]any{"agent": nil})
	if r.Await(mark, "the end", fake.Finished()); r.mayWrite() {
		t.Error("plan may write")
	}

	mark = r.Mark()
	if got := string(r.Call("chat/delete", map[string]any{"chatId": id})); got != "{}" || indexOf(r.Since(mark), "chat/deleted", id) < 0 {
		t.Errorf("chat/delete: %s, %v", got, r.Since(mark))
	}
	if _, order := listChats(t, r, nil); len(order) > 0 {
		t.Errorf("left: %v", order)
	}
	if string(r.Call("shutdown", map[string]any{})) != "null" {
		t.Error("shutdown did not answer null")
	}
	r.Notify("exit", nil)
}

// eca accepts unusual messages that editors really send (eca-recorded).
func TestClientTraits(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps:\n    - {text: hi}\nturns: []\n", closed: true})
	r.Call("initialize", map[string]any{
		"processId": nil, "clientInfo": map[string]any{"name": "emacs", "version": "GNU Emacs 28.2\n of 2025"}, "capabilities": map[string]any{"chat": map[string]any{}},
		"workspaceFolders": []any{map[string]any{"uri": "file://" + r.root, "name": "ws"}},
	})
	r.Notify("initialized", nil)
	for i, params := range []map[string]any{
		{"chatId": 1, "message": "neovim", "contexts": map[string]any{}},
		{"chat-id": "e", "message": "emacs", "request-id": 7, "contexts": []any{map[string]any{"type": "cursor", "path": nil, "position": nil}}, "variant": nil},
		{"chatId": "r", "message": "old neovim", "contexts": []any{map[string]any{"type": "repoMap", "path": "x", "content": "y"}}},
		{"message": "cli"},
	} {
		r.Call("chat/prompt", params)
		r.Await(0, "the end of "+fmt.Sprint(params["message"]), fake.Times(i+1, "chat/contentReceived", `"finished"`))
	}
	r.Await(0, "the chat of a number", fake.Contains("chat/opened", `{"chatId":"`))
	for _, method := range []string{"chat/promptStop", "chat/toolCallApprove", "chat/toolCallReject", "unknown/thing"} {
		r.Notify(method, map[string]any{"chatId": "nobody", "toolCallId": "x"})
		r.Notify(method, []any{})
	}
	if _, err := r.TryCall("unknown/thing", nil); err == nil || err.Error() != "Method not found" {
		t.Errorf("unknown method: %v", err)
	}
	if string(r.Call("shutdown", []any{})) != "null" {
		t.Error("shutdown with the params [] did not answer null")
	}
	if _, err := r.TryCall("chat/prompt", map[string]any{"message": "too late"}); err == nil {
		t.Error("a prompt after shutdown was accepted")
	}
}

func TestBadPrompts(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps:\n    - {text: hi}\nturns: []\n"})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	for _, params := range []any{nil, map[string]any{}, map[string]any{"message": nil}, map[string]any{"message": 7}, map[string]any{"message": "x", "chatId": map[string]any{}}} {
		if res, err := r.TryCall("chat/prompt", params); err == nil {
			t.Errorf("%v: %s", params, res)
		}
	}
	for _, id := range []string{"subagent-1", "a b", "a\tb", strings.Repeat("x", 257)} {
		res := r.Call("chat/prompt", map[string]any{"message": "x", "chatId": id})
		if !strings.Contains(string(res), `"status":"error"`) || !strings.Contains(string(res), `"model":"error"`) {
			t.Errorf("%.20q: %s", id, res)
		}
	}
	if heard := r.Since(mark); len(heard) > 0 {
		t.Errorf("bad prompts were shown: %v", heard)
	}
	res := r.Call("chat/prompt", map[string]any{"message": "x", "model": "nowhere/m"})
	if !strings.Contains(string(res), `"status":"error"`) {
		t.Errorf("unknown model: %s", res)
	}
	r.Await(mark, "the cause", fake.Content("text", "nowhere/m", `"role":"system"`))
	r.Await(mark, "the end", fake.Finished())
}

func TestBeforeInitialize(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{closed: true})
	if _, err := r.TryCall("chat/prompt", map[string]any{"message": "x"}); err == nil {
		t.Error("a prompt before initialize was accepted")
	}
	r.Open(r.root, nil)
	r.Await(0, "the start", fake.Contains("config/updated"))
	mark := r.Mark()
	// A second initialize applies again, and the changes are sent.
	r.Open(r.root, map[string]any{"initializationOptions": map[string]any{"welcomeMessage": "second"}})
	r.Await(mark, "the change", fake.Contains("config/updated", `"welcomeMessage":"second"`))
}

// Prompts and deletes of the same chat in quick succession: every request is answered, and after
// the deletion nothing of the chat is sent unless a prompt starts it again.
//
// Covers: chat/delete
func TestPromptAndDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps:\n    - {text: 'a b c', delay: 1ms}\nturns: []\n"})
	for i := range 30 {
		done := make(chan string, 2)
		go func() {
			res, err := r.TryCall("chat/prompt", map[string]any{"chatId": "c", "message": "x"})
			done <- fmt.Sprintf("prompt: %s %v", res, err)
		}()
		time.Sleep(time.Duration(i%6) * time.Millisecond)
		go func() {
			res, err := r.TryCall("chat/delete", map[string]any{"chatId": "c"})
			done <- fmt.Sprintf("delete: %s %v", res, err)
		}()
		for range 2 {
			if got := <-done; !strings.HasSuffix(got, "<nil>") || strings.Contains(got, "eca process") {
				t.Errorf("%s", got)
			}
		}
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "again"})
		r.Await(mark, "the end of the next turn", fake.Contains("chat/contentReceived", `"finished"`, `"reason":"done"`))
	}
}

// While a client does not read, the turn and its tools run to their ends. When the client reads again,
// it gets everything.
func TestClientStopsReading(t *testing.T) {
	words := 40_000
	tape := fmt.Sprintf(`
cassette: 1
turns:
  - steps:
      - text: "0123456789 "
        repeat: %d
        calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "x\n"}}]
      - {text: "END"}
`, words)
	r := newSilentRig(t, tape)
	r.prompt("go")
	deadline := time.Now().Add(time.Minute)
	for {
		if _, err := os.Stat(filepath.Join(r.root, "out.txt")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the tool did not run while the client did not read")
		}
		time.Sleep(10 * time.Millisecond)
	}
	text := r.readToEnd()
	if want := strings.Repeat("0123456789 ", words) + "END"; text != want {
		t.Errorf("the client got %d bytes of %d", len(text), len(want))
	}
}
