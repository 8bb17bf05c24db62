package history

import (
	"slices"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Rules lists a rule as long as the model is sent its text.
func TestRules(t *testing.T) {
	h := New()
	fetch := func(call, rule string, failed bool) {
		h.Add(event.ToolProposed{Tool: event.Tool{CallID: call, Server: "eca", Name: "fetch_rule"}})
		h.Add(event.ToolJudged{Tool: event.Tool{CallID: call, Server: "eca", Name: "fetch_rule"}})
		done := event.ToolFinished{CallID: call, Failed: failed, Outputs: []string{"text"}}
		if !failed {
			done.Details = &event.Details{Rule: &event.Rule{ID: rule}}
		}
		h.Add(done)
	}
	known := func(what string, want ...string) {
		t.Helper()
		if got := h.Rules(); !slices.Equal(got, want) {
			t.Errorf("%s: %v", what, got)
		}
	}
	fetch("1", "/a", false)
	fetch("2", "/b", false)
	fetch("3", "/c", true)
	known("fetched", "/a", "/b")
	h.Add(event.Pruned{CallIDs: []string{"1"}})
	known("a result left out", "/b")
	h.Add(event.Compacted{Summary: "short"})
	known("compacted")
	fetch("4", "/b", false)
	known("fetched again", "/b")
}

// InstructedFiles lists a file as long as the model is sent its instructions.
func TestInstructedFiles(t *testing.T) {
	h := New()
	call := func(id string, paths ...string) {
		tool := event.Tool{CallID: id, Server: "eca", Name: "read_file"}
		h.Add(event.ToolProposed{Tool: tool})
		h.Add(event.ToolJudged{Tool: tool})
		done := event.ToolFinished{CallID: id, Outputs: []string{"text"}}
		for _, p := range paths {
			done.Instructions = append(done.Instructions, event.Instructions{Path: p, Text: "<" + p + ">"})
		}
		h.Add(done)
	}
	known := func(what string, want ...string) {
		t.Helper()
		got := h.InstructedFiles()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v", what, got)
		}
	}
	call("1", "/a", "/a/b")
	call("2")
	call("3", "/c")
	known("given", "/a", "/a/b", "/c")
	h.Add(event.Pruned{CallIDs: []string{"1"}})
	known("a result left out", "/c")
	h.Add(event.Compacted{Summary: "short"})
	known("compacted")
}

func TestJoinInstructions(t *testing.T) {
	list := []event.Instructions{{Path: "/a", Text: "<a>"}, {Path: "/b", Text: "<b>\n"}}
	for text, want := range map[string]string{
		"":    "\n" + instructionsIntroduction + "<a>\n<b>\n",
		"x":   "x\n\n" + instructionsIntroduction + "<a>\n<b>\n",
		"x\n": "x\n\n" + instructionsIntroduction + "<a>\n<b>\n",
	} {
		if got := joinInstructions(text, list); got != want {
			t.Errorf("%q: %q", text, got)
		}
		if got := joinInstructions(text, nil); got != text {
			t.Errorf("nothing to say: %q", got)
		}
	}
}

// A turn that asks no model does not count as a switch: the next one does, and is noted.
func TestModelChange(t *testing.T) {
	var c modelChange
	turn := func(model string, m event.UserMessage) string {
		c.add(m)
		c.add(event.TurnStarted{Model: model})
		return c.previous + ">" + c.current
	}
	for i, s := range []struct {
		model   string
		message event.UserMessage
		want    string
	}{
		{"a", event.UserMessage{}, ">a"},
		{"b", event.UserMessage{Command: true}, ">a"}, // /compact with another model
		{"b", event.UserMessage{Command: true, Prompt: "write AGENTS.md"}, "a>b"},
		{"b", event.UserMessage{}, "b>b"},
		{"a", event.UserMessage{}, "b>a"},
	} {
		if got := turn(s.model, s.message); got != s.want {
			t.Errorf("turn %d: %s, not %s", i+1, got, s.want)
		}
	}
}
