package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// spawn is a call of spawn_agent in a cassette.
func spawn(id, agent, task, more string) string {
	return fmt.Sprintf("{id: %s, tool: eca__spawn_agent, arguments: {agent: %s, task: %q%s}}", id, agent, task, more)
}

// resumeIt makes a call of spawn_agent continue the subagent that the last results offer.
const resumeIt = `, resume: '${result:resume "(subagent-[0-9a-f]+)"}'`

// heardCall is a tool call in the client's messages.
type heardCall struct {
	Type, ID, Name, Reason string
	ManualApproval         bool
	Error                  bool
	Outputs                []struct{ Text string }
	Details                struct {
		SubagentChatID, Model, AgentName, Variant string
		Step, MaxSteps                            int
	}
}

// calls returns the stages of a type in a chat, in order.
func calls(t *testing.T, heard []fake.Message, kind string) (out []heardCall) {
	t.Helper()
	for _, m := range heard {
		var p struct{ Content heardCall }
		if m.Method == "chat/contentReceived" && json.Unmarshal(m.Params, &p) == nil && p.Content.Type == kind {
			out = append(out, p.Content)
		}
	}
	return out
}

// childOf returns the chat of the subagent that a call started.
func childOf(t *testing.T, r *rig, call string) string {
	t.Helper()
	r.Await(0, "the run of "+call, fake.Content("toolCallRun", `"id":"`+call+`"`, `"subagentChatId":"`))
	for _, c := range calls(t, r.Since(0), "toolCallRun") {
		if c.ID == call {
			return c.Details.SubagentChatID
		}
	}
	return ""
}

// ofChat expects a content of a chat.
func ofChat(chat string, pieces ...string) fake.Expectation {
	return fake.Contains("chat/contentReceived", append([]string{`"chatId":"` + chat + `"`}, pieces...)...)
}

