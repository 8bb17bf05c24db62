package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// If a daemon is killed while subagents work, existing results are kept. The model is shown how to
// continue the subagents without a result, and they continue with their history. Background
// subagents that never reported are listed too.
func TestKillWithSubagents(t *testing.T) {
	p := newProvider(t, `
cassette: 1
turns:
  - user: '^delegate'
    steps:
      - calls:
          - {id: call_0, tool: eca__spawn_agent, arguments: {agent: general, task: behind, background: true}}
          - {id: call_1, tool: eca__spawn_agent, arguments: {agent: explorer, task: quick}}
          - {id: call_2, tool: eca__spawn_agent, arguments: {agent: explorer, task: slow}}
  - user: '^go on'
    steps:
      - calls: [{id: call_3, tool: eca__spawn_agent, arguments: {agent: explorer, task: finish, resume: '${result:call the tool again with agent "explorer" and resume "(subagent-[0-9a-f]+)"}'}}]
      - text: 'So: ${result:(?s)at last.*}'
  - {user: '^quick', steps: [{text: "found it"}]}
  - user: '^slow'
    steps:
      - {text: "I read first.", calls: [{id: t1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]}
      - {text: "on and", hang: true}
  - {user: '^behind', steps: [{text: "far behind", hang: true}]}
  - {user: '^finish', steps: [{text: "at last"}]}
`)
	here := newPlace(t, p.env()...)
	first := here.serve(t)
	first.Open(here.root, nil)
	first.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "delegate"})
	first.Await(0, "the one in the background", fake.Content("toolCalled", `"call_0"`))
	first.Await(0, "the quick one", fake.Content("toolCalled", `"call_1"`, "found it"))
	first.Await(0, "the slow one", fake.Content("text", `"chatId":"subagent-`, `"text":"on `))
	first.kill9(t)

	second := here.serve(t)
	second.Open(here.root, nil)
	second.Call("chat/open", map[string]any{"chatId": "c1"})
	for _, want := range []string{"found it", "I read first."} {
		second.Await(0, want, fake.Content("text", `"parentChatId":"c1"`, want))
	}
	second.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "go on"})
	second.Await(0, "the end", fake.Finished())
	in := p.last(t)
	checkHistory(t, in)
	got := transcriptOf(in)
	for _, want := range []string{
		"output:call_1:## Agent 'explorer' Result", "found it", "output:call_2:This call was interrupted.", `and resume "subagent-`,
		`user:<subagent-report agent="general"`, "The subagent general was interrupted.", "output:call_3:## Agent 'explorer' Result", "at last",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the history has no %q: %s", want, got)
		}
	}
	resumed := ""
	p.mu.Lock()
	for _, b := range p.bodies {
		if strings.Contains(b, `"finish"`) && !strings.Contains(b, "delegate") {
			resumed = b
		}
	}
	p.mu.Unlock()
	for _, want := range []string{`"slow"`, "I read first.", `"t1"`} {
		if !strings.Contains(resumed, want) {
			t.Errorf("the history of the continued subagent has no %s: %s", want, resumed)
		}
	}
	shutDown(t, second)
}

// On a terminal, a subagent's text is not part of the answer; its calls are shown and ask for
// approval.
func TestExecWithSubagent(t *testing.T) {
	p := newProvider(t, `
cassette: 1
turns:
  - user: '^delegate'
    steps:
      - calls: [{id: call_1, tool: eca__spawn_agent, arguments: {agent: general, task: look, activity: looking}}]
      - text: "That was it."
  - user: '^look'
    steps:
      - {text: "I look.", calls: [{id: t1, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: x}}]}
      - {text: "I saw it."}
`)
	here := newPlace(t, p.env()...)
	out, errOut, code := runProgram(t, here, "", "exec", "delegate", "--approve", "all")
	if code != 0 || strings.TrimSpace(out) != "That was it." {
		t.Errorf("exit %d, stdout: %s", code, out)
	}
	if strings.Count(errOut, "· general: looking") != 1 || !strings.Contains(errOut, "· Creating new.txt") {
		t.Errorf("stderr: %s", errOut)
	}
	if _, err := os.Stat(filepath.Join(here.root, "new.txt")); err != nil {
		t.Error(err)
	}
}

// The agent that started a subagent reads that its result is cut, filtered or empty.
func TestIncompleteResultsOfSubagentsAreNamed(t *testing.T) {
	for step, want := range map[string]string{
		"text: half a rep, stop: length": "(The result reached the model's output limit and was truncated.)",
		"text: I would, stop: refusal":   "the result is not complete.)",
		"stop: end":                      "It ended without any text.",
	} {
		p := newProvider(t, "cassette: 1\nturns:\n  - user: '^delegate'\n    steps:\n      - calls: [{id: call_1, tool: eca__spawn_agent, arguments: {agent: general, task: look}}]\n      - text: Done.\n"+
			"  - user: '^look'\n    steps:\n      - {"+step+"}\n")
		here := newPlace(t, p.env()...)
		if out, errOut, code := runProgram(t, here, "", "exec", "delegate", "--approve", "all"); code != 0 {
			t.Errorf("%s: exit %d: %s%s", step, code, out, errOut)
		}
		if got := transcriptOf(p.last(t)); !strings.Contains(got, want) {
			t.Errorf("%s: the history has no %q: %s", step, want, got)
		}
	}
}
