package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// If a third command that could run in the sandbox asks in a workspace, the question offers that
// mode, once and in words. After the user accepts the offer, such commands do not ask any more,
// only in this workspace, and `eca permission forget` revokes it.
func TestSandboxIsOfferedOnce(t *testing.T) {
	needs.Long(t)
	needIsolation(t)
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n    - calls: [{id: c, tool: eca__shell_command, arguments: {command: \"echo x > made.txt\"}}]\n    - {text: Done.}\nturns: []\n")
	here := newPlace(t, p.env()...)
	var e *process
	// run lets the command run and returns the question, or "" without one.
	run := func(save string) (question string) {
		t.Helper()
		mark := e.Mark()
		e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
		e.Await(mark, "the call", fake.Content("toolCallRun"))
		for _, m := range e.Since(mark) {
			text := string(m.Params)
			if !strings.Contains(text, `"toolCallRun"`) || !strings.Contains(text, `"manualApproval":true`) {
				continue
			}
			question = text
			_, id, _ := strings.Cut(text, `"id":"`)
			id, _, _ = strings.Cut(id, `"`)
			e.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": id, "save": save})
		}
		e.Await(mark, "the end", fake.Finished())
		return question
	}
	start := func() {
		t.Helper()
		e = here.serve(t)
		e.Open(here.root, capableParams())
	}
	const offer, words = `"sandboxOffer":true`, `set toolCall.unasked to \"workspace\"`
	start()
	for i, want := range []bool{false, false, true, false} {
		if q := run(""); q == "" || strings.Contains(q, offer) != want || strings.Contains(q, words) != want {
			t.Errorf("question %d: %s", i+1, q)
		}
	}
	shutDown(t, e)
	start()
	for i := range 3 {
		if q := run(""); q == "" || strings.Contains(q, offer) {
			t.Errorf("after a restart, question %d: %s", i+1, q)
		}
	}
	if q := run("sandbox"); q == "" {
		t.Error("eca did not ask before the user accepted the offer")
	}
	if q := run(""); q != "" {
		t.Errorf("eca asked after the user had accepted the offer: %s", q)
	}
	shutDown(t, e)
	list, _, _ := runProgram(t, here, "", "permission", "list")
	key := "sandbox: commands of this workspace may run without a question"
	if !strings.Contains(list, key+"\t"+here.root) {
		t.Errorf("remembered: %s", list)
	}
	if _, stderr, code := runProgram(t, here, "", "permission", "forget", key); code != 0 {
		t.Error(stderr)
	}
	start()
	if q := run(""); q == "" {
		t.Error("eca did not ask after `eca permission forget`")
	}
	shutDown(t, e)
}

// If the search for protected places stops at its limit, a command that would run in the sandbox of
// the workspace asks, with the reason.
func TestWorkspaceWithTooManyFoldersAsks(t *testing.T) {
	needs.Long(t)
	needIsolation(t)
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n    - calls: [{id: c, tool: eca__shell_command, arguments: {command: \"echo x > made.txt\"}}]\n    - {text: Done.}\nturns: []\n")
	for folders, asks := range map[int]bool{10: false, 5100: true} {
		here := newPlace(t, p.env()...)
		here.env = append(here.env, `ECA_CONFIG={"chat":{"title":false},"toolCall":{"unasked":"workspace"}}`)
		for i := range folders {
			if err := os.MkdirAll(filepath.Join(here.root, "d", fmt.Sprint(i)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		e := here.serve(t)
		e.Open(here.root, capableParams())
		mark := e.Mark()
		e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
		e.Await(mark, "the call", fake.Content("toolCallRun", fmt.Sprintf(`"manualApproval":%v`, asks)))
		_, err := os.Stat(filepath.Join(here.root, "made.txt"))
		if said := e.Conversation(); asks && (err == nil || !strings.Contains(said, "too many folders")) {
			t.Errorf("it ran: %v: %s", err == nil, said)
		}
		e.Notify("chat/promptStop", map[string]any{"chatId": "c"})
		shutDown(t, e)
	}
}
