package a2a_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
)

// The output of a slash command is the answer of its task. A command without output completes with a
// message, and one that asks questions fails with the reason.
func TestCommands(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n", "")
	for _, c := range []struct{ command, state, answer, message string }{
		{"/help", "COMPLETED", "`/compact", ""},
		{"/config", "COMPLETED", "mock/m", ""},
		{"/costs", "COMPLETED", "No model has answered", ""},
		{"/model", "COMPLETED", "mock/n", ""},
		{"hi", "COMPLETED", "Hello.", ""},
		{"/fork", "COMPLETED", "", "Chat forked to:"},
		{"/compact", "COMPLETED", "", "Chat compacted"},
		{"/resume 7 8", "FAILED", "", "/resume takes one chat"},
		{"/login", "FAILED", "", "interactive chat"},
		{"/login mock", "FAILED", "", "`eca login`"},
	} {
		task := r.call("SendMessage", userMessage(c.command, object{"contextId": "c"}))["task"].(object)
		status := task["status"].(object)
		if state, answer, message := stateOf(task), answerOf(task), textOf(status["message"]); state != c.state ||
			!strings.Contains(answer, c.answer) || (c.answer == "") != (answer == "") || !strings.Contains(message, c.message) || (c.message == "") != (message == "") {
			t.Errorf("%s: %s, answer %q, message %q", c.command, state, answer, message)
		}
	}
	if got := r.stream("SendStreamingMessage", userMessage("/help")).readRest(); !strings.Contains(got, "`/compact") {
		t.Errorf("streamed: %s", got)
	}
}

// A skill that a rule denies is not offered. If it is called, the answer names the rule, and no model is
// asked.
func TestDeniedSkill(t *testing.T) {
	for rule, all := range map[string]bool{`{}`: true, `{"argsMatchers": {"name": ["deploy"]}}`: false} {
		world := daemontest.New(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n", func(config daemontest.Object) {
			config["toolCall"] = object{"approval": object{"deny": object{"eca__skill": json.RawMessage(rule)}}}
		})
		for _, name := range []string{"deploy", "test"} {
			dir := world.Env["XDG_CONFIG_HOME"] + "/eca/skills/" + name
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("---\nname: %s\ndescription: It is a skill.\n---\nDo it.\n", name)
			if err := os.WriteFile(dir+"/SKILL.md", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := startRig(t, world, "", nil)
		help := answerOf(r.call("SendMessage", userMessage("/help"))["task"].(object))
		if strings.Contains(help, "`/deploy") || strings.Contains(help, "`/test") == all {
			t.Errorf("%s: offered: %s", rule, help)
		}
		for _, command := range []string{"/deploy", "/deploy now"} {
			task := r.call("SendMessage", userMessage(command))["task"].(object)
			if why := textOf(task["status"].(object)["message"]); stateOf(task) != "FAILED" || !strings.Contains(why, "eca__skill") || !strings.Contains(why, "deny") {
				t.Errorf("%s: %s: %s %q", rule, command, stateOf(task), why)
			}
		}
		if n := len(world.Requests()); n != 0 {
			t.Errorf("%s: %d requests", rule, n)
		}
	}
}
