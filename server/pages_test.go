package server_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// callsInPages returns the tool calls that a client is shown when it reads a chat in pages, from the
// newest to the oldest: the stages on each page, separated by semicolons, and all contents of the
// stages. Limit 0 means one page.
func callsInPages(t *testing.T, r *rig, limit int) (stages, contents map[string]string) {
	t.Helper()
	stages, contents = map[string]string{}, map[string]string{}
	for before := any(nil); ; {
		var page struct {
			Contents []struct{ Content json.RawMessage }
			Meta     struct{ BeforeCursor *string }
		}
		if err := json.Unmarshal(r.Call("chat/history", map[string]any{"chatId": "chat", "limit": limit, "before": before}), &page); err != nil {
			t.Fatal(err)
		}
		here := map[string][]string{}
		for _, c := range page.Contents {
			var is struct{ Type, ID string }
			if err := json.Unmarshal(c.Content, &is); err != nil {
				t.Fatal(err)
			}
			if stage, ok := strings.CutPrefix(is.Type, "toolCall"); ok {
				here[is.ID] = append(here[is.ID], stage)
				contents[is.ID] += string(c.Content) + "\n"
			}
		}
		for id, all := range here {
			stages[id] += strings.Join(all, " ") + ";"
		}
		if page.Meta.BeforeCursor == nil {
			return stages, contents
		}
		before = *page.Meta.BeforeCursor
	}
}

// With each page size, a tool call is on exactly one page, with all its stages. Otherwise, a client
// could take a stage on an older page for a new call.
func TestPagesKeepCallsWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - steps:
      - text: Looking.
        calls:
          - {id: a, tool: eca__directory_tree, arguments: {path: "${workspace}"}}
          - {id: b, tool: eca__directory_tree, arguments: {path: "${workspace}"}}
      - calls: [{id: c, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
      - {text: Seen.}
`})
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "chat", "message": "look"})
	r.Await(mark, "the end", fake.Finished())
	inAllPages(t, r, map[string]string{"a": "Prepare Run Running ed;", "b": "Prepare Run Running ed;", "c": "Prepare Run Running ed;"})
}

// A call that did not run is never shown as one that did, wherever its page begins: neither a call
// that the user rejected, nor one that cannot run.
func TestPagesOfCallsThatDidNotRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - steps:
      - calls:
          - {id: ran, tool: eca__directory_tree, arguments: {path: "${workspace}"}}
          - {id: unknown, tool: eca__nothing, arguments: {}}
          - {id: rejected, tool: eca__shell_command, arguments: {command: "touch new.txt"}}
`})
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "chat", "message": "go"})
	r.Await(mark, "the question", fake.Contains("chat/contentReceived", `"manualApproval":true`))
	r.Notify("chat/toolCallReject", map[string]any{"chatId": "chat", "toolCallId": "rejected"})
	r.Await(mark, "the end", fake.Finished())
	inAllPages(t, r, map[string]string{"ran": "Prepare Run Running ed;", "unknown": "Prepare Run ed;", "rejected": "Prepare Run Rejected;"})
}

// The page with a call also shows the call's progress, with each page size.
func TestPagesKeepHowFarCallsGot(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps:
      - calls: [{id: a, tool: eca__spawn_agent, arguments: {agent: explorer, task: "look around"}}]
      - {text: Done.}
  - user: 'look around'
    steps:
      - calls: [{id: b, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
      - {text: Nothing there.}
`})
	r.Call("chat/prompt", map[string]any{"chatId": "chat", "message": "delegate", "trust": true})
	r.Await(0, "the end", fake.Contains("chat/contentReceived", `"chatId":"chat"`, `"finished"`))
	inAllPages(t, r, map[string]string{"a": "Prepare Run Running ed;", "b": "Prepare Run Running ed;"})
	if _, whole := callsInPages(t, r, 0); !strings.Contains(whole["a"], `"step":1`) {
		t.Errorf("the history does not show the steps of the subagent: %s", whole["a"])
	}
}

// inAllPages requires the given stages of calls, and the same content, with any page size.
func inAllPages(t *testing.T, r *rig, want map[string]string) {
	t.Helper()
	_, whole := callsInPages(t, r, 0)
	for limit := range 9 {
		stages, contents := callsInPages(t, r, limit)
		if !maps.Equal(stages, want) {
			t.Errorf("%d messages a page: %v", limit, stages)
		}
		for id := range want {
			if contents[id] != whole[id] {
				t.Errorf("%d messages a page: %s is\n%sand not\n%s", limit, id, contents[id], whole[id])
			}
		}
	}
}
