package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// A step is a whole turn, with real tools in a real folder.
func TestStep(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - steps:
      - reasoning: the secret thought
        text: I look.
        calls: [{id: c1, tool: eca__read_file, arguments: {path: "${workspace}/notes.txt"}}]
        usage: {input: 10, output: 5}
      - text: 'It says: ${result:(?s)(.*)} 😀'
        usage: {input: 20, output: 7, cacheRead: 3}
  - steps: [{text: Second.}]
`})
	r.write("notes.txt", "the answer is 42\n")
	c := r.connect()
	c.initialize(map[string]any{})
	step := c.step("What do the notes say?")
	if step.Status != ecp.Done || step.StopReason != ecp.StopEnd || step.Model != "mock/m" {
		t.Errorf("%+v", step)
	}
	checkContains(t, *step.PublicOutput, "I look.\n\nIt says:", "the answer is 42", "😀")
	if callNames(step) != "read_file" || object(t, step.ToolCalls[0].Arguments)["path"] != filepath.Join(r.root, "notes.txt") {
		t.Errorf("calls: %+v", step.ToolCalls)
	}
	checkContains(t, extraValue[string](t, step.ToolCalls[0], ecp.CallResult), "the answer is 42")
	if extraValue[bool](t, step.ToolCalls[0], ecp.CallIsError) || extraValue[string](t, step.ToolCalls[0], ecp.CallID) != "c1" {
		t.Errorf("%+v", step.ToolCalls[0])
	}
	checkContains(t, *step.EvaluationContext, "Tools called: 1", "read_file", "done", "Stop reason: end")
	checkContains(t, *step.Logs, "model mock/m, agent code", "read_file", "turn over: done")
	for _, text := range []string{*step.EvaluationContext, *step.Logs, *step.PublicOutput} {
		if strings.Contains(text, "secret thought") {
			t.Errorf("the result contains the model's reasoning: %s", text)
		}
	}
	if got := string(encode(t, step.Usage)); got != `{"cache_read_tokens":3,"input_tokens":30,"output_tokens":12,"total_tokens":45}` || *step.CostUSD <= 0.005 || *step.CostUSD >= 0.01 {
		t.Errorf("usage %s, cost %v", got, *step.CostUSD)
	}
	again := c.step("And now?")
	if *again.PublicOutput != "Second." || callNames(again) != "" || again.Usage.Count(ecp.TokensInput) >= 30+12 {
		t.Errorf("%+v", again)
	}
	checkContains(t, *again.EvaluationContext, "Tools called: none")
	checkContains(t, r.lastRequest(), "What do the notes say?", "And now?") // the conversation continues
}

// Calling initialize is optional, and it may be called again.
func TestWithoutInitialize(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: hello}]}"})
	c := r.connect()
	c.reset()
	if out := *c.step("hi").PublicOutput; out != "hello" {
		t.Errorf("%q", out)
	}
	for range 2 {
		c.initialize(nil)
	}
	if out := *c.step("").PublicOutput; out != "hello" {
		t.Errorf("empty input: %q", out)
	}
}

// reset, and another initialize, begin a new conversation; the workspace stays.
func TestReset(t *testing.T) {
	r := newRig(t, options{model: `
turns: []
default: {steps: [{text: hello}]}
`})
	r.write("stays.txt", "x")
	c := r.connect()
	c.initialize(map[string]any{})
	first := c.step("the first secret word")
	c.reset()
	second := c.step("after the reset")
	if strings.Contains(r.lastRequest(), "first secret word") {
		t.Error("after the reset, the model receives the conversation from before")
	}
	c.initialize(map[string]any{})
	c.step("after initialize")
	if strings.Contains(r.lastRequest(), "after the reset") {
		t.Error("after initialize, the model receives the conversation from before")
	}
	id := func(s ecp.StepResult) any { return object(t, s.Extra["metadata"])["chat_id"] }
	if id(first) == id(second) || !r.exists("stays.txt") {
		t.Errorf("%v %v", id(first), id(second))
	}
}

// reset stops the running step.
func TestResetStopsStep(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - steps: [{text: "for ever ", hang: true}]
  - {user: fresh, steps: [{text: fresh}]}
`})
	c := r.connect()
	c.initialize(map[string]any{})
	step := c.begin(ecp.MethodStep, map[string]any{"input": "hang"})
	r.awaitRequest()
	reset := c.begin(ecp.MethodReset, map[string]any{})
	stopped := c.result(c.answer(step))
	if stopped.Status != ecp.Paused || stopped.StopReason != ecp.StopCancelled {
		t.Errorf("%+v", stopped)
	}
	if res := c.answer(reset); string(res.Result) != "true" {
		t.Errorf("%+v", res)
	}
	if out := *c.step("fresh").PublicOutput; out != "fresh" {
		t.Errorf("%q", out)
	}
}

