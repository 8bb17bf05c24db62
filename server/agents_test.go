package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// If eca substitutes an agent that has more rights than the chat's agent, the chat says so.
func TestSubstituteWithMoreRightsIsSaid(t *testing.T) {
	t.Parallel()
	const tape = "cassette: 1\ndefault: {steps: [{text: fine}]}\nturns: []\n"
	first := newRig(t, options{model: tape, config: map[string]any{"agent": map[string]any{"careful": map[string]any{"readOnly": true}}}})
	first.Await(0, "the start", fake.Ready())
	first.turn(t, map[string]any{"chatId": "c", "message": "one", "agent": "careful"})
	first.Close()
	r := newRig(t, options{model: tape, state: first.state, root: first.root})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": "two", "trust": true})
	r.Await(mark, "the rights of a removed agent", fake.Content("text", "careful", "continues with", "code", "can change files and run commands", "more rights", "can only read", "Auto-approve is on"))
	mark = r.Mark()
	r.turn(t, map[string]any{"chatId": "new", "message": "one", "agent": "explorer"})
	r.Await(mark, "the rights of an agent for subagents", fake.Content("text", "explorer", "more rights", "can only read"))
	mark = r.Mark()
	r.Notify("chat/selectedAgentChanged", map[string]any{"chatId": "c", "agent": "explorer"})
	r.Await(mark, "the warning", fake.Contains("$/showMessage", "explorer", "code", "more rights"))
}

// A chat whose agent does not exist any more continues with the user's default, and says so.
func TestUnknownAgentIsSaid(t *testing.T) {
	t.Parallel()
	const tape = "cassette: 1\ndefault: {steps: [{text: fine}]}\nturns: []\n"
	first := newRig(t, options{model: tape, config: map[string]any{"agent": map[string]any{"careful": map[string]any{}}}})
	first.Await(0, "the start", fake.Ready())
	first.turn(t, map[string]any{"chatId": "c", "message": "one", "agent": "careful"})
	first.Close()
	r := newRig(t, options{model: tape, state: first.state, root: first.root, config: map[string]any{"defaultAgent": "plan"}})
	r.Await(0, "the start", fake.Ready())
	for i, params := range []map[string]any{
		{"chatId": "c", "message": "two"},
		{"chatId": "new", "message": "one", "agent": "paln"},
	} {
		mark := r.Mark()
		r.turn(t, params)
		name := []string{"careful", "paln"}[i]
		r.Await(mark, "the reason", fake.Content("text", name, "continues with", "plan"))
		mark = r.Mark()
		r.turn(t, map[string]any{"chatId": params["chatId"], "message": "again"})
		for _, m := range r.Since(mark) {
			if strings.Contains(m.String(), "continues with") {
				t.Errorf("the chat names the substitute again in the next turn: %s", m)
			}
		}
	}
	mark := r.Mark()
	r.Notify("chat/selectedAgentChanged", map[string]any{"chatId": "c", "agent": "nobody"})
	r.Await(mark, "the warning", fake.Contains("$/showMessage", "nobody", "plan"))
}

// An agent that is picked for a chat brings its tools, regardless of the agent of new chats.
func TestPickedAgentBringsItsTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault: {steps: [{text: fine}]}\nturns: []\n"})
	r.Await(0, "the start", fake.Ready())
	r.turn(t, map[string]any{"chatId": "c", "message": "hi"})
	for agent, disabled := range map[string]bool{"plan": true, "code": false} {
		mark := r.Mark()
		r.Notify("chat/selectedAgentChanged", map[string]any{"chatId": "c", "agent": agent})
		r.Await(mark, "the tools", fake.Contains("tool/serverUpdated", `"native"`))
		for _, m := range r.Since(mark) {
			var p struct {
				Type  string
				Tools []struct {
					Name     string
					Disabled bool
				}
			}
			if m.Method != "tool/serverUpdated" || json.Unmarshal(m.Params, &p) != nil || p.Type != "native" {
				continue
			}
			for _, tool := range p.Tools {
				if tool.Name == "write_file" && tool.Disabled != disabled {
					t.Errorf("%s: write_file is disabled: %t", agent, tool.Disabled)
				}
			}
		}
	}
}
