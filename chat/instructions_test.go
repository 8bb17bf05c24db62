package chat

import (
	"slices"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Instructions are known as long as they are in what the model is sent.
func TestInstructed(t *testing.T) {
	h := newHistory()
	call := func(id string, paths ...string) {
		tool := event.Tool{CallID: id, Server: "eca", Name: "read_file"}
		h.add(event.ToolProposed{Tool: tool})
		h.add(event.ToolJudged{Tool: tool})
		done := event.ToolFinished{CallID: id, Outputs: []string{"text"}}
		for _, p := range paths {
			done.Instructions = append(done.Instructions, event.Instructions{Path: p, Text: "<" + p + ">"})
		}
		h.add(done)
	}
	known := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, paths := range h.instructed {
			got = append(got, paths...)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v", what, got)
		}
	}
	call("1", "/a", "/a/b")
	call("2")
	call("3", "/c")
	known("given", "/a", "/a/b", "/c")
	h.add(event.Pruned{CallIDs: []string{"1"}})
	known("a result left out", "/c")
	h.add(event.Compacted{Summary: "short"})
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
