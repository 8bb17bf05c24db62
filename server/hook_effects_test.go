package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// sh is a hook with one inline script.
func sh(event, script string, more ...any) map[string]any {
	h := map[string]any{"type": event, "actions": []any{map[string]any{"type": "shell", "shell": script}}}
	for i := 0; i+1 < len(more); i += 2 {
		h[more[i].(string)] = more[i+1]
	}
	return h
}

// say is a script that prints JSON.
func say(json string) string { return "cat >/dev/null; echo '" + json + "'" }

// treeModel calls a tool and then says something.
const treeModel = `
cassette: 1
default:
  steps:
    - calls: [{id: tool-1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
    - {text: The answer.}
turns: []
`

// hookRun is a turn in a fresh chat with hooks, which runs to its end.
type hookRun struct {
	*rig
	t      *testing.T
	model  string // the requests to the model
	client string // the messages to the client
}

func runHooks(t *testing.T, model string, list map[string]any, config map[string]any) *hookRun {
	t.Helper()
	needs.POSIX(t)
	cfg := map[string]any{"hooks": list}
	merge(cfg, config)
	h := &hookRun{t: t, rig: newRig(t, options{model: model, config: cfg})}
	h.Await(0, "the start", fake.Ready())
	h.prompt("hi")
	return h
}

// prompt runs a turn to its end.
func (h *hookRun) prompt(text string) {
	mark := h.Mark()
	h.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})
	h.Await(mark, "the end", fake.Finished())
	h.gather(mark)
}

// gather collects the messages since a mark.
func (h *hookRun) gather(mark int) {
	h.model = ""
	h.client = allHeard(h.t, h.Since(mark))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range h.requests {
		h.model += string(q.body) + "\n"
	}
}

func (h *hookRun) check(t *testing.T, o hookOutcome) {
	t.Helper()
	o.check(t, h.model, h.client)
}

// continue: false stops the turn, and later hooks do not run. Only the user gets the reason.
func TestHookStops(t *testing.T) {
	t.Parallel()
	stop := say(`{"continue":false,"stopReason":"ENOUGH"}`)
	for event, want := range map[string]hookOutcome{
		"chatStart":    {notInModel: []string{`"input"`}, client: []string{`"reason":"blocked"`}},
		"preRequest":   {notInModel: []string{`"input"`}, client: []string{`"reason":"blocked"`}},
		"preToolCall":  {model: []string{"directory_tree|hi"}, notInModel: []string{"function_call_output"}, client: []string{`"toolCallRejected"`, `"reason":"hook"`}, notInClient: []string{"The answer.", "toolCalled"}},
		"postToolCall": {notInModel: []string{"function_call_output"}, client: []string{`"toolCalled"`, `"reason":"hook"`}, notInClient: []string{"The answer."}},
		"postRequest":  {client: []string{"The answer.", `"reason":"hook"`}},
	} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			h := runHooks(t, treeModel, map[string]any{"a": sh(event, stop), "b": sh(event, "touch second")}, nil)
			want.client = append(want.client, "Turn stopped by hook 'a': ENOUGH", `"hookActionFinished"`)
			want.notInModel = append(want.notInModel, "ENOUGH")
			h.check(t, want)
			if _, err := os.Stat(filepath.Join(h.root, "second")); err == nil {
				t.Error("the hook after the one that stopped the turn ran")
			}
			h.prompt("again")
			if strings.Contains(h.model, "ENOUGH") || strings.Contains(h.model, "Turn stopped") {
				t.Errorf("the model sees the reason later: %s", h.model)
			}
		})
	}
	for _, event := range []string{"preCompact", "postCompact"} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			h := runHooks(t, hookModel, map[string]any{"a": sh(event, stop, "matcher", "manual"), "b": sh(event, "exit 2", "matcher", "auto")},
				map[string]any{"prompts": map[string]any{"compact": "SUMMARY PLEASE"}})
			h.prompt("/compact")
			want := hookOutcome{client: []string{"Turn stopped by hook 'a': ENOUGH", `"reason":"hook"`}}
			if compacted := "Chat compacted"; event == "preCompact" {
				want.notInClient = []string{compacted}
			} else {
				want.client = append(want.client, compacted)
			}
			h.check(t, want)
		})
	}
}

