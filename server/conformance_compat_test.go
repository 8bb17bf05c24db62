package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// agentOf returns the agent that a prompt with the given names runs with.
func (r *rig) agentOf(t *testing.T, params map[string]any) string {
	t.Helper()
	mark := r.Mark()
	p := map[string]any{"message": "hi"}
	merge(p, params)
	var prompted struct{ ChatID string }
	if err := json.Unmarshal(r.Call("chat/prompt", p), &prompted); err != nil {
		t.Fatal(err)
	}
	r.Await(mark, "the end", fake.Finished())
	var opened struct{ Selection struct{ Agent string } }
	if err := json.Unmarshal(r.Call("chat/open", map[string]any{"chatId": prompted.ChatID}), &opened); err != nil {
		t.Fatal(err)
	}
	return opened.Selection.Agent
}

func conformBehavior(t *testing.T) {
	r := newRig(t, options{model: hello})
	for _, c := range []struct {
		params map[string]any
		want   string
	}{
		{map[string]any{"behavior": "plan"}, "plan"},
		{map[string]any{"behavior": "agent"}, "code"},
		{map[string]any{"behavior": "build"}, "code"},
		{map[string]any{"agent": "agent"}, "code"},
		{map[string]any{"agent": "plan", "behavior": "agent"}, "plan"},
		{map[string]any{"agent": "unknown"}, "code"},
		{map[string]any{"agent": nil, "behavior": "plan"}, "plan"},
	} {
		if got := r.agentOf(t, c.params); got != c.want {
			t.Errorf("%v: %s, want %s", c.params, got, c.want)
		}
	}
	mark := r.Mark()
	r.Notify("chat/selectedBehaviorChanged", map[string]any{"behavior": "plan"})
	r.Await(mark, "both families", fake.Contains("config/updated", `"selectAgent":"plan","selectBehavior":"plan"`))
	if got := r.agentOf(t, nil); got != "plan" {
		t.Errorf("after the pick: %s", got)
	}
	for option, want := range map[string]string{"chatBehavior": "plan", "chatAgent": "plan"} {
		r := newRig(t, options{model: hello, init: map[string]any{"initializationOptions": map[string]any{option: want}}})
		r.Await(0, option, fake.Contains("config/updated", `"selectAgent":"plan","selectBehavior":"plan"`))
		if got := r.agentOf(t, nil); got != want {
			t.Errorf("%s: %s", option, got)
		}
	}
}

// An old IntelliJ sends neither its name, nor its process, nor its folders.
func conformOldCapabilities(t *testing.T) {
	h := newHost(t, options{model: hello})
	w := newWire(t, h.daemon, "")
	if got := fmt.Sprint(w.call(1, "initialize", `{"capabilities":{"chat":{}}}`)); !hasAll(got, []string{`"chatDefaultModel":"mock/m"`, `"chatBehaviors":["code","plan"]`, `"chatDefaultBehavior":"code"`, `"chatWelcomeMessage":"`}) {
		t.Errorf("initialize answered %s", got)
	}
	w.send(`{"jsonrpc":"2.0","method":"initialized"}`)
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := w.call(2, "chat/queryContext", `{"query":"zzz"}`); !strings.Contains(got, `{"type":"directory","path":"`+wd+`"}`) {
		t.Errorf("not in its directory: %s", got)
	}
	w.call(3, "chat/prompt", `{"message":"hi","behavior":"agent"}`)
	w.await(0, `"finished"`)
}

func conformGate(t *testing.T) {
	calls := []string{`ask_user {question: "Which?"}`, `editor_diagnostics {}`, `editor_definition {path: $WS/a.go, line: 1, symbol: a}`, `editor_references {path: $WS/a.go, line: 1, symbol: a}`}
	r := newAskingRig(t, `{"codeAssistant":{"chat":true}}`, nil, calls...)
	if _, failed := r.ask(t); !failed {
		t.Error("the calls did not fail")
	}
	heard := r.Since(0)
	if count(heard, `"toolCalled"`, "not found") != len(calls) || indexOf(heard, "editor/get") >= 0 || indexOf(heard, "chat/askQuestion ") >= 0 {
		t.Errorf("heard %v", heard)
	}
}

