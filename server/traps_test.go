package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
)

func clientCalled(name string) map[string]any {
	return map[string]any{"clientInfo": map[string]any{"name": name}}
}

// VS Code replays only the last config/updated of the session when its view is opened. Therefore each
// config/updated has all values, not only the changed ones.
func TestViewOpenedLateHasModelsAgentsAndWelcome(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{init: clientCalled("VsCode"), config: map[string]any{"providers": map[string]any{"mock": map[string]any{
		"models": map[string]any{"v": map[string]any{"variants": map[string]any{"low": map[string]any{"top_p": 1}}}},
	}}}})
	r.Await(0, "the start", fake.Ready())
	whole := func(after string, more ...string) {
		t.Helper()
		var last string
		for _, m := range r.Since(0) {
			if m.Method == "config/updated" && !strings.Contains(string(m.Params), `"chatId"`) {
				last = string(m.Params)
			}
		}
		for _, piece := range append(more, `"models":["mock/m","mock/v"`, `"agents":["code",`, `"behaviors":["code",`, `"variants":[`, `"selectModel":"mock/m"`, `"selectAgent":"`, `"selectBehavior":"`, `"selectVariant":`, `"welcomeMessage":"`) {
			if !strings.Contains(last, piece) {
				t.Errorf("%s: no %s in %s", after, piece, last)
			}
		}
	}
	whole("the start")
	mark := r.Mark()
	r.Notify("chat/selectedModelChanged", map[string]any{"chatId": "new", "model": "mock/v", "variant": "low"})
	r.Await(mark, "the variants", fake.Contains("config/updated", `"variants":["low"]`))
	whole("another model", `"selectVariant":"low"`)
	mark = r.Mark()
	r.Notify("chat/selectedAgentChanged", map[string]any{"chatId": "new", "agent": "plan"})
	r.Await(mark, "the agent", fake.Contains("config/updated", `"selectAgent":"plan"`))
	whole("another agent")
	r.save(t, r.globalFile(), `{"welcomeMessage": "changed", "chat": {"defaultTrust": true}}`)
	r.Await(mark, "the file", fake.Contains("config/updated", `"welcomeMessage":"changed"`))
	whole("another file", `"selectTrust":true`, `"selectAgent":"plan"`, `"variants":["low"]`)

	// Trust that the user switched off stays off.
	r.Call("chat/update", map[string]any{"chatId": "new", "trust": false})
	mark = r.Mark()
	r.Call("chat/list", map[string]any{"limit": 100})
	if count(r.Since(mark), "config/updated") == 0 {
		t.Error("a page that is opened again does not hear the configuration")
	}
	whole("the page", `"selectTrust":false`, `"welcomeMessage":"changed"`)
	for _, piece := range []string{`"type":"native","name":"ECA"`, `"id":"mock"`, `"jobs":[]`} {
		if heard := r.Since(mark); !strings.Contains(strings.ReplaceAll(joinMessages(heard), " ", ""), piece) {
			t.Errorf("a page that is opened again does not hear %s", piece)
		}
	}
}

// A client that requests it, regardless of its name, gets everything that is shown outside chats
// after chat/list. Other clients only get the list.
func TestRemountIsNegotiated(t *testing.T) {
	t.Parallel()
	for asked, want := range map[bool]int{true: 1, false: 0} {
		init := map[string]any{"capabilities": map[string]any{"codeAssistant": map[string]any{
			"chat": true, "chatCapabilities": map[string]any{"remount": asked},
		}}}
		r := newRig(t, options{init: init})
		r.Await(0, "the start", fake.Ready())
		mark := r.Mark()
		r.Call("chat/list", map[string]any{})
		for _, method := range []string{"config/updated", "jobs/updated"} {
			if got := count(r.Since(mark), method); got != want {
				t.Errorf("remount %v: %d of %s, want %d", asked, got, method, want)
			}
		}
	}
}

// rootsHost does not name its folders, which the first push does after the configuration, before
// the test says so.
type rootsHost struct {
	*daemon.Daemon
	held atomic.Bool
	goOn chan struct{}
}

func (h *rootsHost) Roots() []string {
	if h.held.Load() {
		<-h.goOn
	}
	return h.Daemon.Roots()
}

// A page that is opened while the state is sent for the first time may have missed the beginning.
func TestRemountDuringTheFirstPush(t *testing.T) {
	t.Parallel()
	h := &rootsHost{Daemon: newHost(t, options{}).daemon, goOn: make(chan struct{})}
	out, in, done := serve(t, h)
	e := fake.Connect(t, out, in)
	t.Cleanup(func() { _ = in.Close(); <-done })
	t.Cleanup(func() { close(h.goOn) })
	e.Call("initialize", clientCalled("VsCode"))
	h.held.Store(true)
	e.Notify("initialized", map[string]any{})
	e.Await(0, "the configuration", fake.Contains("config/updated"))
	mark := e.Mark()
	e.Call("chat/list", map[string]any{})
	if heard := e.Since(mark); count(heard, "config/updated") != 1 || count(heard, "jobs/updated") != 1 {
		t.Errorf("the page hears %s", joinMessages(heard))
	}
}

