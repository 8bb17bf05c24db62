package chat

import (
	"maps"
	"slices"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// A rule is known as long as its text is in what the model is sent.
func TestFetchedRules(t *testing.T) {
	h := newHistory()
	fetch := func(call, rule string, failed bool) {
		h.add(event.ToolProposed{Tool: event.Tool{CallID: call, Server: "eca", Name: "fetch_rule"}})
		h.add(event.ToolJudged{Tool: event.Tool{CallID: call, Server: "eca", Name: "fetch_rule"}})
		done := event.ToolFinished{CallID: call, Failed: failed, Outputs: []string{"text"}}
		if !failed {
			done.Details = &event.Details{Rule: &event.Rule{ID: rule}}
		}
		h.add(done)
	}
	known := func(what string, want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Values(h.rules)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", what, got)
		}
	}
	fetch("1", "/a", false)
	fetch("2", "/b", false)
	fetch("3", "/c", true)
	known("fetched", "/a", "/b")
	h.add(event.Pruned{CallIDs: []string{"1"}})
	known("a result left out", "/b")
	h.add(event.Compacted{Summary: "short"})
	known("compacted")
	fetch("4", "/b", false)
	known("fetched again", "/b")
}