// A blocked prompt is not part of the conversation.
func TestHookBlocksPrompt(t *testing.T) {
	t.Parallel()
	h := runHooks(t, "cassette: 1\ndefault:\n  steps:\n    - {text: fine}\nturns: []\n", map[string]any{
		"guard": sh("preRequest", "if grep -q '\"prompt\":\"hi\"'; then echo NO >&2; exit 2; fi", "visible", false),
	}, nil)
	h.check(t, hookOutcome{notInModel: []string{"hi"}, client: []string{"Request blocked by hook 'guard': NO"}, notInClient: []string{"hookAction"}})
	h.prompt("hello")
	h.check(t, hookOutcome{model: []string{`"hello"`}, notInModel: []string{`"hi"`, "NO"}, client: []string{"fine"}})
	if n := strings.Count(h.model, "\n"); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// If a hook replaces a prompt by an empty text, eca sends neither the empty nor the original prompt.
func TestHookEmptiesPrompt(t *testing.T) {
	t.Parallel()
	h := runHooks(t, treeModel, map[string]any{"empty": sh("preRequest", say(`{"replacedPrompt":" "}`))}, nil)
	h.check(t, hookOutcome{notInModel: []string{`"input"`}, client: []string{`"reason":"blocked"`, "Request blocked by hook 'empty': it replaced the prompt with an empty text"}})
}

// Hooks can forbid and ask regardless of the policy, and never allow more than the policy.
func TestHookApproval(t *testing.T) {
	t.Parallel()
	denied := map[string]any{"toolCall": map[string]any{"approval": map[string]any{"deny": map[string]any{"directory_tree": map[string]any{"argsMatchers": map[string]any{"max_depth": []any{"9"}}}}}}}
	ask := map[string]any{"toolCall": map[string]any{"approval": map[string]any{"allow": map[string]any{"directory_tree": nil}, "ask": map[string]any{"directory_tree": map[string]any{}}}}}
	t.Run("deny", func(t *testing.T) {
		h := runHooks(t, treeModel, map[string]any{
			"a": sh("preToolCall", say(`{"approval":"deny","additionalContext":"BECAUSE"}`)), "b": sh("preToolCall", say(`{"approval":"allow"}`)),
		}, nil)
		h.check(t, hookOutcome{model: []string{"BECAUSE"}, client: []string{`"reason":"hookRejected"`, "The answer."}, notInClient: []string{"toolCalled"}})
	})
	t.Run("updated input that the policy denies", func(t *testing.T) {
		h := runHooks(t, treeModel, map[string]any{"a": sh("preToolCall", say(`{"updatedInput":{"max_depth":9},"approval":"allow"}`))}, denied)
		h.check(t, hookOutcome{model: []string{"configuration denies"}, client: []string{`"reason":"userConfigDeny"`}, notInClient: []string{"toolCalled"}})
	})
	t.Run("updated input that cannot run", func(t *testing.T) {
		h := runHooks(t, treeModel, map[string]any{"a": sh("preToolCall", say(`{"updatedInput":{"path":7}}`))}, nil)
		h.check(t, hookOutcome{model: []string{"Hook 'a' changed this call so that it cannot run"}, client: []string{`"reason":"hookRejected"`, "Hook 'a' changed this call so that it cannot run"}})
	})
	for name, c := range map[string]struct {
		hook   string
		config map[string]any
		trust  bool
	}{
		"ask in place of allow":      {`{"approval":"ask"}`, nil, false},
		"ask in spite of trust":      {`{"approval":"ask"}`, nil, true},
		"allow does not beat ask":    {`{"approval":"allow"}`, ask, false},
		"nonsense does not beat ask": {`{"approval":"yes please"}`, ask, false},
		"misspelled value":           {`{"approval":"denied"}`, nil, true},
		"misspelled key":             {`{"approvall":"deny"}`, nil, true},
		"key of another program":     {`{"hookSpecificOutput":{"permissionDecision":"deny"}}`, nil, false},
		"invalid JSON":               {`{"approval":"deny",}`, nil, false},
		"text before the JSON":       {"checking...\n" + `{"approval":"deny"}`, nil, true},
		"JSON within a line":         {`checking... {"approval":"deny"}`, nil, true},
		"two objects":                {`{"systemMessage":"x"}{"approval":"deny"}`, nil, true},
		"a JSON string":              {`"deny"`, nil, true},
		"a JSON array":               {`[1]`, nil, true},
		"a word":                     {"checking...\nDenied.", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs.POSIX(t)
			cfg := map[string]any{"hooks": map[string]any{"a": sh("preToolCall", say(c.hook))}}
			merge(cfg, c.config)
			h := &hookRun{t: t, rig: newRig(t, options{model: treeModel, config: cfg})}
			h.Await(0, "the start", fake.Ready())
			h.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi", "trust": c.trust})
			h.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
			h.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "tool-1"})
			h.Await(0, "the end", fake.Finished())
		})
	}
}