func joinMessages(heard []fake.Message) string {
	var b strings.Builder
	for _, m := range heard {
		b.WriteString(m.String() + "\n")
	}
	return b.String()
}

// A number is a handle of the connection: the same number in another session, of this or another
// project, is another chat.
func TestNumberedChatIsNewInEachSession(t *testing.T) {
	t.Parallel()
	a := newRig(t, options{model: hello, init: clientCalled("Neovim")})
	prompt := func(r *rig, id any) (chat string) {
		t.Helper()
		mark := r.Mark()
		var res struct{ ChatID, Status string }
		if err := json.Unmarshal(r.Call("chat/prompt", map[string]any{"chatId": id, "message": "hi"}), &res); err != nil || res.Status != "prompting" {
			t.Fatalf("prompt: %+v, %v", res, err)
		}
		r.Await(mark, "the end", fake.Finished())
		return res.ChatID
	}
	stored := prompt(a, "7")
	first := prompt(a, 7)
	if again := prompt(a, 7); stored == first || again != first {
		t.Errorf("the chat %s, then by number %s and %s", stored, first, again)
	}
	if got := prompt(a, "8"); got != "8" {
		t.Errorf("a name of digits is %s", got)
	}
	b := newRig(t, options{model: hello, state: a.state, root: a.root, init: clientCalled("Neovim")})
	for number, not := range map[int]string{7: first, 8: "8"} {
		if got := prompt(b, number); got == not || got == stored {
			t.Errorf("chat %d of another session continues %s", number, got)
		}
	}
}

func TestChatOfAnotherWorkspaceIsNotContinuedSilently(t *testing.T) {
	t.Parallel()
	a := newRig(t, options{model: hello})
	a.turn(t, map[string]any{"chatId": "c", "message": "hi"})
	b := newRig(t, options{model: hello, state: a.state, root: tempDir(t)})
	mark := b.Mark()
	if res := b.Call("chat/prompt", map[string]any{"chatId": "c", "message": "and now?"}); !strings.Contains(string(res), `"status":"error"`) {
		t.Errorf("the prompt: %s", res)
	}
	b.Await(mark, "the reason", fake.Content("text", "belongs to another workspace", a.root, `"role":"system"`))
	if n := len(b.bodies()); n != 0 {
		t.Errorf("%d requests to the model", n)
	}
	b.turn(t, map[string]any{"chatId": "c", "message": "yes, here"})
	c := newRig(t, options{model: hello, state: a.state, root: tempDir(t)})
	c.Call("chat/open", map[string]any{"chatId": "c"})
	c.turn(t, map[string]any{"chatId": "c", "message": "what I opened is what I mean"})
}

const wholeTape = `
cassette: 1
turns:
  - user: shell
    steps: [{calls: [{id: c1, tool: eca__shell_command, arguments: {command: "printf '%s' first-part-that-is-rather-long\nrm -rf ./second", working_directory: "${workspace}/sub"}}]}]
  - user: custom
    steps: [{calls: [{id: c1, tool: eca__deploy, arguments: {target: the production server far away, force: true}}]}]
  - user: mcp
    steps: [{calls: [{id: c1, tool: files__look, arguments: {q: everything that can be found in there}}]}]
  - user: outside
    steps: [{calls: [{id: c1, tool: eca__read_file, arguments: {path: /etc/passwd}}]}]
`

// Some clients show only the summary when the user has to decide.
func TestApprovalShowsTheWholeCall(t *testing.T) {
	t.Parallel()
	server := newMCPServer(t)
	for _, client := range []string{"VsCode", "eca-cli", "Neovim", "emacs", "another"} {
		r := newRig(t, options{model: wholeTape, init: clientCalled(client), config: map[string]any{
			"mcpServers": map[string]any{"files": map[string]any{"url": server.URL}},
			"customTools": map[string]any{"deploy": map[string]any{"description": "Deploys.", "command": "true {{target}}", "schema": map[string]any{
				"properties": map[string]any{"target": map[string]any{"type": "string"}, "force": map[string]any{"type": "boolean"}},
			}}},
		}})
		write(t, r.root, map[string]string{"sub/a": ""})
		r.Await(0, "the start", fake.Ready())
		r.Await(0, "the server", fake.Contains("tool/serverUpdated", `"name":"files","status":"running"`))
		for prompt, want := range map[string]string{
			"shell":   "$ printf '%s' first-part-that-is-rather-long ⏎ rm -rf ./second (working_directory: " + filepath.Join(r.root, "sub") + ")",
			"custom":  "Running tool deploy (force: true, target: the production server far away)",
			"mcp":     "files: look (q: everything that can be found in there)",
			"outside": "Reading passwd (0-2000) (path: /etc/passwd)",
		} {
			mark := r.Mark()
			r.Call("chat/prompt", map[string]any{"chatId": prompt, "message": prompt})
			quoted, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			r.Await(mark, client+" "+prompt, fake.Contains("chat/contentReceived", `"toolCallRun"`, `"manualApproval":true`, `"summary":`+string(quoted)))
			r.Notify("chat/toolCallReject", map[string]any{"chatId": prompt, "toolCallId": "c1"})
			r.Await(mark, "the end", fake.Finished())
		}
		r.Close()
	}
}

