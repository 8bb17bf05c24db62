package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// Two daemons and one chat: while one runs a turn, the other's prompt is refused with
// the reason; afterwards it goes on with everything that was said meanwhile.
func TestTwoDaemonsOneChat(t *testing.T) {
	tape := "cassette: 1\nturns:\n  - steps: [{text: first, hang: true}]\n  - steps: [{text: second}]\n  - steps: [{text: third}]\n"
	a := newRig(t, options{model: tape})
	b := newRig(t, options{model: tape, state: a.state, root: a.root})
	prompt := func(r *rig, text string) string {
		t.Helper()
		return string(r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text}))
	}
	prompt(a, "one")
	a.Await(0, "the answer", fake.Content("text", "first"))

	mark := b.Mark()
	if res := prompt(b, "two"); !strings.Contains(res, `"status":"error"`) {
		t.Errorf("a prompt on a chat that runs elsewhere: %s", res)
	}
	b.Await(mark, "the reason", fake.Content("text", "another eca process", `"role":"system"`))
	b.Await(mark, "the end", fake.Finished())

	a.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	a.Await(0, "the end", fake.Finished())
	var res string
	for range 100 { // the lock is given back right after the end is shown
		mark = b.Mark()
		if res = prompt(b, "two"); strings.Contains(res, "prompting") {
			break
		}
	}
	b.Await(mark, "the answer", fake.Content("text", "second"))
	b.Await(mark, "the end", fake.Contains("chat/contentReceived", `"reason":"done"`))

	b.mu.Lock()
	defer b.mu.Unlock()
	var body struct{ Input []struct{ Content string } }
	if err := json.Unmarshal(b.requests[len(b.requests)-1].body, &body); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, item := range body.Input {
		said = append(said, item.Content)
	}
	if got := strings.Join(said, "|"); got != "one|first|two" {
		t.Errorf("the second daemon sent %s", got)
	}
}
