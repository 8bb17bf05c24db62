package server_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// Two daemons use one chat. While one runs a turn, the other one's prompt is refused with the
// reason. Afterwards, its turn continues with all messages of the first.
func TestTwoDaemonsOneChat(t *testing.T) {
	t.Parallel()
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
	mark = promptWhenFree(b, "two")
	b.Await(mark, "the answer", fake.Content("text", "second"))
	b.Await(mark, "the end", fake.Contains("chat/contentReceived", `"reason":"done"`))

	b.mu.Lock()
	defer b.mu.Unlock()
	var body struct {
		Input []struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(b.requests[len(b.requests)-1].body, &body); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, item := range body.Input {
		said = append(said, item.Content[0].Text)
	}
	if got := strings.Join(said, "|"); got != "one|first|two" {
		t.Errorf("the second daemon sent %s", got)
	}
}

// promptWhenFree sends a prompt until it is accepted: another daemon releases the chat's lock right after the end
// of its turn is shown. It returns the mark before the accepted prompt.
func promptWhenFree(r *rig, text string) (mark int) {
	for range 6000 {
		mark = r.Mark()
		if res := string(r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})); strings.Contains(res, "prompting") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return mark
}

// A daemon that opens an idle chat sees the other daemon's changes. Changes of both are kept, and
// neither deletes the chat while the other one runs a turn.
func TestTwoDaemonsShareAChat(t *testing.T) {
	t.Parallel()
	tape := "cassette: 1\nturns:\n  - steps: [{text: first}]\n  - steps: [{text: second}]\n  - steps: [{text: third, hang: true}]\n"
	a := newRig(t, options{model: tape})
	b := newRig(t, options{model: tape, state: a.state, root: a.root})
	prompt := func(r *rig, text string) {
		t.Helper()
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})
		r.Await(mark, "the end", fake.Finished())
	}
	prompt(a, "one")
	b.Call("chat/open", map[string]any{"chatId": "c"})
	prompt(a, "two")
	mark := b.Mark()
	b.Call("chat/open", map[string]any{"chatId": "c"})
	b.Await(mark, "the other's turn", fake.Content("text", "second"))

	a.Call("chat/update", map[string]any{"chatId": "c", "title": "A's title"})
	b.Call("chat/update", map[string]any{"chatId": "c", "trust": true})
	a.Notify("chat/selectedAgentChanged", map[string]any{"chatId": "c", "agent": "plan"})
	a.Await(0, "the change", fake.Contains("config/updated", `"chatId":"c"`))
	res := string(newRig(t, options{model: tape, state: a.state, root: a.root}).Call("chat/open", map[string]any{"chatId": "c"}))
	for _, want := range []string{`"title":"A's title"`, `"trust":true`, `"agent":"plan"`} {
		if !strings.Contains(res, want) {
			t.Errorf("no %s in %s", want, res)
		}
	}

	mark = a.Mark()
	a.Call("chat/prompt", map[string]any{"chatId": "c", "message": "three"})
	a.Await(mark, "the answer", fake.Content("text", "third"))
	if res, err := b.TryCall("chat/delete", map[string]any{"chatId": "c"}); err == nil || !strings.Contains(err.Error(), "another eca process") {
		t.Errorf("deleted under a turn: %s, %v", res, err)
	}
	a.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	a.Await(mark, "the end", fake.Finished())
	checkReplay(t, a, "c", a.Since(0))
}

// A daemon opens a chat while another one runs a turn of it. The turn is shown as it is, not as interrupted,
// and what follows is shown with the daemon's next prompt, whose own end is the only one.
func TestOpenWhileAnotherDaemonRuns(t *testing.T) {
	t.Parallel()
	tape := `
cassette: 1
turns:
  - {user: one, steps: [{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/made", content: "x"}}]}, {text: the second half}]}
  - {user: three, steps: [{text: alpha}]}
`
	a := newRig(t, options{model: tape})
	b := newRig(t, options{model: "cassette: 1\nturns:\n  - {user: two, steps: [{text: beta}]}\n", state: a.state, root: a.root})
	a.Call("chat/prompt", map[string]any{"chatId": "c", "message": "one"})
	a.Await(0, "the question", fake.Content("toolCallRun", "call_1"))

	b.Call("chat/open", map[string]any{"chatId": "c"})
	b.Await(0, "where the turn runs", fake.Content("text", "runs in another eca process"))
	b.Await(0, "the call", fake.Content("toolCallRun", "call_1", `"manualApproval":false`))
	for _, m := range b.Since(0) {
		if strings.Contains(string(m.Params), "Interrupted") || strings.Contains(string(m.Params), "toolCallRejected") {
			t.Errorf("a running turn was shown as ended: %s", m.Params)
		}
	}

	a.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
	a.Await(0, "the end", fake.Finished())
	mark := promptWhenFree(b, "two")
	b.Await(mark, "the end", fake.Finished())
	var shown []string
	for _, m := range b.Since(mark) {
		for _, want := range []string{"toolCalled", "the second half", `"two\n"`, "beta", `"state":"finished"`} {
			if m.Method == "chat/contentReceived" && strings.Contains(string(m.Params), want) {
				shown = append(shown, want)
			}
		}
	}
	if got := strings.Join(shown, ", "); got != `toolCalled, the second half, "two\n", beta, "state":"finished"` {
		t.Errorf("with its next prompt, the second daemon showed %s", got)
	}

	// The first daemon has shown the chat before. It catches up in the same way.
	mark = promptWhenFree(a, "three")
	a.Await(mark, "its own end", fake.Finished())
	shown = nil
	for _, m := range a.Since(mark) {
		for _, want := range []string{`"two\n"`, "beta", `"three\n"`, "alpha", `"state":"finished"`} {
			if m.Method == "chat/contentReceived" && strings.Contains(string(m.Params), want) {
				shown = append(shown, want)
			}
		}
	}
	if got := strings.Join(shown, ", "); got != `"two\n", beta, "three\n", alpha, "state":"finished"` {
		t.Errorf("with its next prompt, the first daemon showed %s", got)
	}
}
