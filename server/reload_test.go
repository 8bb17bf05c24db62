package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// save writes a file as editors do: a new file replaces the old one.
func (r *rig) save(t *testing.T, path, text string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+"~", []byte(text), 0o600), os.Rename(path+"~", path))
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) globalFile() string { return filepath.Join(r.state, "config", "eca", "config.json") }

func (r *rig) workspaceFile() string { return filepath.Join(r.root, ".eca", "config.json") }

// The client gets each change of a file once, with the whole configuration. While a file is broken,
// its previous content counts.
//
// Covers: config/updated, $/showMessage
func TestReload(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	var want []string
	// hears awaits messages, which must be all messages since the last call.
	hears := func(what string, messages ...string) {
		t.Helper()
		want = append(want, messages...)
		method, params, _ := strings.Cut(messages[len(messages)-1], " ")
		r.Await(mark, what, fake.Contains(method, strings.Split(params, " ... ")...))
	}

	r.save(t, r.globalFile(), `{"welcomeMessage": "one", "chat": {"defaultTrust": true}}`)
	hears("a new global file", `config/updated {"chat":{"models":[ ... "selectTrust":true ... "welcomeMessage":"one"`)
	r.save(t, r.globalFile(), `{"welcomeMessage": "one", "chat": {"defaultTrust": true}} // nothing new`)
	r.save(t, r.workspaceFile(), `{"welcomeMessage": "two"}`)
	hears("a new workspace file", `config/updated {"chat":{"models":[ ... "welcomeMessage":"two"`)
	r.save(t, r.globalFile(), `{"chat": {"defaultTrust": false}}`)
	hears("a change", `config/updated {"chat":{"models":[ ... "selectTrust":false ... "welcomeMessage":"two"`)
	r.save(t, r.workspaceFile(), `{"welcomeMessage": "three"}`)
	hears("another change", `config/updated {"chat":{"models":[ ... "welcomeMessage":"three"`)

	r.save(t, r.workspaceFile(), "{\n  \"welcomeMessage\": four")
	hears("a broken file", `$/showMessage {"type":"warning","message":"Configuration: `+r.workspaceFile()+`:2:21: ... what the file said before stays in effect`)
	r.save(t, r.workspaceFile(), `{"welcomeMessage": "three"}`)
	r.save(t, r.globalFile(), `{"defaultModel": "mock/other"}`)
	hears("a change of the other file", `config/updated {"chat":{"models":[ ... "selectModel":"mock/other" ... "defaultModel":"mock/other" ... "welcomeMessage":"three"`,
		`$/showMessage {"type":"warning","message":"Configuration: `+r.globalFile()+`:1:2: defaultModel: provider mock has no other; it has m`)
	r.save(t, r.globalFile(), `{"disabledTools": 7}`)
	hears("a value of a wrong type",
		`config/updated {"chat":{"models":[ ... "selectModel":"mock/m" ... "defaultModel":"mock/m" ... "welcomeMessage":"three"`,
		`$/showMessage {"type":"warning","message":"Configuration: `+r.globalFile()+`:1:2: disabledTools must be a list, not the number 7`)
	r.save(t, r.globalFile(), `{}`)

	r.save(t, r.workspaceFile(), `{"welcomeMessage": "three", "agent": {"own": {}, "sub": {"mode": "subagent"}}, "defaultAgent": "plan"}`)
	hears("agents", `config/updated {"chat":{"models":[ ... "agents":["code","own","plan"],"behaviors":["code","own","plan"] ... "selectAgent":"plan","selectBehavior":"plan" ... "defaultAgent":"plan","defaultBehavior":"plan"`,
		`tool/serverUpdated {"type":"native","name":"ECA","status":"running" ... "disabled":true`)
	if err := os.Remove(r.workspaceFile()); err != nil {
		t.Fatal(err)
	}
	hears("the end of the file", `config/updated {"chat":{"models":[ ... "agents":["code","plan"],"behaviors":["code","plan"] ... "selectAgent":"code","selectBehavior":"code" ... "defaultAgent":"code","defaultBehavior":"code","welcomeMessage":"`,
		`tool/serverUpdated {"type":"native","name":"ECA" ... "name":"write_file"`)

	r.Await(mark, "as many messages", func(heard []fake.Message) fake.Verdict {
		if len(heard) < len(want) {
			return fake.Unmet
		}
		return fake.Met
	})
	heard := r.Since(mark)
	// A change and an error in the file use two paths, so either may arrive first.
	if i := slices.IndexFunc(want, func(s string) bool { return strings.Contains(s, "disabledTools must be") }); strings.Contains(heard[i-1].String(), "disabledTools must be") {
		heard[i-1], heard[i] = heard[i], heard[i-1]
	}
	var got []string
	for i, m := range heard {
		got = append(got, m.String())
		if i < len(want) && hasAll(m.String(), strings.Split(want[i], " ... ")) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func hasAll(s string, pieces []string) bool {
	for _, p := range pieces {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// A turn continues with the configuration it began with; the next turn has the new one.
func TestReloadDuringTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - steps:
      - calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/1.txt", content: "x\n"}}]
      - calls: [{id: call_2, tool: eca__write_file, arguments: {path: "${workspace}/2.txt", content: "x\n"}}]
      - {text: "Done."}
  - steps:
      - calls: [{id: call_3, tool: eca__write_file, arguments: {path: "${workspace}/3.txt", content: "x\n"}}]
      - {text: "Done."}
  - steps:
      - calls: [{id: call_4, tool: eca__write_file, arguments: {path: "${workspace}/4.txt", content: "x\n"}}]
      - {text: "Done."}
`})
	prompt := func() { r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"}) }
	prompt()
	r.Await(0, "a question", fake.Content("toolCallRun", `"call_1"`, `"manualApproval":true`))
	r.save(t, r.globalFile(), `{"welcomeMessage": "new", "toolCall": {"approval": {"allow": {"eca__write_file": {}}}}}`)
	r.Await(0, "the change", fake.Contains("config/updated", `"new"`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
	r.Await(0, "another question", fake.Content("toolCallRun", `"call_2"`, `"manualApproval":true`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_2"})
	r.Await(0, "the end", fake.Finished())
	prompt()
	r.Await(0, "no question", fake.Content("toolCallRun", `"call_3"`, `"manualApproval":false`))
	r.Await(0, "the next end", fake.Times(2, "chat/contentReceived", `"state":"finished"`))
	mark := r.Mark()
	r.save(t, r.globalFile(), `{"welcomeMessage": "newer"}`)
	prompt() // immediately, before the change is reported
	r.Await(0, "a question again", fake.Content("toolCallRun", `"call_4"`, `"manualApproval":true`))
	r.Await(mark, "the report of the change", fake.Contains("config/updated", `"newer"`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_4"})
	r.Await(0, "the last end", fake.Times(3, "chat/contentReceived", `"state":"finished"`))
}

// Included files, and the files of other folders after a second initialize, are watched like the
// configuration itself.
func TestReloadOtherFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	r.Await(0, "the start", fake.Ready())
	hello := filepath.Join(r.root, "texts", "hello.md")
	r.save(t, r.globalFile(), `{"welcomeMessage": "<${file:`+filepath.ToSlash(hello)+`}>"}`)
	r.Await(0, "a missing file", fake.Contains("$/showMessage", "hello.md} cannot be read"))
	r.save(t, hello, "hi")
	r.Await(0, "its creation", fake.Contains("config/updated", `{"chat":{"models":[`, `"welcomeMessage":"<hi>"`))

	other := tempDir(t)
	r.Open(other, nil)
	r.save(t, filepath.Join(other, ".eca", "config.json"), `{"welcomeMessage": "other"}`)
	r.Await(0, "a file of another folder", fake.Contains("config/updated", `{"chat":{"models":[`, `"welcomeMessage":"other"`))
}

// A model that the user picked stays selected until the configured default changes.
func TestReloadKeepsPick(t *testing.T) {
	t.Parallel()
	variants := map[string]any{"variants": map[string]any{"high": map[string]any{"top_p": 1}}}
	r := newRig(t, options{config: map[string]any{"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"v": variants}}}}})
	r.Await(0, "the start", fake.Ready())
	r.Notify("chat/selectedModelChanged", map[string]any{"model": "mock/v"})
	r.Await(0, "its variants", fake.Contains("config/updated", `"variants":["high"],"selectModel":"mock/v"`))
	r.save(t, r.globalFile(), `{"welcomeMessage": "new"}`)
	r.Await(0, "the change", fake.Contains("config/updated", `"variants":["high"],"selectModel":"mock/v"`, `"welcomeMessage":"new"`))
	r.save(t, r.globalFile(), `{"welcomeMessage": "new", "defaultModel": "mock/other"}`)
	r.Await(0, "another default", fake.Contains("config/updated", `"variants":[],"selectModel":"mock/other"`, `"defaultModel":"mock/other"`))
}
