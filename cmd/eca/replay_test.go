package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A chat is replayed to its end in which the user refused calls, steered the model and compacted
// the chat, the configuration refused a call, a tool did not exist, and the context overflowed
// twice. Each call that did not run is recorded with its verdict.
func TestReplayOfDecisions(t *testing.T) {
	needs.Long(t)
	for name, compact := range map[string]string{"summaries by the chat's model": "{}", "summaries by another": `{"model": "openai/s"}`} {
		t.Run(name, func(t *testing.T) { replayDecisions(t, compact) })
	}
}

func replayDecisions(t *testing.T, compact string) {
	p := newProvider(t, `
cassette: 1
turns:
  - user: '^change'
    steps:
      - calls: [{id: c1, tool: eca__shell_command, arguments: {command: "touch one"}}]
      - calls:
          - {id: c2, tool: eca__shell_command, arguments: {command: "touch one"}}
          - {id: c3, tool: eca__nothing, arguments: {}}
          - {id: c4, tool: eca__directory_tree, arguments: {path: /secret}}
      - {text: "lost"}
  - {user: '^also', steps: [{text: "changed it, bye"}]}
  - user: '^refuse'
    steps:
      - calls:
          - {id: c5, tool: eca__shell_command, arguments: {command: "touch two"}}
          - {id: c6, tool: eca__read_file, arguments: {path: "${workspace}/nothing.txt"}}
  - {user: '^Summarize', steps: [{text: "They changed one."}]}
  - {user: '^user: ', steps: [{text: "They changed one."}]} # what another model is given
  - {user: '^short', steps: [{text: "A short answer.", usage: {input: 60, output: 10}}]}
  - {user: '^long', steps: [{text: "A long answer.", usage: {input: 3000, output: 900}}]}
  - {user: '^after', steps: [{text: "Short.", usage: {input: 60, output: 10}}]}
  - user: '^mid'
    steps:
      - calls: [{id: c7, tool: eca__read_file, arguments: {path: "${workspace}/nothing.txt"}}]
        usage: {input: 3800, output: 50}
  - {user: '^This conversation was compacted', steps: [{text: "Done.", usage: {input: 60, output: 10}}]}
`)
	here := newPlace(t, append(p.env(), `ECA_CONFIG={"chat": {"title": false}, "defaultModel": "openai/m", "providers": {"openai": {"models": {"m": {"limit": {"context": 5000, "output": 500}}, "s": {"limit": {"context": 3000, "output": 500}}}}}, "compact": `+compact+`,
		"toolCall": {"approval": {"allow": {"eca__read_file": {}}, "ask": {"eca__shell_command": {}}, "deny": {"eca__directory_tree": {"argsMatchers": {"path": ["/secret"]}}}}}}`)...)
	e := here.serve(t)
	e.Open(here.root, nil)
	say := func(text string) (mark int) {
		mark = e.Mark()
		e.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})
		return mark
	}
	asks := func(mark int, id string) {
		e.Await(mark, "the question about "+id, fake.Content("toolCallRun", `"manualApproval":true`, `"id":"`+id+`"`))
	}
	mark := say("change it")
	asks(mark, "c1")
	e.Notify("chat/toolCallReject", map[string]any{"chatId": "c", "toolCallId": "c1", "goOn": true})
	asks(mark, "c2")
	e.Notify("chat/promptSteer", map[string]any{"chatId": "c", "message": "also say bye"})
	e.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "c2"})
	e.Await(mark, "the end", fake.Finished())
	mark = say("refuse it")
	asks(mark, "c5")
	e.Notify("chat/toolCallReject", map[string]any{"chatId": "c", "toolCallId": "c5"})
	e.Await(mark, "the end", fake.Finished())
	for _, text := range []string{"/compact", "short question", "long question", "after that", "mid turn"} {
		e.Await(say(text), "the end of "+text, fake.Finished())
	}
	shutDown(t, e)

	c := chainOf(t, here)
	if _, err := c.Verify(); err != nil {
		t.Fatal(err)
	}
	calls, err := c.Calls("c")
	if err != nil {
		t.Fatal(err)
	}
	if wanted := strings.Contains(compact, "openai/s"); wanted != slices.ContainsFunc(calls, func(c journal.Call) bool { return *c.Request.Target.Variant == "openai/s" }) {
		t.Errorf("a request went to the summary model openai/s: %v, want %v", !wanted, wanted)
	}
	var refused []string
	ids := map[esrp.UUID]string{}
	for _, call := range calls {
		ids[call.Request.ID] = call.Request.Target.Operation
		if call.Response == nil || call.Response.Error == nil {
			continue
		}
		why, ok := call.Response.Error.Details.Get(journal.Refused)
		if !ok {
			continue
		}
		id, _ := call.Request.Params.Get("call_id")
		decision, _ := call.Response.Error.Details.Get("decision")
		cause := "nothing"
		if call.Request.CausationID != nil {
			cause = ids[*call.Request.CausationID]
		}
		if call.Request.Caller.AgentID == nil || *call.Request.Caller.AgentID != "code" {
			t.Errorf("%s was refused to %v", id.Text, call.Request.Caller.AgentID)
		}
		refused = append(refused, strings.Join([]string{id.Text, call.Request.Target.Operation, decision.Text, why.Text, "by", cause}, " "))
	}
	want := []string{
		"c1 eca__shell_command ask " + string(event.RejectedByUser) + " by chat", "c3 eca__nothing deny invalid by chat",
		"c4 eca__directory_tree deny " + string(event.RejectedByConfig) + " by chat", "c5 eca__shell_command ask " + string(event.RejectedByUser) + " by chat",
	}
	if strings.Join(refused, "\n") != strings.Join(want, "\n") {
		t.Errorf("refused:\n%s\nwant\n%s", strings.Join(refused, "\n"), strings.Join(want, "\n"))
	}
	r, err := daemon.Replay(context.Background(), c, "c")
	if err != nil || r.NotReplayed != "" || r.Turns != 7 || r.Requests != 12 {
		t.Errorf("replayed %+v, %v", r, err)
	}
}