// sameInReplay compares what a replay shows of chats with what was shown live.
func sameInReplay(t *testing.T, r *rig, live []fake.Message, parent string, children ...string) {
	t.Helper()
	mark := r.Mark()
	checkReplay(t, r, parent, live)
	for _, chat := range children {
		want, got := lastingView(t, chat, live), lastingView(t, chat, r.Since(mark))
		if len(want) == 0 || strings.Join(want, "\n") != strings.Join(got, "\n") {
			t.Errorf("the replay shows of %s\n%s\nlive it was\n%s", chat, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		checkPlace(t, r.Since(mark), chat)
	}
}

// checkPlace reports contents of a child before or after its call, and contents that some clients
// would take for the parent's.
func checkPlace(t *testing.T, heard []fake.Message, child string) {
	t.Helper()
	running := false
	for i, m := range heard {
		text := m.String()
		switch call := strings.Contains(text, `"subagentChatId":"`+child+`"`); {
		case call && strings.Contains(text, `"toolCallRunning"`):
			running = true
		case call && !strings.Contains(text, `"toolCallRun"`):
			running = false
		}
		if !strings.Contains(text, `"chatId":"`+child+`"`) {
			continue
		}
		if !running {
			t.Errorf("message %d is not inside of the call: %s", i, text)
		}
		if m.Method != "chat/contentReceived" || strings.Contains(text, `"progress"`) || strings.Contains(text, `"metadata"`) {
			t.Errorf("the client hears of a child: %s", text)
		}
	}
}

// Eight subagents run concurrently; two fail and the user stops one. The parent continues with all
// outcomes, their cost is counted once, and a replay shows the same.
func TestSubagentsInParallel(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 8 {
		task := fmt.Sprintf("part %d", i)
		switch i {
		case 2, 5:
			task = "bad part"
		case 7:
			task = "slow part"
		}
		list = append(list, spawn(fmt.Sprintf("call_%d", i), "explorer", task, ""))
	}
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps:
      - {calls: [` + strings.Join(list, ", ") + `], usage: {input: 1000, output: 0}}
      - {text: 'All in all: ${result:(?s).*}', usage: {input: 1000, output: 0}}
  - {user: '^bad', steps: [{text: "so far", error: {status: 400, message: "broken", late: true}}]}
  - {user: '^slow', steps: [{text: "on and", hang: true}]}
  - user: '^part'
    steps:
      - {text: "Looking.", calls: [{id: call_1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}], usage: {input: 1000, output: 0}}
      - {text: "found it", usage: {input: 1000, output: 0}}
`, config: map[string]any{"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"m": map[string]any{
		"limit": map[string]any{"context": 100000, "output": 100}, "cost": map[string]any{"input": 1000, "output": 0},
	}}}}}})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	slow := childOf(t, r, "call_7")
	r.Await(0, "the slow one", ofChat(slow, `"assistant"`, "on"))
	r.Notify("chat/promptStop", map[string]any{"chatId": slow})
	r.Await(0, "the end", ofChat("c", `"finished"`, `"done"`))
	heard := r.Since(0)
	ended := calls(t, heard, "toolCalled")
	ended = slices.DeleteFunc(ended, func(c heardCall) bool { return c.Name != "spawn_agent" })
	if len(ended) != 8 {
		t.Fatalf("%d ends: %v", len(ended), ended)
	}
	var children []string
	for _, c := range ended {
		children = append(children, c.Details.SubagentChatID)
		want, failed, steps := "found it", false, 1
		switch c.ID {
		case "call_2", "call_5":
			want, failed, steps = "so far", true, 0
		case "call_7":
			want, failed, steps = "stopped by the user", true, 0
		}
		if c.Error != failed || !strings.Contains(c.Outputs[0].Text, want) || c.Details.Step != steps || c.Details.AgentName != "explorer" || c.Details.Model != "mock/m" {
			t.Errorf("%+v", c)
		}
		if failed && (!strings.Contains(c.Outputs[0].Text, `resume "`+c.Details.SubagentChatID) || c.ID != "call_7" && !strings.Contains(c.Outputs[0].Text, "broken")) {
			t.Errorf("why and how to go on: %s", c.Outputs[0].Text)
		}
		checkPlace(t, heard, c.Details.SubagentChatID)
	}
	if n := indexOf(heard, `"toolCallRunning"`, `"step":1`); n < 0 {
		t.Error("no progress")
	}
	// Each of the five that ended sent two requests for a dollar each, and so did the parent.
	if n := indexOf(heard, `"chatId":"c"`, `"sessionCost":"12.00"`); n < 0 {
		t.Errorf("the cost: %v", slices.DeleteFunc(slices.Clone(heard), func(m fake.Message) bool { return !strings.Contains(m.String(), "sessionCost") }))
	}
	sameInReplay(t, r, heard, "c", children...)
	again := newRig(t, options{state: r.state, root: r.root})
	sameInReplay(t, again, heard, "c", children...)
	if costs := ask(t, again, "c", "/costs"); !strings.Contains(costs, "| (subagents) | 10 |") || !strings.Contains(costs, "| $10.0000 |") {
		t.Errorf("costs: %s", costs)
	}
}