// A question ends the step; the next input answers it, in the same turn.
func TestQuestion(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - steps:
      - text: "Let me ask."
        calls: [{id: q, tool: eca__ask_user, arguments: {question: "Which color?", options: [{label: blue, description: like the sky}, red]}}]
      - {text: "You said: ${result:(?s)(.*)}"}
`})
	c := r.connect()
	c.initialize(map[string]any{})
	asked := c.step("paint it")
	if asked.Status != ecp.Paused || asked.StopReason != ecp.StopQuestion {
		t.Errorf("%+v", asked)
	}
	if want := "Let me ask.\n\nWhich color?\n- blue: like the sky\n- red"; *asked.PublicOutput != want {
		t.Errorf("got %q\nwant %q", *asked.PublicOutput, want)
	}
	checkContains(t, *asked.EvaluationContext, "Waiting for an answer to: Which color?", "ask_user")
	done := c.step("green")
	if done.Status != ecp.Done || !strings.Contains(*done.PublicOutput, "You said: The user answered: green") || strings.Contains(*done.PublicOutput, "Let me ask") {
		t.Errorf("%q", *done.PublicOutput)
	}
	if callNames(done) != "" || r.requestCount() != 2 {
		t.Errorf("calls %q, %d requests", callNames(done), r.requestCount())
	}
}

// An unanswered question ends with its conversation.
func TestQuestionEndsWithConversation(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - {user: ask, steps: [{calls: [{id: q, tool: eca__ask_user, arguments: {question: "Which?"}}]}, {text: no}]}
  - {user: other, steps: [{text: something else}]}
`})
	c := r.connect()
	c.initialize(map[string]any{})
	if s := c.step("ask"); s.StopReason != ecp.StopQuestion || *s.PublicOutput != "Which?" {
		t.Errorf("%+v", s)
	}
	c.reset()
	if out := *c.step("other").PublicOutput; out != "something else" {
		t.Errorf("%q", out)
	}
}

const edits = `
turns:
  - steps:
      - calls:
          - {id: inside, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "made"}}
      - calls:
          - {id: command, tool: eca__shell_command, arguments: {command: "echo ran > ran.txt"}}
      - calls:
          - {id: protected, tool: eca__write_file, arguments: {path: "${workspace}/.git/hooks/pre-commit", content: "#!/bin/sh"}}
      - calls:
          - {id: outside, tool: eca__write_file, arguments: {path: "OUTSIDE/out.txt", content: "made"}}
      - calls:
          - {id: move, tool: eca__move_file, arguments: {source: "${workspace}/old.txt", destination: "${workspace}/moved.txt"}}
      - calls:
          - {id: away, tool: eca__move_file, arguments: {source: "${workspace}/stays.txt", destination: "OUTSIDE/away.txt"}}
      - {text: Done what I could.}
`

