package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const writes = `
turns: []
default:
  steps:
    - reasoning: hm
      text: I write.
      calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "hello\nworld\n"}}]
      usage: {input: 10, output: 5}
    - text: 'Then: ${result:(?s)(.*)}'
      usage: {input: 20, output: 7}
`

// chooseOption answers requests for permission with an option.
func chooseOption(option string) func(string, object) object {
	return func(string, object) object {
		return object{"outcome": object{"outcome": "selected", "optionId": option}}
	}
}

// In a turn with a call that asks, the client receives all updates in order before the answer to its
// prompt.
func TestTurn(t *testing.T) {
	r := newRig(t, writes)
	c := r.connect()
	id := c.start(r, nil)
	c.answer = chooseOption("allow_once")
	if got := c.call("session/prompt", prompt(id, "Write."))["stopReason"]; got != "end_turn" {
		t.Errorf("the turn stopped with %v", got)
	}
	updates := c.updates(0)
	if got, want := story(updates), "agent_thought agent_message call(pending) call_update() call_update(in_progress) call_update(completed) agent_message"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(r.Root, "out.txt")); string(text) != "hello\nworld\n" {
		t.Errorf("%q, %v", text, err)
	}
	if len(c.requests) != 1 {
		t.Fatalf("%d requests", len(c.requests))
	}
	call := c.requests[0]["params"].(object)["toolCall"].(object)
	diff := call["content"].([]any)[0].(object)
	if diff["type"] != "diff" || diff["newText"] != "hello\nworld\n" || diff["oldText"] != nil || diff["path"] != filepath.Join(r.Root, "out.txt") {
		t.Errorf("%v", diff)
	}
	if call["toolCallId"] != "c1" || call["kind"] != "edit" || call["rawInput"] == nil || call["locations"] == nil || call["title"] == "" {
		t.Errorf("%v", call)
	}
	ids := map[any]bool{}
	for _, u := range updates {
		switch u["sessionUpdate"] {
		case "agent_message_chunk":
			ids[u["messageId"]] = true
		case "usage_update":
			if u["size"] != 1000.0 || u["used"] == 0.0 {
				t.Errorf("%v", u)
			}
		}
	}
	if len(ids) != 2 {
		t.Errorf("two messages have the ids %v", ids)
	}
	if !slices.ContainsFunc(updates, func(u object) bool {
		return u["sessionUpdate"] == "available_commands_update" && strings.Contains(fmt.Sprint(u), "name:compact")
	}) {
		t.Error("no update lists the slash commands")
	}
}

// A refused call ends the turn; a call that is allowed permanently does not ask again.
func TestPermission(t *testing.T) {
	r := newRig(t, writes)
	c := r.connect()
	id := c.start(r, nil)
	out := filepath.Join(r.Root, "out.txt")
	for _, answer := range []object{
		{"outcome": object{"outcome": "selected", "optionId": "reject_once"}},
		{"outcome": object{"outcome": "cancelled"}},
		{"outcome": object{"outcome": "selected", "optionId": "no such option"}},
		{"outcome": 3},
	} {
		c.answer = func(string, object) object { return answer }
		if got := c.call("session/prompt", prompt(id, "Write."))["stopReason"]; got != "end_turn" {
			t.Errorf("%v: %v", answer, got)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%v: it was written", answer)
		}
	}
	if n := len(c.requests); n != 4 {
		t.Errorf("%d requests", n)
	}
	c.answer = chooseOption("allow_always")
	for range 2 {
		c.call("session/prompt", prompt(id, "Write."))
		if err := os.Remove(out); err != nil {
			t.Error(err)
		}
	}
	if n := len(c.requests); n != 5 {
		t.Errorf("%d requests", n)
	}
}

