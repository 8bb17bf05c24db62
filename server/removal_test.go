package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// If a client removes messages while a turn runs, it gets exactly one end of the turn.
func TestRemovingMessagesEndsTheTurn(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]map[string]any{
		"chat/rollback": {"chatId": "c", "contentId": "", "include": []string{"messages"}},
		"chat/clear":    {"chatId": "c", "messages": true},
		"chat/delete":   {"chatId": "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{model: "cassette: 1\nturns:\n  - {user: one, steps: [{text: first}]}\n  - {user: two, steps: [{text: half, hang: true}]}\n  - {user: three, steps: [{text: last}]}\n"})
			prompt := func(text string) (mark int) {
				mark = r.Mark()
				r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})
				return mark
			}
			r.Await(prompt("one"), "the end", fake.Finished())
			mark := prompt("two")
			r.Await(mark, "the answer", fake.Content("text", "half"))
			if _, ok := params["contentId"]; ok {
				var second struct{ Content struct{ ContentID string } }
				for _, m := range r.Since(mark) {
					if strings.Contains(string(m.Params), `"text":"two\n"`) {
						_ = json.Unmarshal(m.Params, &second)
					}
				}
				params["contentId"] = second.Content.ContentID
			}
			r.Call(name, params)
			r.Await(mark, "the end", fake.Finished())
			if name != "chat/delete" {
				r.Await(mark, "the status", fake.Contains("chat/statusChanged", `"status":"idle"`))
				r.Await(prompt("three"), "the next end", fake.Finished())
			}
			ends := 0
			for _, m := range r.Since(mark) {
				if strings.Contains(string(m.Params), `"state":"finished"`) {
					ends++
				}
				if strings.Contains(string(m.Params), "eca ended before this turn") {
					t.Errorf("the stopped turn is shown as interrupted: %s", m.Params)
				}
			}
			if want := map[bool]int{true: 1, false: 2}[name == "chat/delete"]; ends != want {
				t.Errorf("%d ends were shown, not %d", ends, want)
			}
		})
	}
}
