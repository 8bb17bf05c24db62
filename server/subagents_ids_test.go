package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// If a provider sends no call ids, eca numbers the calls of each response, so a parent and its subagents
// can have the same ids. Clients such as eca-cli send every approval with the parent's chat id. An
// approval of the parent's call must not approve a subagent's call with that id, nor an approval for one
// subagent a call of another.
func TestSubagentCallsHaveTheirOwnIDs(t *testing.T) {
	t.Parallel()
	write := func(name string) string {
		return `{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/` + name + `", content: x}}]}, {text: Wrote.}`
	}
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps: [{calls: [` + spawn("call_1", "general", "write one", "") + `, ` + spawn("call_2", "general", "write two", "") + `]}, {text: Done.}]
  - user: '^write one'
    steps: [` + write("one.txt") + `]
  - user: '^write two'
    steps: [` + write("two.txt") + `]
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	ids := map[string]string{}
	for _, name := range []string{"one.txt", "two.txt"} {
		r.Await(0, "the call for "+name, fake.Content("toolCallRun", `"manualApproval":true`, name))
	}
	for _, m := range r.Since(0) {
		for _, name := range []string{"one.txt", "two.txt"} {
			var p struct{ Content heardCall }
			if text := m.String(); strings.Contains(text, `"toolCallRun"`) && strings.Contains(text, name) && json.Unmarshal(m.Params, &p) == nil {
				ids[name] = p.Content.ID
			}
		}
	}
	approve := func(id string) {
		r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": id})
	}
	mark := r.Mark()
	approve("call_1")
	approve("call_2")
	approve(ids["two.txt"])
	r.Await(mark, "the second's end", fake.Content("toolCalled", "two.txt"))
	for _, m := range r.Since(0) {
		if text := m.String(); strings.Contains(text, `"toolCallRunning"`) && strings.Contains(text, "one.txt") {
			t.Errorf("nobody approved it: %s", text)
		}
	}
	r.Notify("chat/toolCallReject", map[string]any{"chatId": "c", "toolCallId": ids["one.txt"]})
	r.Await(mark, "the end", ofChat("c", `"finished"`, `"done"`))
	if _, err := os.Stat(filepath.Join(r.root, "one.txt")); !os.IsNotExist(err) {
		t.Errorf("one.txt was written: %v", err)
	}
	if got := readFile(t, filepath.Join(r.root, "two.txt")); got != "x" {
		t.Errorf("two.txt is %q", got)
	}
}