// Questions about a child's calls have the child's chat; the answer may name either chat. A child
// continues after a rejection, and its changes are undone with its parent's turn.
func TestSubagentApprovalAndRollback(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"child", "parent"} {
		t.Run(of, func(t *testing.T) {
			r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps: [{calls: [` + spawn("call_1", "general", "write", "") + `]}, {text: Done.}]
  - user: '^write'
    steps:
      - {calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/one.txt", content: x}}, {id: w2, tool: eca__write_file, arguments: {path: "${workspace}/a.txt", content: x}}]}
      - {text: 'Then: ${result:rejected this call}'}
`})
			r.save(t, filepath.Join(r.root, "a.txt"), "old")
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
			child := childOf(t, r, "call_1")
			chat := map[string]string{"child": child, "parent": "c"}[of]
			r.Await(0, "the first", ofChat(child, `"toolCallRun"`, `"w1"`, `"manualApproval":true`))
			r.Notify("chat/toolCallReject", map[string]any{"chatId": chat, "toolCallId": "w1"})
			r.Await(0, "the second", ofChat(child, `"toolCallRun"`, `"w2"`, `"manualApproval":true`))
			r.Notify("chat/toolCallApprove", map[string]any{"chatId": chat, "toolCallId": "w2"})
			r.Await(0, "the end", ofChat("c", `"finished"`, `"done"`))
			r.Await(0, "the result", ofChat("c", `"toolCalled"`, "Then: rejected this call", `"error":false`))
			if got := readFile(t, filepath.Join(r.root, "a.txt")); got != "x" {
				t.Errorf("a.txt is %q", got)
			}
			sameInReplay(t, r, r.Since(0), "c", child)
			r.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": contentID(t, r, "delegate")})
			if got := readFile(t, filepath.Join(r.root, "a.txt")); got != "old" {
				t.Errorf("a.txt is %q after the rollback", got)
			}
			// The id of the call is used again: its subagent starts from the beginning.
			mark := r.Mark()
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate", "trust": true})
			r.Await(mark, "the end", ofChat("c", `"finished"`, `"done"`))
			if body := r.bodies()[len(r.bodies())-2]; strings.Contains(body, "rejected") {
				t.Errorf("the subagent knows what was taken back: %s", body)
			}
		})
	}
}

// A subagent may do no more than its parent, even if its own agent allows more. If the user trusts
// the parent's chat, that counts for the subagent from then on.
func TestSubagentAuthority(t *testing.T) {
	t.Parallel()
	free := map[string]any{"approval": map[string]any{"byDefault": "allow"}}
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps: [{calls: [` + spawn("call_1", "free", "write", "") + `]}, {text: Done.}]
  - user: '^write'
    steps:
      - calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/one.txt", content: x}}]
      - calls: [{id: w2, tool: eca__write_file, arguments: {path: "${workspace}/two.txt", content: x}}]
      - calls: [{id: m1, tool: eca__move_file, arguments: {source: "${workspace}/one.txt", destination: "${workspace}/three.txt"}}]
      - calls: [{id: s1, tool: eca__spawn_agent, arguments: {agent: free, task: write}}, {id: s2, tool: eca__task, arguments: {op: read}}]
      - {text: 'End'}
`, config: map[string]any{"agent": map[string]any{
		"code": map[string]any{"toolCall": map[string]any{"approval": map[string]any{"byDefault": "ask", "allow": map[string]any{"eca__spawn_agent": map[string]any{}}, "deny": map[string]any{"eca__glob": map[string]any{}, "eca__move_file": map[string]any{"argsMatchers": map[string]any{"source": []any{".*"}}}}}}},
		"free": map[string]any{"mode": "subagent", "toolCall": free},
	}}})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	child := childOf(t, r, "call_1")
	r.Await(0, "the first", ofChat(child, `"toolCallRun"`, `"w1"`, `"manualApproval":true`))
	r.Call("chat/update", map[string]any{"chatId": "c", "trust": true})
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": child, "toolCallId": "w1"})
	r.Await(0, "the second", ofChat(child, `"toolCallRun"`, `"w2"`, `"manualApproval":false`))
	r.Await(0, "the denied one", ofChat(child, `"toolCallRejected"`, `"m1"`, "userConfigDeny"))
	r.Await(0, "no nesting", ofChat(child, `"toolCalled"`, `"s1"`, "not found", `"error":true`))
	r.Await(0, "no tasks", ofChat(child, `"toolCalled"`, `"s2"`, "not found"))
	r.Await(0, "the end", ofChat("c", `"finished"`, `"done"`))
	for _, b := range r.bodies()[1:] {
		if strings.Contains(b, "write") && strings.Contains(b, `"name":"eca__spawn_agent","parameters"`) && !strings.Contains(b, "delegate") {
			t.Errorf("a subagent is offered spawn_agent: %s", b)
		}
		if strings.Contains(b, `"name":"eca__glob"`) || !strings.Contains(b, `"name":"eca__grep"`) {
			t.Errorf("the tools of a subagent are not those of its parent: %s", b)
		}
	}
}

// Stopping the parent ends its subagents, first in their own chats. No call keeps waiting for
// approval.
func TestStopOfSubagents(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps: [{calls: [` + spawn("call_1", "general", "write", "") + ", " + spawn("call_2", "general", "wait", "") + `]}]
  - {user: '^write', steps: [{text: "Writing.", calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/one.txt", content: x}}]}]}
  - {user: '^wait', steps: [{text: "on and", hang: true}]}
  - {user: '^more', steps: [{text: 'Heard: ${result:.*}'}]}
`, config: map[string]any{"chat": map[string]any{"title": true}}})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	one, two := childOf(t, r, "call_1"), childOf(t, r, "call_2")
	r.Await(0, "the question", ofChat(one, `"toolCallRun"`, `"manualApproval":true`))
	r.Await(0, "the text", ofChat(two, "on"))
	r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	r.Await(0, "the end", ofChat("c", `"finished"`, `"stopped"`))
	for _, b := range r.bodies() {
		if strings.Contains(b, "Title generator") && !strings.Contains(b, "delegate") {
			t.Errorf("a title for a subagent: %s", b)
		}
	}
	heard := r.Since(0)
	inner, outer := indexOf(heard, `"toolCallRejected"`, `"w1"`), indexOf(heard, `"toolCallRejected"`, `"call_1"`)
	if inner < 0 || inner > outer || count(heard, "Prompt stopped") != 1 {
		t.Errorf("the inner call ends at %d, the outer one at %d", inner, outer)
	}
	checkPlace(t, heard, one)
	checkPlace(t, heard, two)
	sameInReplay(t, r, heard, "c", one, two)
	ask(t, r, "c", "more")
	if body := lastRequest(r); !strings.Contains(body, "resume \\\""+one) || !strings.Contains(body, "resume \\\""+two) {
		t.Errorf("the model does not know how they go on: %s", body)
	}
}

// A subagent continues by the id of its chat, with its history. Errors for invalid requests name
// the valid values. Steps are limited.
func TestSubagentResumeAndLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps: [{calls: [` + spawn("call_1", "short", "look", ", activity: looking") + `]}, {text: Done.}]
  - user: '^again'
    steps:
      - calls: [` + strings.Join([]string{
		spawn("call_2", "short", "go on", resumeIt+", variant: low"),
		spawn("bad_1", "explorer", "go on", resumeIt),
		spawn("bad_2", "short", "go on", `, resume: "subagent-nope"`),
		spawn("bad_3", "nobody", "x", ""), spawn("bad_4", "code", "x", ""), spawn("bad_5", "private", "x", ""),
		spawn("bad_6", "short", "x", ", model: nix/nix"), spawn("bad_7", "short", "x", ", variant: nix"), spawn("bad_8", "short", " ", ""),
	}, ", ") + `]
      - {text: Done.}
  - user: '^look'
    steps:
      - {text: "First I look.", calls: [{id: t1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]}
      - {text: "Then again.", calls: [{id: t2, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]}
  - {user: '^go on', steps: [{text: "And that is that."}]}
`, config: map[string]any{
		"agent": map[string]any{
			"short":   map[string]any{"mode": "subagent", "maxSteps": 1, "description": "Short\nof it."},
			"private": map[string]any{"mode": "subagent", "spawnableBy": "plan"},
		},
		"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"m": map[string]any{"variants": map[string]any{"low": map[string]any{"top_p": 0.5}}}}}},
	}})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	r.Await(0, "the end", ofChat("c", `"finished"`, `"done"`))
	child := childOf(t, r, "call_1")
	first := r.Since(0)
	if i := indexOf(first, `"toolCalled"`, "call_1", `"error":true`, "limit of 1 steps", "Then again.", `"maxSteps":1`, `"step":1`, `"summary":"short: looking"`); i < 0 {
		t.Errorf("the limit: %+v", calls(t, first, "toolCalled"))
	}
	if b := r.bodies()[0]; !strings.Contains(b, "- short: Short of it.") || strings.Contains(b, "private") {
		t.Errorf("the agents that are offered: %s", b)
	}
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "again"})
	r.Await(mark, "the end", ofChat("c", `"finished"`, `"done"`))
	for id, want := range map[string]string{
		"call_2": "And that is that.", "bad_1": "belongs to the agent short", "bad_2": "no subagent", "bad_3": "available: explorer, general, short", "bad_4": "unknown subagent",
		"bad_5": "unknown subagent", "bad_6": "mock/m", "bad_7": "available: low", "bad_8": "the task is empty",
	} {
		failed := fmt.Sprintf(`"error":%v`, id != "call_2")
		if i := indexOf(r.Since(mark), `"toolCalled"`, `"id":"`+id+`"`, want, failed); i < 0 {
			t.Errorf("%s has no %q: %+v", id, want, calls(t, r.Since(mark), "toolCalled"))
		}
	}
	resumed := ""
	for _, b := range r.bodies() {
		if strings.Contains(b, `"go on"`) && !strings.Contains(b, "delegate") {
			resumed = b
		}
	}
	if !hasAll(resumed, []string{"First I look.", "Then again.", "go on", `"top_p":0.5`}) {
		t.Errorf("what the resumed one is sent: %s", resumed)
	}
	sameInReplay(t, r, append(first, r.Since(mark)...), "c", child)

	// Client requests with the subagent's id apply to its parent, or have no effect.
	mark = r.Mark()
	if got := string(r.Call("chat/open", map[string]any{"chatId": child})); got != `{"found":false}` {
		t.Errorf("open: %s", got)
	}
	for _, method := range []string{"chat/rollback", "chat/clear", "chat/fork", "chat/delete", "chat/update"} {
		r.Call(method, map[string]any{"chatId": child, "contentId": "x", "messages": true, "title": "t"})
	}
	if heard := r.Since(mark); len(heard) > 0 {
		t.Errorf("heard %v", heard)
	}
	if got := string(r.Call("chat/prompt", map[string]any{"chatId": child, "message": "go on"})); !strings.Contains(got, `"chatId":"c"`) {
		t.Errorf("a prompt to a child: %s", got)
	}
	r.Await(mark, "the end", ofChat("c", `"finished"`, `"done"`))
	if _, order := listChats(t, r, nil); !slices.Equal(order, []string{"c"}) {
		t.Errorf("chats: %v", order)
	}
	r.Call("chat/delete", map[string]any{"chatId": "c"})
	if _, ok := r.daemon.Engine().Parent(t.Context(), child); ok {
		t.Error("a child outlives its parent")
	}
}