// The effects of an event's hooks add up, in the order of the hooks' names; actions of one hook are
// numbered; scripts may be files.
func TestHookChains(t *testing.T) {
	t.Parallel()
	two := sh("preToolCall", say(`{"updatedInput":{"max_depth":1}}`))
	two["actions"] = append(two["actions"].([]any), map[string]any{"type": "shell", "shell": `grep -q '"max_depth":1' && echo '{"updatedInput":{"max_depth":2,"extra":true}}'`})
	h := runHooks(t, treeModel, map[string]any{
		"b-second": sh("preRequest", `sed 's/.*"prompt":"\([^"]*\)".*/{"replacedPrompt":"\1 SECOND","additionalContext":"ONE"}/'`),
		"a-first":  sh("preRequest", say(`{"replacedPrompt":"FIRST","additionalContext":"TWO"}`)),
		"two":      two,
		"out-a":    sh("postToolCall", say(`{"replacedOutput":"HIDDEN","additionalContext":"MORE"}`)),
		"out-b":    sh("postToolCall", `grep -q '"tool_response":"HIDDEN"' && echo '{"replacedOutput":"HIDDEN TWICE","suppressOutput":true}'`),
		"follow-a": sh("postRequest", `grep -q '"follow_up_active":false' && echo '{"followUp":"GO"}'`),
		"follow-b": sh("postRequest", `grep -q '"follow_up_active":false' && { echo ON >&2; exit 2; }`),
		"broken":   sh("postRequest", say(`{"continue":"no","stopReason":7,"mood":"good"}`)),
	}, nil)
	h.check(t, hookOutcome{
		model: []string{
			`"FIRST SECOND\n\n<add`, "TWO\\n</additionalContext>\\n<additionalContext>\\nONE", `\"extra\":true`, `\"max_depth\":2`,
			`HIDDEN TWICE\n<additionalContext>\nMORE`, `"GO\n\nON"`,
		},
		notInModel: []string{`"hi"`},
		client: []string{
			`"text":"hi\n"`, `"name":"two-1"`, `"name":"two-2"`, "UpdatedInput: {", "ReplacedPrompt: FIRST SECOND", "ReplacedOutput: HIDDEN", "FollowUp: GO", `"toolCallId":"tool-1"`,
			"continue must be true or false; it is ignored", "it printed the unknown key mood, which has no effect", `"text":"GO\n\nON\n"`,
		},
		notInClient: []string{"ReplacedOutput: HIDDEN TWICE", "MORE\\n</add"},
	})
	// The next turn sends the same history.
	h.prompt("next")
	h.check(t, hookOutcome{model: []string{`"FIRST SECOND\n`}, notInModel: []string{`"hi"`}})
	checkReplay(t, h.rig, "c", h.Since(0))
}