// A call of an MCP server is named in words at each stage.
func TestMCPCallIsNamedInWords(t *testing.T) {
	t.Parallel()
	server := newMCPServer(t)
	r := newRig(t, options{model: wholeTape, config: map[string]any{
		"mcpServers": map[string]any{"files": map[string]any{"url": server.URL}},
		"toolCall":   map[string]any{"approval": map[string]any{"allow": map[string]any{"files__look": map[string]any{}}}},
	}})
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "the server", fake.Contains("tool/serverUpdated", `"name":"files","status":"running"`))
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "mcp"})
	for kind, want := range map[string]string{"toolCallPrepare": "files: look", "toolCallRun": "files: look", "toolCallRunning": "Calling files: look", "toolCalled": "Called files: look"} {
		r.Await(mark, kind, fake.Contains("chat/contentReceived", `"type":"`+kind+`"`, `"summary":"`+want+`"`))
	}
	r.Await(mark, "the end", fake.Finished())
}

// A turn that eca did not live to finish has a mark when the chat is opened again.
func TestInterruptedTurnIsMarked(t *testing.T) {
	t.Parallel()
	a := newRig(t, options{model: "cassette: 1\nturns:\n  - steps: [{text: half an, hang: true}]\n"})
	a.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
	a.Await(0, "half an answer", fake.Content("text", "half"))
	// As if the other daemon had died: no process has written an end of its turn, or holds the chat's lock.
	if err := os.RemoveAll(filepath.Join(a.state, "locks")); err != nil {
		t.Fatal(err)
	}
	b := newRig(t, options{model: hello, state: a.state, root: a.root})
	mark := b.Mark()
	for range 2 {
		b.Call("chat/open", map[string]any{"chatId": "c"})
		b.Await(mark, "the mark", fake.Content("text", `"role":"system"`, "Interrupted: eca ended before this turn was finished"))
		mark = b.Mark()
	}
	b.turn(t, map[string]any{"chatId": "c", "message": "go on"})
	b.Call("chat/open", map[string]any{"chatId": "c"})
	if n := strings.Count(joinMessages(b.Since(mark)), "Interrupted: eca"); n != 1 {
		t.Errorf("the mark is shown %d times", n)
	}
}

func TestFilesThatTheQueryNamesComeFirst(t *testing.T) {
	t.Parallel()
	root := tempDir(t)
	write(t, root, map[string]string{"two.txt": "", "sub/twofold.go": "", "a-two.md": ""})
	r := newRig(t, options{root: root})
	for query, want := range map[string]string{
		"two":     "file $WS/two.txt, file $WS/sub/twofold.go, repoMap, cursor, directory $WS, file $WS/a-two.md",
		"TWO.TXT": "file $WS/two.txt, repoMap, cursor, directory $WS",
		"sub/two": "file $WS/sub/twofold.go, repoMap, cursor, directory $WS",
		"fold":    "repoMap, cursor, directory $WS, file $WS/sub/twofold.go",
	} {
		if got := r.query("chat/queryContext", map[string]any{"query": query}); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestToolThatPlanModeDisablesSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - steps: [{calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/a", content: x}}]}, {text: so}]
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "write", "agent": "plan"})
	r.Await(0, "the reason", fake.Contains("chat/contentReceived", `"type":"toolCalled"`, `"summary":"Tool 'eca__write_file' is disabled for agent plan"`))
	r.Await(0, "the end", fake.Finished())
}

func TestWelcomeWithoutProviderNamesLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{closed: true, config: map[string]any{"providers": map[string]any{"mock": nil}}})
	if res := r.Open(r.root, clientCalled("VsCode")); !strings.Contains(string(res), "`/login`") {
		t.Errorf("initialize: %s", res)
	}
	r.Await(0, "the welcome", fake.Contains("config/updated", `"models":[]`, "`/login`"))
}