// A background subagent: the call ends at once, the result is in the next request, and the turn
// waits for it. The user is not asked.
func TestSubagentInBackground(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps:
      - calls: [` + spawn("call_1", "general", "write", ", background: true") + ", " + spawn("call_2", "general", "quick", ", background: true") + `]
      - {text: Meanwhile.}
  - user: '^<subagent-report agent="general"'
    steps: [{text: 'Heard.'}]
  - user: '^write'
    steps:
      - calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/one.txt", content: x}}]
      - {text: 'So: ${result:needs the user.s approval}'}
  - {user: '^quick', steps: [{text: "That was quick."}]}
  - {user: '^more', steps: [{text: "Yes."}]}
  - user: '^forever'
    steps: [{calls: [` + spawn("call_3", "general", "hang", ", background: true") + `]}, {text: Meanwhile.}]
  - {user: '^hang', steps: [{text: "on and", hang: true}]}
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	r.Await(0, "the end", ofChat("c", `"finished"`, `"done"`))
	heard := r.Since(0)
	if n := count(heard, `"system"`, "in the background has finished."); n != 2 {
		t.Errorf("%d reports", n)
	}
	ask(t, r, "c", "more")
	if b := lastRequest(r); !hasAll(b, []string{"is running in the background", "So: needs the user's approval", "That was quick.", "Heard."}) {
		t.Errorf("the model was sent %s", b)
	}
	if _, err := os.Stat(filepath.Join(r.root, "one.txt")); err == nil {
		t.Error("it was written without asking")
	}
	for _, m := range heard {
		if strings.Contains(m.String(), `"chatId":"subagent-`) {
			t.Errorf("behind the end of its call, a child is shown: %s", m)
		}
	}
	replayed := r.Mark()
	r.Call("chat/open", map[string]any{"chatId": "c"})
	checkPlace(t, r.Since(replayed), childOf(t, r, "call_1"))
	if indexOf(r.Since(replayed), `"parentChatId":"c"`, "That was quick.") < 0 {
		t.Error("the replay does not show what it did")
	}

	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "forever"})
	r.Await(mark, "the wait", ofChat("c", "Waiting subagent"))
	r.Await(mark, "the wait at the end", fake.Times(2, "chat/contentReceived", "Waiting subagent"))
	r.Notify("chat/promptSteer", map[string]any{"chatId": "c", "message": "more"})
	r.Await(mark, "the steer", ofChat("c", "Yes."))
	r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	r.Await(mark, "the end", ofChat("c", `"finished"`, `"stopped"`))
	ask(t, r, "c", "more")
	if b := lastRequest(r); !strings.Contains(b, "resume \\\\\\\""+childOf(t, r, "call_3")) && !strings.Contains(b, "resume \\\""+childOf(t, r, "call_3")) {
		t.Errorf("the model does not know what became of it: %s", b)
	}
}

