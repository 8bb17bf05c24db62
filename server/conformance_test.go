package server_test

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/workspace"
)

// TestConformance is the checklist of eca-protocol.md 15, by its numbers. Checks that need the
// process itself are in TestConformance in cmd/eca. Each check runs under the rules, which see
// every message (rules_test.go); some checks only produce the messages that the rules check.
//
// Covers: chat/toolCallApprove, chat/toolCallReject, chat/promptStop, chat/contentReceived
// Covers: chat/statusChanged, jobs/updated, $/progress
func TestConformance(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	for _, c := range []struct {
		name  string
		check func(t *testing.T)
	}{
		{"1 single header, single write, compact body", conformFrames},
		{"2 accepts trailing newline, null and missing params, {} for arrays, kebab keys", conformLeniency},
		{"3 multi-byte text is counted in bytes", conformBytes},
		{"4 a panic leaves the output clean and the daemon alive", conformPanic},
		{"5 success without error key, shutdown with result null", conformResults},
		{"6 ids of our requests are 1e9 and more", conformRequestIDs},
		{"7 no notification before initialized", conformSilence},
		{"8 initialize answers without a network", conformOffline},
		{"9 progress pairs complete on success and failure", conformProgress},
		{"10 first config/updated has both families, welcome message and models", conformFirstConfig},
		{"13 chats without and with an id, opened only for the second", conformChatIDs},
		{"14 exactly one echo", conformEcho},
		{"15 exactly one finished per turn", conformFinished},
		{"16 idle before finished", conformIdle},
		{"17 prepare precedes run, in replays too", conformPrepare},
		{"18 summary and details are repeated", conformRepeated},
		{"19 approve counts right after run, spurious ones do not", conformApprove},
		{"20 stop at any moment", conformStop},
		{"21 nothing about unknown chats", conformUnknownChats},
		{"22 subagents are announced and marked", conformSubagents},
		{"23 open: notifications before response, found:false silent", conformOpen},
		{"24 rollback of tools restores files", conformRollback},
		{"25 usage omits an unknown limit, no nulls", conformUsage},
		{"26 behavior, selectedBehaviorChanged and chatBehavior are honoured", conformBehavior},
		{"27 capabilities {chat:{}} are accepted", conformOldCapabilities},
		{"28 nothing is asked without the capability", conformGate},
		{"29 unknown methods", conformUnknownMethods},
		{"30 picks of a model: unscoped for unknown chats, scoped for known", conformPicks},
		{"31 login round trip with api-key", conformLogin},
		{"32 jobs carry toolCallId", conformJobs},
		{"33 rewrite: response precedes started, one terminal event", conformRewrite},
		{"34 a completion's error has a type", conformCompletion},
		{"35 a diff has no file header", conformDiff},
	} {
		t.Run(c.name, c.check)
	}
}

// Every number of the checklist is checked here or in cmd/eca.
func TestConformanceIsComplete(t *testing.T) {
	t.Parallel()
	numbers := map[int]bool{}
	for _, file := range []string{"conformance_test.go", filepath.Join("..", "cmd", "eca", "conformance_test.go")} {
		for _, m := range regexp.MustCompile(`"([0-9]+) [-a-z]`).FindAllStringSubmatch(readFile(t, file), -1) {
			n, _ := strconv.Atoi(m[1])
			numbers[n] = true
		}
	}
	for n := 1; n <= 35; n++ {
		if !numbers[n] {
			t.Errorf("check %d is missing", n)
		}
	}
}

// hello answers every prompt.
const hello = "cassette: 1\ndefault:\n  steps:\n    - {text: \"Hello.\"}\nturns: []\n"