// No user can be asked: calls that the policy does not allow are refused, the model gets the
// refusal and continues.
func TestApproval(t *testing.T) {
	for _, c := range []struct {
		approval string
		refused  string // ids
		made     string // files
	}{
		{"", "inside command protected outside move away", ""},
		{"none", "inside command protected outside move away", ""},
		{"auto-edit", "command protected outside away", "new.txt moved.txt"},
		{"all", "", "new.txt ran.txt .git/hooks/pre-commit moved.txt out.txt away.txt"},
	} {
		t.Run(c.approval, func(t *testing.T) {
			outside := testkit.TempDir(t)
			// defaultTrust has no effect: the chat of an evaluation is not trusted.
			r := newRig(t, options{model: strings.ReplaceAll(edits, "OUTSIDE", outside), config: map[string]any{"chat": map[string]any{"defaultTrust": true}}})
			r.write("old.txt", "old")
			r.write("stays.txt", "old")
			rt := r.connect()
			rt.initialize(map[string]any{"approval": c.approval})
			step := rt.step("do it")
			if step.Status != ecp.Done || *step.PublicOutput != "Done what I could." || len(step.ToolCalls) != 6 {
				t.Errorf("%+v", step)
			}
			var refused, made []string
			for _, call := range step.ToolCalls {
				if call.Extra["refused"] != nil {
					refused = append(refused, extraValue[string](t, call, ecp.CallID))
					if !extraValue[bool](t, call, ecp.CallIsError) {
						t.Errorf("%s was refused and is no error", call.Name)
					}
				}
			}
			for _, name := range []string{"new.txt", "ran.txt", ".git/hooks/pre-commit", "moved.txt"} {
				if r.exists(name) {
					made = append(made, name)
				}
			}
			for _, name := range []string{"out.txt", "away.txt"} {
				if _, err := os.Stat(filepath.Join(outside, name)); err == nil {
					made = append(made, name)
				}
			}
			if got := strings.Join(refused, " "); got != c.refused {
				t.Errorf("refused: %s, not %s", got, c.refused)
			}
			if got := strings.Join(made, " "); got != c.made {
				t.Errorf("made: %s, not %s", got, c.made)
			}
			if c.refused != "" {
				checkContains(t, *step.EvaluationContext, "refused: ")
			}
			if r.exists("new.txt") {
				checkContains(t, *step.EvaluationContext, "Files changed: new.txt")
			}
		})
	}
}

// A subagent's calls are subject to the same policy, and are recorded.
func TestSubagents(t *testing.T) {
	for approval, want := range map[string]bool{"none": false, "all": true} {
		t.Run(approval, func(t *testing.T) {
			r := newRig(t, options{model: `
turns:
  - user: "delegate"
    steps:
      - calls: [{id: s1, tool: eca__spawn_agent, arguments: {agent: general, task: "make the file", activity: making}}]
      - {text: delegated}
  - user: "make the file"
    steps:
      - calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/by-sub.txt", content: "x"}}]
      - {text: made}
`})
			c := r.connect()
			c.initialize(map[string]any{"approval": approval})
			step := c.step("delegate")
			if got := callNames(step); got != "spawn_agent write_file" || *step.PublicOutput != "delegated" {
				t.Fatalf("%s, %+v", got, step)
			}
			if extraValue[string](t, step.ToolCalls[1], "parent_id") != "s1" || r.exists("by-sub.txt") != want {
				t.Errorf("%+v, file is %v", step.ToolCalls[1], !want)
			}
			checkContains(t, *step.EvaluationContext, "by a subagent")
			if step.Usage.Count(ecp.TokensInput) == 0 || step.ToolCalls[1].Extra["refused"] != nil == want {
				t.Errorf("%+v", step)
			}
		})
	}
}

// Arguments that are not an object are reported as written.
func TestRawArguments(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - steps:
      - calls: [{id: a, tool: eca__read_file, rawArguments: "[1,2"}, {id: b, tool: no_such_tool, arguments: {x: 1}}]
      - {text: ok}
`})
	c := r.connect()
	step := c.step("go")
	if callNames(step) != "read_file no_such_tool" || object(t, step.ToolCalls[0].Arguments)["raw"] != "[1,2" {
		t.Errorf("%+v", step.ToolCalls)
	}
	for _, call := range step.ToolCalls {
		if !extraValue[bool](t, call, ecp.CallIsError) {
			t.Errorf("%s is no error", call.Name)
		}
	}
}

// If a model fails, the step gives an error with the results so far; the agent keeps running.
func TestModelFails(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - {user: bad, steps: [{error: {status: 400, message: "no such thing as this"}}]}
  - {user: good, steps: [{text: fine}]}
`})
	c := r.connect()
	c.initialize(map[string]any{})
	e := c.callError(ecp.MethodStep, map[string]any{"input": "bad"})
	checkContains(t, e.Message, "no such thing as this")
	if partial := object(t, e.Data)["result"].(map[string]any); e.Code != ecp.CodeFailed || partial["stop_reason"] != ecp.StopError {
		t.Errorf("%+v", e)
	}
	if out := *c.step("good").PublicOutput; out != "fine" {
		t.Errorf("%q", out)
	}
}

// The output of a command is the answer of the step.
func TestCommand(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	c := r.connect()
	step := c.step("/context")
	if step.Status != ecp.Done || *step.PublicOutput == "" || r.requestCount() != 0 {
		t.Errorf("%+v", step)
	}
}