// The context that chatStart hooks add is in the instructions of all requests of the chat. The chatStart
// hooks run once per chat and process, after the sessionStart hooks.
func TestHookStarts(t *testing.T) {
	t.Parallel()
	note := func(what string) string {
		return `printf '` + what + ` %s\n' "$(grep -o '"resumed":[a-z]*')" >> log`
	}
	list := map[string]any{
		"session": sh("sessionStart", "sleep 0.2; "+note("session")),
		"chat":    sh("chatStart", note("chat")+`; echo '{"additionalContext":"TODAY"}'`, "visible", false),
		"end":     sh("chatEnd", note("chat end")), "zend": sh("sessionEnd", note("session end")),
	}
	h := runHooks(t, treeModel, list, nil)
	h.prompt("again")
	for i, q := range strings.Split(strings.TrimSpace(h.model), "\n") {
		if strings.Count(q, "TODAY") != 1 {
			t.Errorf("request %d does not have the context once: %s", i, q)
		}
	}
	again := newRig(t, options{model: treeModel, config: map[string]any{"hooks": list}, root: h.root, state: h.state})
	again.Await(0, "the start", fake.Ready())
	again.Call("chat/prompt", map[string]any{"chatId": "c", "message": "later"})
	again.Await(0, "the end", fake.Finished())
	again.Call("chat/delete", map[string]any{"chatId": "c"})
	again.Call("shutdown", nil)
	again.daemon.Engine().Close()
	raw, _ := os.ReadFile(filepath.Join(h.root, "log"))
	want := "session \nchat \"resumed\":false\nsession \nchat \"resumed\":true\nchat end \nsession end \n"
	if string(raw) != want {
		t.Errorf("the hooks ran in this order:\n%swant\n%s", raw, want)
	}
}

// An unusable hook is named, and the others run.
func TestBrokenHooks(t *testing.T) {
	t.Parallel()
	list := map[string]any{
		"good":         sh("postToolCall", say(`{"systemMessage":"GOOD RAN"}`), "matcher", "eca__directory_.*", "description", "Says so"),
		"bad-matcher":  sh("preToolCall", "exit 2", "matcher", "("),
		"bad-shape":    sh("preToolCall", "exit 2", "matcher", []any{1}),
		"bad-selector": sh("preToolCall", "exit 2", "matcher", map[string]any{"eca__grep": map[string]any{"argsMatchers": "x"}}),
		"bad-compact":  sh("preCompact", "exit 2", "matcher", map[string]any{}),
		"bad-event":    sh("preEverything", "exit 2"),
		"bad-type":     map[string]any{"type": "preRequest", "actions": []any{map[string]any{"type": "http", "shell": "exit 2"}}},
		"bad-both":     map[string]any{"type": "preRequest", "actions": []any{map[string]any{"type": "shell", "shell": "exit 2", "file": "x"}}},
		"bad-none":     map[string]any{"type": "preRequest"},
		"no-file":      map[string]any{"type": "preRequest", "actions": []any{map[string]any{"type": "shell", "file": "missing.sh"}}},
		"old-name":     sh("prePrompt", say(`{"additionalContext":"FROM THE OLD"}`)),
		"not-for-it":   sh("postToolCall", "exit 2", "matcher", map[string]any{"directory_tree": map[string]any{"argsMatchers": map[string]any{"path": []any{"/no"}}}}),
		"on-error":     sh("postToolCall", say(`{"systemMessage":"HAS FAILED"}`), "runOnError", true, "matcher", map[string]any{"eca": nil}),
	}
	h := runHooks(t, `
cassette: 1
default:
  steps:
    - calls: [{id: tool-1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}, {id: tool-2, tool: eca__read_file, arguments: {path: "${workspace}/none"}}]
    - {text: The answer.}
turns: []
`, list, nil)
	h.check(t, hookOutcome{
		model:       []string{"FROM THE OLD"},
		client:      []string{"Hook 'good': GOOD RAN", "missing.sh cannot be read", "Hook 'on-error': HAS FAILED"},
		notInClient: []string{"hookRejected", "blocked"},
	})
	if n := strings.Count(h.client, "HAS FAILED"); n != 2 {
		t.Errorf("the hook with runOnError ran %d times, want 2", n)
	}
	h.prompt("/hooks")
	var want []string
	for name, why := range map[string]string{
		"bad-matcher": "is not a valid regular expression", "bad-shape": "must be a pattern or an object", "bad-selector": "argsMatchers",
		"bad-compact": "must be", "bad-event": "unknown event", "bad-type": "it must be shell", "bad-both": "either shell or file", "bad-none": "it has no actions",
	} {
		if p := "hooks." + name + ": "; !strings.Contains(h.client, p) || !strings.Contains(h.client, why) {
			t.Errorf("/hooks does not report %s with %q", name, why)
		}
	}
	want = append(want, "### postToolCall", "**good**: Says so; for `eca__directory_.*`; from `ECA_CONFIG:1`", "**old-name**", "missing.sh")
	h.check(t, hookOutcome{client: want})
}

