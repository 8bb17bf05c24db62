package acp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const asks = `
turns:
  - steps:
      - text: Well.
        calls: [{id: c1, tool: eca__ask_user, arguments: {question: "Which colour?", options: [{label: red, description: warm}, {label: blue}], allowFreeform: %v}}]
      - text: 'Answer: ${result:(?s)(.*)}'
  - steps: [{text: Thanks.}]
`

// A client with forms gets the question in a form; its content is the answer.
func TestQuestionInForm(t *testing.T) {
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"answer":"blue"}}`: "blue",
		`{"action":"decline"}`:                            "Answer:",
		`{"action":7}`:                                    "Answer:",
	} {
		r := newRig(t, fmt.Sprintf(asks, false))
		c := r.connect()
		id := c.start(r, object{"elicitation": object{"form": object{}}})
		c.answer = func(method string, params object) object {
			if method != "elicitation/create" || params["sessionId"] != id || !strings.Contains(params["message"].(string), "Which colour?") {
				t.Errorf("%s: %v", method, params)
			}
			if raw, _ := json.Marshal(params["requestedSchema"]); !strings.Contains(string(raw), `"enum":["red","blue"]`) {
				t.Errorf("%s", raw)
			}
			var out object
			if err := json.Unmarshal([]byte(answer), &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		if got := c.call("session/prompt", prompt(id, "Paint."))["stopReason"]; got != "end_turn" {
			t.Error(got)
		}
		if told := textOf(c); !strings.Contains(told, want) || len(c.requests) != 1 {
			t.Errorf("%s: told %q, asked %d times", answer, told, len(c.requests))
		}
	}
}

// If other answers are allowed, the options are still choices, and a separate field takes the text.
func TestQuestionInFormWithOtherWords(t *testing.T) {
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"answer":"blue"}}`:                        "blue",
		`{"action":"accept","content":{"answer":"red","other":" light green "}}`: "light green",
		`{"action":"accept","content":{"answer":null,"other":"none of them"}}`:   "none of them",
	} {
		r := newRig(t, fmt.Sprintf(asks, true))
		c := r.connect()
		id := c.start(r, object{"elicitation": object{"form": object{}}})
		c.answer = func(_ string, params object) object {
			schema := params["requestedSchema"].(object)
			raw, _ := json.Marshal(schema["properties"])
			if required, _ := schema["required"].([]any); !strings.Contains(string(raw), `"enum":["red","blue"]`) || !strings.Contains(string(raw), `"other":{`) || len(required) > 0 {
				t.Errorf("%s, required %v", raw, required)
			}
			var out object
			if err := json.Unmarshal([]byte(answer), &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		c.call("session/prompt", prompt(id, "Paint."))
		if told := textOf(c); !strings.Contains(told, want) {
			t.Errorf("%s: told %q", answer, told)
		}
	}
}

// textOf returns all text of the model.
func textOf(c *client) string {
	var out strings.Builder
	for _, u := range c.updates(0) {
		if u["sessionUpdate"] == "agent_message_chunk" {
			out.WriteString(u["content"].(object)["text"].(string))
		}
	}
	return out.String()
}

// Without forms the question is text, and the next prompt is its answer.
func TestQuestionInWords(t *testing.T) {
	r := newRig(t, fmt.Sprintf(asks, true))
	c := r.connect()
	id := c.start(r, nil)
	if got := c.call("session/prompt", prompt(id, "Paint."))["stopReason"]; got != "end_turn" {
		t.Error(got)
	}
	if told := textOf(c); told != "Well.\n\nWhich colour?\n- red: warm\n- blue" || len(c.requests) != 0 {
		t.Errorf("told %q, asked %v", told, c.requests)
	}
	c.call("session/prompt", prompt(id, "blue"))
	if told := textOf(c); !strings.HasSuffix(told, "Thanks.") {
		t.Errorf("told %q", told)
	}
}

// The list of tasks is a plan, which is sent complete each time.
func TestPlan(t *testing.T) {
	r := newRig(t, `
turns: []
default:
  steps:
    - calls: [{id: c1, tool: eca__task, arguments: {op: plan, tasks: [{subject: Look, priority: high}, {subject: Leap}]}}]
    - calls: [{id: c2, tool: eca__task, arguments: {op: start, ids: [1], active_summary: Looking}}]
    - text: Done.
`)
	c := r.connect()
	id := c.start(r, nil)
	c.call("session/prompt", prompt(id, "Plan."))
	var plans []string
	for _, u := range c.updates(0) {
		if u["sessionUpdate"] == "plan" {
			raw, err := json.Marshal(u["entries"])
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, string(raw))
		}
	}
	want := []string{
		`[{"content":"Look","priority":"high","status":"pending"},{"content":"Leap","priority":"medium","status":"pending"}]`,
		`[{"content":"Look","priority":"high","status":"in_progress"},{"content":"Leap","priority":"medium","status":"pending"}]`,
	}
	if strings.Join(plans, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(plans, "\n"))
	}
}

// Folders and MCP servers from the client become part of the instance. Sessions of the same instance
// share it.
func TestInstances(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	c := r.connect()
	c.call("initialize", object{"protocolVersion": 1})
	more := filepath.Join(r.State(), "more")
	if err := os.MkdirAll(more, 0o700); err != nil {
		t.Fatal(err)
	}
	params := object{
		"cwd": r.Root, "additionalDirectories": []any{more, r.Root, 3},
		"mcpServers": []any{
			object{"name": "a", "command": "no-such-program", "args": []any{"x"}, "env": []any{object{"name": "K", "value": "v"}}},
			object{"name": "b", "type": "http", "url": "http://127.0.0.1:1/", "headers": []any{object{"name": "H", "value": "v"}}},
		},
	}
	if code, why := c.fails("session/new", params); code != -32602 || !strings.Contains(why, "additionalDirectories") {
		t.Errorf("%d %s", code, why)
	}
	params["additionalDirectories"] = []any{more, r.Root}
	first := c.call("session/new", params)["sessionId"].(string)
	second := c.call("session/new", params)["sessionId"].(string)
	if r.opened != 1 || first == second {
		t.Errorf("%d instances, %s and %s", r.opened, first, second)
	}
	if got := strings.Join(r.last.Folders, " "); got != r.Root+" "+more {
		t.Errorf("folders %s", got)
	}
	want := `{"mcpServers":{"a":{"args":["x"],"command":"no-such-program","env":{"K":"v"}},"b":{"headers":{"H":"v"},"url":"http://127.0.0.1:1/"}}}`
	if got := string(r.last.InitOptions); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, id := range []string{first, second} {
		c.call("session/close", object{"sessionId": id})
	}
	if r.closed != 1 {
		t.Errorf("%d instances were closed", r.closed)
	}
	// Requests that only read, or that fail, leave no instance open.
	c.call("session/list", object{"cwd": r.Root})
	c.call("session/delete", object{"sessionId": "none"})
	if code, _ := c.fails("session/load", object{"sessionId": "none", "cwd": more, "mcpServers": []any{}}); code != -32002 {
		t.Errorf("%d", code)
	}
	if r.opened != 4 || r.closed != 4 {
		t.Errorf("%d instances were opened, %d closed", r.opened, r.closed)
	}
}