func conformUnknownMethods(t *testing.T) {
	w := newConformWire(t, hello, `{}`)
	w.awaitStart()
	for id, params := range []string{`{}`, `[]`, `null`, `[1]`, `"x"`} {
		if got := w.call(10+id, "chat/unknown", params); params[0] != '"' && !strings.Contains(got, `"error":{"code":-32601,"message":"Method not found","data":{"method":"chat/unknown"}}`) {
			t.Errorf("%s: %s", params, got)
		}
	}
	w.call(2, "chat/list", `{}`)
	mark := w.mark()
	for _, method := range []string{"$/setTrace", "chat/unknown", "textDocument/didOpen", ""} {
		w.send(`{"jsonrpc":"2.0","method":"` + method + `","params":{}}`)
	}
	w.call(3, "chat/list", `{}`)
	if heard := w.messagesSince(mark); len(heard) != 1 {
		t.Errorf("unknown notifications caused messages: %q", heard)
	}
}

func conformPicks(t *testing.T) {
	r := newRig(t, options{model: hello, config: map[string]any{"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"v": map[string]any{"variants": map[string]any{"low": map[string]any{"top_p": 1}}}}}}}})
	r.Call("chat/prompt", map[string]any{"chatId": "known", "message": "hi"})
	r.Await(0, "the end", fake.Finished())
	r.Await(0, "the start", fake.Ready())
	for id, want := range map[string]string{"fresh": `{"chat":{"models":["mock/m","mock/v"],"agents":["code","plan"],"behaviors":["code","plan"],"variants":["low"],"selectModel":"mock/m",`, "known": `{"chatId":"known","chat":{"variants":["low"],"selectVariant":null}}`} {
		mark := r.Mark()
		r.Notify("chat/selectedModelChanged", map[string]any{"chatId": id, "model": "mock/v"})
		r.Await(mark, id, fake.Contains("config/updated", want))
		if n := count(r.Since(mark), "config/updated"); n != 1 {
			t.Errorf("%s: %v", id, r.Since(mark))
		}
	}
}

func conformLogin(t *testing.T) {
	r := newLoginRig(t, tempDir(t), oneProvider, nil)
	if got := auth(t, r.list(t)["acme"]); got != unauthenticated {
		t.Fatalf("before: %s", got)
	}
	if got := string(r.Call("providers/login", map[string]any{"provider": "acme"})); got != `{"action":"input","fields":[{"key":"api-key","label":"API key","type":"secret"}]}` {
		t.Errorf("providers/login: %s", got)
	}
	mark := r.Mark()
	if got := string(r.Call("providers/loginInput", map[string]any{"provider": "acme", "request-id": 1, "data": map[string]any{"api-key": loginKey}})); got != `{"action":"done"}` {
		t.Errorf("providers/loginInput: %s", got)
	}
	r.Await(mark, "the models", fake.Contains("config/updated", `{"chat":{"models":["acme/m"]`))
	r.Await(mark, "the provider", fake.Contains("providers/updated", `{"id":"acme",`, `"status":"authenticated"`))
	r.Call("chat/prompt", map[string]any{"message": "hi", "model": "acme/m"})
	r.Await(mark, "an answer with the key", fake.Content("text", "Hello."))
	if _, err := r.TryCall("providers/login", map[string]any{"provider": "nobody"}); err == nil {
		t.Error("providers/login accepted an unknown provider")
	}
	r.AwaitResponse("a numeric code", `"error":{"code":-32602,"message":"`)
	if got := string(r.Call("providers/logout", map[string]any{"provider": "acme"})); got != "{}" {
		t.Errorf("providers/logout: %s", got)
	}
	r.Await(mark, "the logout", fake.Contains("providers/updated", `{"id":"acme",`, `"status":"unauthenticated"`))
}

func conformJobs(t *testing.T) {
	r := newRig(t, options{model: `
cassette: 1
default:
  steps:
    - calls: [{id: call_1, tool: eca__shell_command, arguments: {command: "sleep 300", background: "a job"}}]
    - {text: Started.}
turns: []
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "trust": true})
	r.Await(0, "the start of the command", fake.Content("toolCalled", `"error":false`))
	r.Await(0, "the end", fake.Finished())
	if got := string(r.Call("jobs/readOutput", map[string]any{"jobId": "job-99"})); got != `{"lines":[],"status":null,"exitCode":null}` {
		t.Errorf("an unknown job: %s", got)
	}
	if got := string(r.Call("jobs/kill", map[string]any{"jobId": "job-99"})); got != `{"killed":false}` {
		t.Errorf("an unknown job: %s", got)
	}
	var res struct{ Jobs []map[string]any }
	if err := json.Unmarshal(r.Call("jobs/list", map[string]any{}), &res); err != nil || res.Jobs == nil {
		t.Fatalf("jobs/list: %v, %v", res.Jobs, err)
	}
	if len(res.Jobs) != 1 {
		t.Fatalf("jobs/list: %v", res.Jobs)
	}
	if j := res.Jobs[0]; j["toolCallId"] != "call_1" || j["chatId"] != "c" || j["status"] != "running" || j["type"] != "shell" {
		t.Errorf("the job is %v", j)
	}
	r.Await(0, "the client is told", fake.Contains("jobs/updated", `"toolCallId":"call_1"`))
}

func conformRewrite(t *testing.T) {
	w := newConformWire(t, rewrites, `{}`)
	for i, c := range []struct{ prompt, want string }{
		{"plain", "prompting started text finished"}, {"refused", "prompting error"}, {"cut", "prompting started text error"},
	} {
		mark, id := w.mark(), fmt.Sprintf("r%d", i)
		w.call(2+i, "rewrite/prompt", `{"id":"`+id+`","text":"old","prompt":"`+c.prompt+`","range":{"start":{"line":1,"character":0},"end":{"line":1,"character":3}}}`)
		terminal := strings.Fields(c.want)[len(strings.Fields(c.want))-1]
		w.await(mark, `"rewriteId":"`+id+`"`, `"type":"`+terminal+`"`)
		w.call(20+i, "chat/list", `{}`)
		var got []string
		for _, body := range w.messagesSince(mark) {
			for _, kind := range []string{`"prompting"`, `"started"`, `"type":"text"`, `"finished"`, `"type":"error"`} {
				if name := strings.Trim(strings.TrimPrefix(kind, `"type":`), `"`); strings.Contains(body, kind) && !strings.Contains(body, "$/progress") {
					got = append(got, name)
				}
			}
		}
		if s := strings.Join(slices.Compact(got), " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.prompt, s, c.want)
		}
	}
}

func conformCompletion(t *testing.T) {
	w := newConformWire(t, "cassette: 1\ndefault:\n  steps:\n    - {error: {status: 401, message: no}}\nturns: []\n", `{}`)
	got := w.call(2, "completion/inline", `{"doc-text":"x","doc-version":1,"position":{"line":1,"character":1}}`)
	var m struct {
		Error struct {
			Code          int
			Type, Message string
		}
	}
	if err := json.Unmarshal([]byte(got), &m); err != nil || m.Error.Code == 0 || m.Error.Type != "error" || !strings.Contains(m.Error.Message, "no") {
		t.Errorf("answered %s, %v", got, err)
	}
}

func conformDiff(t *testing.T) {
	root := tempDir(t)
	write(t, root, map[string]string{"a.txt": "--- x\nold\n"})
	r := newRig(t, options{root: root, model: `
cassette: 1
default:
  steps:
    - calls:
        - {id: call_1, tool: eca__edit_file, arguments: {path: "${workspace}/a.txt", original_content: old, new_content: new}}
        - {id: call_2, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "1\n2\n"}}
    - {text: Done.}
turns: []
`})
	r.Call("chat/prompt", map[string]any{"message": "go", "trust": true})
	r.Await(0, "the end", fake.Finished())
	got := map[string]string{}
	for _, m := range r.Since(0) {
		var p struct {
			Content struct {
				Type, ID string
				Details  *struct{ Path, Diff string }
			}
		}
		if _ = json.Unmarshal(m.Params, &p); p.Content.Details != nil {
			if diff, ok := got[p.Content.ID]; ok && diff != p.Content.Details.Diff || !strings.HasPrefix(p.Content.Details.Path, root) {
				t.Errorf("%s is not as before", m)
			}
			got[p.Content.ID] = p.Content.Details.Diff
		}
	}
	for id, want := range map[string]string{"call_1": "@@ -1,2 +1,2 @@\n --- x\n-old\n+new", "call_2": "@@ -0,0 +1,2 @@\n+1\n+2"} {
		if strings.TrimSuffix(got[id], "\n") != want {
			t.Errorf("%s: %q", id, got[id])
		}
	}
}