// For each event of a turn, stopping the turn ends a running hook and its processes.
func TestStopWhileHookRuns(t *testing.T) {
	needs.POSIX(t)
	for _, event := range []string{"chatStart", "preRequest", "preToolCall", "postToolCall", "postRequest"} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{model: treeModel, config: map[string]any{"hooks": map[string]any{"slow": sh(event, "sleep 300 & wait")}}})
			r.Await(0, "the start", fake.Ready())
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
			r.Await(0, "the hook", fake.Content("hookActionStarted"))
			r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
			r.Await(0, "the end", fake.Content("progress", `"finished"`, `"stopped"`))
			if indexOf(r.Since(0), "hookActionFinished", "it was stopped") < 0 {
				t.Error("the client was not notified that the hook was stopped")
			}
		})
	}
}

// Hooks get the changes of a chat's status in order, and nothing waits for these hooks.
func TestHookStatus(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	r := newRig(t, options{
		model: strings.ReplaceAll(treeModel, "directory_tree, arguments: {path: \"${workspace}\"}", "shell_command, arguments: {command: 'echo x'}"),
		config: map[string]any{"hooks": map[string]any{"status": sh("chatStatusChanged",
			`cat >> log; echo >> log; echo '{"continue":false}'`)}},
	})
	r.Await(0, "the start", fake.Ready())
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
	r.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "tool-1"})
	r.Await(0, "the end", fake.Finished())
	r.Call("shutdown", nil)
	r.daemon.Engine().Close()
	raw, _ := os.ReadFile(filepath.Join(r.root, "log"))
	var got []string
	for line := range strings.Lines(string(raw)) {
		var parts []string
		for _, p := range []string{`"status":"running"`, `"status":"idle"`, `"waiting_reason":"toolApproval"`, `"pending_approval_tool_call_ids":["tool-1"]`, `"running_tool_call_ids":["tool-1"]`, `"finish_reason":"done"`} {
			if strings.Contains(line, p) {
				parts = append(parts, p)
			}
		}
		if strings.TrimSpace(line) != "" {
			got = append(got, fmt.Sprint(parts))
		}
	}
	want := []string{
		`["status":"running"]`,
		`["status":"running" "waiting_reason":"toolApproval" "pending_approval_tool_call_ids":["tool-1"]]`,
		`["status":"running" "running_tool_call_ids":["tool-1"]]`,
		`["status":"running"]`,
		`["status":"idle" "finish_reason":"done"]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the hooks heard\n%s\nwant\n%s\nin\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), raw)
	}
}

// A hook that forbids compaction runs once in a turn, and the turn continues with the whole
// conversation.
func TestHookForbidsAutoCompaction(t *testing.T) {
	t.Parallel()
	h := runHooks(t, `
cassette: 1
turns:
  - {user: '^hi', steps: [{text: "A long answer.", usage: {input: 700, output: 100}}]}
  - user: '^second'
    steps:
      - calls: [{id: tool-1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
        usage: {input: 800, output: 100}
      - {text: "Short.", usage: {input: 900, output: 10}}
`, map[string]any{"keep": sh("preCompact", "exit 2", "matcher", "auto"), "other": sh("preCompact", "exit 2", "matcher", "manual")}, nil)
	h.prompt("second")
	h.check(t, hookOutcome{model: []string{`"A long answer."`}, client: []string{"Compaction blocked by hook 'keep'.", "Short."}, notInClient: []string{"compacted ──", "'other'"}})
	if n := strings.Count(h.client, "Compaction blocked"); n != 1 {
		t.Errorf("the hook blocked %d compactions, want 1", n)
	}
}