// There are four answers. A call that is rejected for the session does not ask again: the model
// gets the refusal and continues. Other calls still ask.
func TestRejectAlways(t *testing.T) {
	r := newRig(t, `
turns:
  - user: '(?i)run'
    steps:
      - calls: [{id: c1, tool: eca__shell_command, arguments: {command: "touch one"}}]
      - text: 'Then: ${result:(?s)(.*)}'
  - user: '(?i)other'
    steps:
      - calls: [{id: c1, tool: eca__shell_command, arguments: {command: "touch two"}}]
      - text: 'Then: ${result:(?s)(.*)}'
  - user: '(?i)write'
    steps:
      - calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "x"}}]
      - text: 'Then: ${result:(?s)(.*)}'
default: {steps: [{text: Hello.}]}
`)
	c := r.connect()
	id := c.start(r, nil)
	c.answer = chooseOption("reject_always")
	c.call("session/prompt", prompt(id, "Run it."))
	var kinds []string
	for _, o := range c.requests[0]["params"].(object)["options"].([]any) {
		option := o.(object)
		kinds = append(kinds, option["kind"].(string))
		if option["name"] == "" || option["optionId"] != option["kind"] {
			t.Errorf("%v", option)
		}
	}
	if !slices.Equal(kinds, []string{"allow_once", "allow_always", "reject_once", "reject_always"}) {
		t.Errorf("%v", kinds)
	}
	if got := c.call("session/prompt", prompt(id, "Run it again."))["stopReason"]; got != "end_turn" || !strings.Contains(textOf(c), "Then:") {
		t.Errorf("%v, %s", got, textOf(c))
	}
	if len(c.requests) != 1 {
		t.Errorf("%d requests for one command", len(c.requests))
	}
	c.call("session/prompt", prompt(id, "Other."))
	c.call("session/prompt", prompt(id, "Write."))
	c.call("session/prompt", prompt(id, "Write again."))
	if len(c.requests) != 3 {
		t.Errorf("%d requests for two commands and a tool", len(c.requests))
	}
	for _, name := range []string{"one", "two", "out.txt"} {
		if _, err := os.Stat(filepath.Join(r.Root, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	// The answers of another session are independent.
	c.answer = chooseOption("allow_once")
	other := c.call("session/new", object{"cwd": r.Root, "mcpServers": []any{}})["sessionId"].(string)
	c.call("session/prompt", prompt(other, "Write."))
	if _, err := os.Stat(filepath.Join(r.Root, "out.txt")); err != nil || len(c.requests) != 4 {
		t.Errorf("%v, %d requests", err, len(c.requests))
	}
}

// The prompt of a cancelled turn is answered as cancelled, after its updates: while a call asks,
// while the answer to the question is on its way, and while a command runs.
func TestCancel(t *testing.T) {
	r := newRig(t, `
turns: []
default:
  steps:
    - text: Wait
      calls: [{id: c1, tool: eca__shell_command, arguments: {command: "cat > /dev/null; sleep 600"}}]
`)
	c := r.connect()
	id := c.start(r, nil)
	asks := func(m object) bool { return m["method"] == "session/request_permission" }
	for _, how := range []string{"session/cancel", "$/cancel_request", "answered"} {
		n := c.begin("session/prompt", prompt(id, "Wait."))
		asked := c.readUntil(asks)
		switch how {
		case "answered": // the answer follows many messages that have not been handled
			for range 50 {
				c.begin("session/list", object{})
			}
			c.notify("session/cancel", object{"sessionId": id})
		case "$/cancel_request":
			c.notify(how, object{"requestId": n})
		default:
			c.notify("session/cancel", object{"sessionId": id})
		}
		if how == "answered" {
			c.send(object{"id": asked["id"], "result": object{"outcome": object{"outcome": "cancelled"}}})
		}
		m := c.end(n)
		if result, _ := m["result"].(object); result["stopReason"] != "cancelled" {
			t.Errorf("%s: %v", how, m)
		}
		var status any
		for _, u := range c.updates(0) {
			if u["sessionUpdate"] == "tool_call" || u["status"] != nil {
				status = u["status"]
			}
		}
		if status != "failed" {
			t.Errorf("%s: the last status of the call is %v, want failed", how, status)
		}
	}
	c.answer = chooseOption("allow_once")
	n := c.begin("session/prompt", prompt(id, "Wait."))
	c.readUntil(func(m object) bool { return strings.Contains(fmt.Sprint(m), "status:in_progress") })
	again := c.begin("session/prompt", prompt(id, "Rather this.")) // replaces the prompt
	if result, _ := c.end(n)["result"].(object); result["stopReason"] != "cancelled" {
		t.Errorf("%v", result)
	}
	c.readUntil(func(m object) bool { return strings.Contains(fmt.Sprint(m), "status:in_progress") })
	c.notify("session/cancel", object{"sessionId": id})
	c.notify("session/cancel", object{"sessionId": id})
	if result, _ := c.end(again)["result"].(object); result["stopReason"] != "cancelled" {
		t.Errorf("%v", result)
	}
	c.notify("session/cancel", object{"sessionId": id}) // no turn is running
	c.notify("session/cancel", object{"sessionId": "nobody"})
	c.call("session/set_mode", object{"sessionId": id, "modeId": "plan"})
}
