package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// However a chat is cut into pages, a tool call stands in one of them, with all its
// stages: a client that knows a call from a newer page must not take it for a new one.
func TestPagesKeepCallsWhole(t *testing.T) {
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
	for limit := 1; limit <= 8; limit++ {
		stages := map[string]string{}
		pages := 0
		for before := any(nil); ; pages++ {
			var page struct {
				Contents []struct {
					Content struct{ Type, ID string }
				}
				Meta struct{ BeforeCursor *string }
			}
			if err := json.Unmarshal(r.Call("chat/history", map[string]any{"chatId": "chat", "limit": limit, "before": before}), &page); err != nil {
				t.Fatal(err)
			}
			here := map[string][]string{}
			for _, c := range page.Contents {
				if stage, ok := strings.CutPrefix(c.Content.Type, "toolCall"); ok {
					here[c.Content.ID] = append(here[c.Content.ID], stage)
				}
			}
			for id, all := range here {
				stages[id] += strings.Join(all, " ") + ";"
			}
			if page.Meta.BeforeCursor == nil {
				break
			}
			before = *page.Meta.BeforeCursor
		}
		for _, id := range []string{"a", "b", "c"} {
			if stages[id] != "Prepare Run Running ed;" {
				t.Errorf("%d messages a page, %d pages: call %s is %q", limit, pages+1, id, stages[id])
			}
		}
		if len(stages) != 3 {
			t.Errorf("calls: %v", stages)
		}
	}
}