// A client that opens the chat while a subagent works sees its past work, and then the rest. A
// history shows the same without live messages.
func TestOpenWhileSubagentWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps: [{calls: [` + spawn("call_1", "general", "write", "") + `]}, {text: Done.}]
  - user: '^write'
    steps:
      - {text: "First.", calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/one.txt", content: x}}]}
      - {text: 'Second.'}
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	child := childOf(t, r, "call_1")
	r.Await(0, "the question", ofChat(child, `"toolCallRun"`, `"manualApproval":true`))
	mark := r.Mark()
	r.Call("chat/open", map[string]any{"chatId": "c"})
	r.Await(mark, "the question again", ofChat(child, `"toolCallRun"`, `"manualApproval":true`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": child, "toolCallId": "w1"})
	r.Await(mark, "the end", ofChat("c", `"finished"`, `"done"`))
	heard := r.Since(mark)
	checkPlace(t, heard, child)
	if indexOf(heard, child, "First.") < 0 || count(heard, `"role":"user"`, child) != 1 || indexOf(heard, child, "Second.") < 0 {
		t.Errorf("heard %v", heard)
	}
	if got := string(r.Call("chat/history", map[string]any{"chatId": "c"})); strings.Count(got, `"parentChatId":"c"`) < 5 || !strings.Contains(got, "Second.") {
		t.Errorf("history: %s", got)
	}
	sameInReplay(t, r, heard, "c", child)
}

// A subagent whose provider is overloaded shows in its own chat why nothing happens.
func TestSubagentShowsThatItsRequestIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - {user: '^delegate', steps: [{calls: [` + spawn("call_1", "explorer", "busy", "") + `]}, {text: Done.}]}
  - {user: '^busy', steps: [{text: "found it", error: {status: 503, message: "try later", times: 1}}]}
`, config: map[string]any{"providers": map[string]any{"mock": map[string]any{"retry": map[string]any{"baseDelayMs": 1, "maxRetries": 2}}}}})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate"})
	child := childOf(t, r, "call_1")
	r.Await(0, "the repetition", ofChat(child, `"progress"`, "Provider overloaded. Retrying"))
	r.Await(0, "the end", ofChat("c", `"finished"`, `"done"`))
}