// handshake opens a wire as a client without peculiarities.
func (w *wire) handshake(root, capabilities string) {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"workspaceFolders":[{"uri":"file://` + root + `","name":"ws"}],"capabilities":` + capabilities + `}}`)
	w.await(0, `"id":1,"result":{`)
	w.send(`{"jsonrpc":"2.0","method":"initialized"}`)
}

// call sends a request and returns its answer.
func (w *wire) call(id int, method, params string) string {
	w.t.Helper()
	mark := w.mark()
	w.send(`{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"` + method + `","params":` + params + `}`)
	answer, _ := w.await(mark, `"id":`+strconv.Itoa(id)+`,`)
	return answer
}

func newConformWire(t *testing.T, model, capabilities string) *wire {
	t.Helper()
	h := newHost(t, options{model: model})
	w := newWire(t, h.daemon, "")
	w.handshake(h.root, capabilities)
	return w
}

func conformFrames(t *testing.T) {
	w := newConformWire(t, "cassette: 1\ndefault:\n  steps: [{text: \"line\\n\\t \\\" \", repeat: 200, delay: 10us}]\nturns: []\n", `{}`)
	w.call(2, "chat/prompt", `{"message":"go"}`)
	w.await(0, `"finished"`)
	if n := len(w.messagesSince(0)); n < 8 {
		t.Errorf("only %d frames", n)
	}
}

func conformLeniency(t *testing.T) {
	h := newHost(t, options{model: hello})
	w := newWire(t, h.daemon, "\n")
	w.send(`{"id":"one","jsonrpc":"2.0","method":"initialize","params":{"process-id":null,"client-info":null,"capabilities":null,"workspace-folders":[{"uri":"file://` + h.root + `","name":"ws"}]}}`)
	w.await(0, `"id":"one","result":{`)
	w.send(`{"jsonrpc":"2.0","method":"initialized"}`)
	for i, body := range []string{
		`"method":"chat/list","params":null`, `"method":"chat/list"`, `"method":"chat/list","params":[]`, `"method":"chat/list","params":{"sort_by":null,"limit":"3"}`,
		`"method":"chat/queryContext","params":{"query":"","contexts":{}}`, `"method":"chat/rollback","params":{"chat-id":"x","content_id":7,"include":{}}`,
		`"method":"chat/prompt","params":{"chat-id":"e","message":"hi","contexts":{},"request-id":1,"trust":null}`,
	} {
		id := strconv.Itoa(10 + i)
		w.send(`{"jsonrpc":"2.0","id":` + id + `,` + body + `}`)
		w.await(0, `"id":`+id+`,"result":{`)
	}
	w.await(0, `"chat/opened","params":{"chatId":"e"}`)
	w.await(0, `"chatId":"e"`, `"finished"`)
	body := `{"jsonrpc":"2.0","id":20,"method":"shutdown"}`
	for _, header := range []string{"CONTENT-length:%d\nContent-Type: application/vscode-jsonrpc; charset=UTF8\n\n", "X: y\r\nContent-Length: %d\r\n\r\n"} {
		if _, err := w.in.WriteString(strings.Replace(header, "%d", strconv.Itoa(len(body)), 1) + body); err != nil {
			t.Fatal(err)
		}
		w.await(0, `"id":20,"result":null`)
	}
}

func conformBytes(t *testing.T) {
	const text = "é \u2028 漢字 👩‍💻"
	h := newHost(t, options{model: "cassette: 1\ndefault:\n  steps:\n    - {text: \"" + text + "\"}\nturns: []\n"})
	w := newWire(t, h.daemon, "")
	w.handshake(h.root, `{}`)
	w.call(2, "chat/prompt", `{"message":"`+text+`"}`)
	_, next := w.await(0, `"role":"user"`, strings.ReplaceAll(text, "\u2028", `\u2028`)+`\n"`)
	w.await(next, `"role":"assistant"`, "👩‍💻")
	w.await(next, `"finished"`)
	if body := string(h.requests[0].body); !strings.Contains(body, "漢字 👩‍💻") {
		t.Errorf("the model got %s", body)
	}
	if w.call(3, "chat/list", `{}`) == "" { // fails if the daemon counted other bytes than the header said
		t.Error("chat/list was not answered")
	}
}

// panicking is a daemon with a bug in FindFiles.
type panicking struct{ host }

func (panicking) FindFiles(context.Context, []string, string) ([]workspace.Found, error) {
	panic("oh no")
}

func conformPanic(t *testing.T) {
	h := newHost(t, options{model: hello})
	w := newWire(t, panicking{h.daemon}, "")
	w.handshake(h.root, `{}`)
	if got := w.call(2, "chat/queryFiles", `{"query":"x"}`); !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, "oh no") {
		t.Errorf("answered %s", got)
	}
	w.call(3, "chat/prompt", `{"message":"go"}`)
	w.await(0, `"finished"`)
}

func conformResults(t *testing.T) {
	w := newConformWire(t, hello, `{}`)
	w.call(2, "chat/prompt", `{"message":"go"}`)
	w.await(0, `"finished"`)
	if got := w.call(3, "shutdown", `null`); got != `{"jsonrpc":"2.0","id":3,"result":null}` {
		t.Errorf("shutdown: %s", got)
	}
	if bad := w.messagesSince(0, `"error"`); len(bad) > 0 {
		t.Errorf("error keys: %q", bad)
	}
}

func conformRequestIDs(t *testing.T) {
	w := newConformWire(t, "cassette: 1\ndefault:\n  steps:\n    - calls: [{id: c, tool: eca__editor_diagnostics, arguments: {}}]\n    - {text: Done.}\nturns: []\n", everything)
	w.call(2, "chat/prompt", `{"message":"go"}`)
	body, _ := w.await(0, `"editor/getDiagnostics"`)
	var m struct{ ID int64 }
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.ID < 1e9 {
		t.Fatalf("the id of %s", body)
	}
	w.send(`{"jsonrpc":"2.0","id":` + strconv.FormatInt(m.ID, 10) + `,"result":{"diagnostics":[]}}`)
	w.await(0, `"toolCalled"`, `"error":false`)
	w.await(0, `"finished"`)
}

func conformSilence(t *testing.T) {
	h := newHost(t, options{model: hello, config: map[string]any{"disabledTools": 7}})
	w := newWire(t, h.daemon, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	for id := 2; id < 20; id++ { // each is a round trip in which a notification could arrive
		w.call(id, "chat/queryFiles", `{"query":"x"}`)
	}
	if heard := w.messagesSince(0, `"method":"`); len(heard) != len(w.messagesSince(0, `"data":{"method"`)) {
		t.Errorf("heard %q", heard)
	}
	w.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	w.await(0, `"config/updated"`)
}

// A provider accepts connections and never answers.
func conformOffline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := newRig(t, options{model: hello, closed: true, config: map[string]any{"providers": map[string]any{
		"mute": map[string]any{"api": "openai-chat", "url": "http://" + l.Addr().String(), "key": "k", "fetchModels": true, "models": map[string]any{"m": map[string]any{}}},
	}}})
	r.Call("initialize", map[string]any{"workspaceFolders": []any{map[string]any{"uri": "file://" + r.root, "name": "ws"}}})
	r.Notify("initialized", map[string]any{})
	r.Await(0, "what is known without it", fake.Contains("config/updated", `"models":["mock/m","mute/m"]`))
	r.Call("chat/prompt", map[string]any{"message": "hi"})
	r.Await(0, "a turn meanwhile", fake.Finished())
	if fake.Contains("$/progress", `"finish"`, `"models"`)(r.Since(0)) == fake.Met {
		t.Error("the provider was not asked, so this proves nothing")
	}
}

func conformProgress(t *testing.T) {
	for name, url := range map[string]string{"success": "", "failure": "http://127.0.0.1:9"} {
		config := map[string]any{}
		if url != "" {
			config["providers"] = map[string]any{"gone": map[string]any{"api": "openai-chat", "url": url, "key": "k", "fetchModels": true}}
		}
		r := newRig(t, options{config: config})
		r.Await(0, name, fake.Ready())
		r.Await(0, name, fake.Contains("$/progress", `{"type":"finish","taskId":"models","title":"`))
		heard := r.Since(0)
		if i := slices.IndexFunc(heard, func(m fake.Message) bool { return m.Method != "$/progress" }); i < 1 {
			t.Errorf("%s: the first message is %s, not the start of a task", name, heard[0])
		}
	}
}

func conformFirstConfig(t *testing.T) {
	w := newConformWire(t, hello, `{}`)
	body, _ := w.await(0, `"config/updated"`)
	var m struct{ Params struct{ Chat map[string]any } }
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"models", "agents", "behaviors", "variants"} {
		if _, ok := m.Params.Chat[key].([]any); !ok {
			t.Errorf("%s is not a list in %s", key, body)
		}
	}
	for _, key := range []string{"welcomeMessage", "selectModel", "selectAgent", "selectBehavior", "defaultModel", "defaultAgent", "defaultBehavior"} {
		if s, _ := m.Params.Chat[key].(string); s == "" {
			t.Errorf("no %s in %s", key, body)
		}
	}
	if strings.Contains(body, "selectTrust") || len(w.messagesSince(0, `"selectModel"`)) != 1 {
		t.Errorf("the first config/updated was not sent once, or contains selectTrust: %s", body)
	}
}
