package a2a_test

import (
	"strings"
	"testing"
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
