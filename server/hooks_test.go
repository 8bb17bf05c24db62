package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// The ways in which a script can end. Each script first records that it ran, and its input.
const (
	wayJSON    = "exit 0 with JSON"
	wayTwo     = "exit 2"
	wayOther   = "another exit"
	wayTimeout = "timeout"
	wayGarbage = "garbage"
	wayHuge    = "huge"
)

// hookJSON has everything that any event honours; a field that an event does not honour must have
// no effect. Its values identify their fields, so that a field that is honoured by mistake is
// detected.
const hookJSON = `{"additionalContext":"CONTEXT","replacedPrompt":"REPLACED","followUp":"FOLLOW","replacedOutput":"OUTPUT","updatedInput":{"max_depth":1},"systemMessage":"SAID","approval":"allow"}`

// script is a script that ends in one way.
func script(way string) string {
	note := `f=ran.$$; cat > "$f"; mv "$f" "ran-$(date +%s%N)-$$.json"; `
	switch way {
	case wayJSON:
		// A follow-up only once, to avoid an endless loop.
		return note + `if grep -q '"follow_up_active":true' ran-*.json; then exit 0; fi; echo '` + hookJSON + `'`
	case wayTwo:
		return note + `if grep -q '"follow_up_active":true' ran-*.json; then exit 0; fi; echo '` + hookJSON + `'; echo WHY >&2; exit 2`
	case wayOther:
		return note + `echo '` + hookJSON + `'; echo WHY >&2; exit 7`
	case wayTimeout:
		return note + `echo '` + hookJSON + `'; sleep 300`
	case wayGarbage:
		return note + `echo '{"additionalContext": CONTEXT REPLACED'`
	}
	return note + `head -c 2000000 /dev/zero | tr '\0' x`
}

// inputs returns the scripts' inputs of a rig, in order.
func (r *rig) inputs(t *testing.T) []map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.root, "ran-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	var out []map[string]any
	for _, f := range files {
		raw, err := os.ReadFile(f)
		var in map[string]any
		if err != nil || json.Unmarshal(raw, &in) != nil {
			t.Fatalf("%s: %v: %s", f, err, raw)
		}
		out = append(out, in)
	}
	return out
}

// hookModel answers any prompt with a tool call and then a text.
const hookModel = `
cassette: 1
default:
  steps:
    - calls: [{id: tool-1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
    - {text: The answer.}
    - {text: The other answer.}
    - {text: More.}
turns:
  - {user: 'SUMMARY PLEASE', steps: [{text: The summary.}]}
`

// playHook triggers an event in a chat. It returns the texts of the requests to the model and the
// messages to the client. asks means that the tool call needs approval, which it gets.
func playHook(t *testing.T, e hooks.Event, hook map[string]any, asks bool) (r *rig, requests, heard string) {
	t.Helper()
	root := tempDir(t)
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	hook["type"] = string(e)
	cfg := map[string]any{"hooks": map[string]any{"the-hook": hook}, "prompts": map[string]any{"compact": "SUMMARY PLEASE"}}
	r = newRig(t, options{model: hookModel, root: root, config: cfg})
	r.Await(0, "the start", fake.Ready())
	ended := func(n int) { r.Await(0, "the end", fake.Times(n, "chat/contentReceived", `"state":"finished"`)) }
	switch e {
	case hooks.SubagentStart, hooks.SubagentPostRequest:
		// Subagents are started by the engine's users, not by clients.
		s, _, err := r.daemon.Engine().Open(t.Context(), "subagent-1")
		if err != nil {
			t.Fatal(err)
		}
		acc, err := s.Submit(chat.Prompt{Text: "hi", Parent: "c", Agent: "code"}).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-acc.Done
		var b strings.Builder
		for e, err := range s.Events(canceledContext(t), 1) {
			raw, _ := json.Marshal(e.Body)
			fmt.Fprintf(&b, "%s %v\n", raw, err)
		}
		heard = b.String()
	default:
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
		if asks {
			r.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
			r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "tool-1"})
		}
		ended(1)
	}
	switch e {
	case hooks.PreCompact, hooks.PostCompact:
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "/compact please"})
		ended(2)
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "and now"})
		ended(3)
	case hooks.ChatEnd:
		r.Call("chat/delete", map[string]any{"chatId": "c"})
	case hooks.SessionEnd, hooks.SessionStart, hooks.ChatStatusChanged:
		r.Call("shutdown", nil)
		r.daemon.Engine().Close() // queued hooks have run
	}
	if heard == "" {
		heard = allHeard(t, r.Since(0))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		requests += string(q.body) + "\n"
	}
	return r, requests, heard
}

// allHeard returns the client's messages, followed by the model's text in one piece: how it is
// split into deltas depends on timing.
func allHeard(t *testing.T, heard []fake.Message) string {
	t.Helper()
	var all, words strings.Builder
	for _, m := range heard {
		all.WriteString(m.String() + "\n")
		var p struct {
			Role    string
			Content struct{ Type, Text string }
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		if p.Role == "assistant" && p.Content.Type == "text" {
			words.WriteString(p.Content.Text)
		}
	}
	return all.String() + words.String()
}

// hookOutcome is the effect of a way to end on an event: texts that the model's requests or the
// client must have or not have.
type hookOutcome struct {
	model, notInModel []string
	client            []string
	notInClient       []string
}

// Every event with every way for a script to end has the outcome of eca-features.md 18.
func TestHooks(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	// All effects of a hook.
	words := []string{"CONTEXT", "REPLACED", "FOLLOW", "OUTPUT", "max_depth"}
	// JSON that is honoured, by event; the other words must have no effect.
	honoured := map[hooks.Event][]string{
		hooks.ChatStart: {"CONTEXT"}, hooks.SubagentStart: {"CONTEXT"}, hooks.PreRequest: {"CONTEXT", "REPLACED"},
		hooks.PostRequest: {"FOLLOW"}, hooks.SubagentPostRequest: {"FOLLOW"},
		hooks.PreToolCall: {"max_depth"}, hooks.PostToolCall: {"CONTEXT", "OUTPUT"}, hooks.PostCompact: {"CONTEXT"},
	}
	two := map[hooks.Event]hookOutcome{
		hooks.PreRequest:          {notInModel: []string{`"input"`}, client: []string{"Request blocked by hook 'the-hook': WHY", `"reason":"blocked"`}},
		hooks.PostRequest:         {model: []string{`"WHY"`, "The answer."}},
		hooks.SubagentPostRequest: {model: []string{`"WHY"`, "The answer."}},
		hooks.PreToolCall:         {model: []string{"A hook rejected this call", "WHY"}, client: []string{`"reason":"hookRejected"`, "The answer."}, notInClient: []string{"toolCalled"}},
		hooks.PostToolCall:        {model: []string{`"WHY\n"`}, client: []string{`"outputs":[{"type":"text","text":"WHY"`, "The answer."}},
		hooks.PreCompact:          {client: []string{"Compaction blocked by hook 'the-hook'."}, notInModel: []string{"SUMMARY PLEASE"}, notInClient: []string{"Chat compacted"}},
	}
	silent := []hooks.Event{hooks.SessionStart, hooks.SessionEnd, hooks.ChatEnd, hooks.ChatStatusChanged}
	for _, e := range hooks.Events() {
		for _, way := range []string{wayJSON, wayTwo, wayOther, wayTimeout, wayGarbage, wayHuge} {
			t.Run(string(e)+"/"+way, func(t *testing.T) {
				t.Parallel()
				action := map[string]any{"type": "shell", "shell": script(way), "timeout": 60_000}
				if way == wayTimeout {
					action["timeout"] = 300
				}
				asks := e == hooks.PreToolCall && (way == wayGarbage || way == wayHuge)
				r, model, client := playHook(t, e, map[string]any{"actions": []any{action}}, asks)
				var want hookOutcome
				status, shown := 0, !slices.Contains(silent, e)
				switch way {
				case wayJSON:
					want.model = honoured[e]
					for _, w := range words {
						if !slices.Contains(honoured[e], w) {
							want.notInModel = append(want.notInModel, w)
						}
					}
					if shown {
						want.client = append(want.client, "Hook 'the-hook': SAID")
					}
				case wayTwo:
					want, status = two[e], 2
					want.notInModel = append(want.notInModel, words...)
				case wayOther:
					want, status = hookOutcome{notInModel: append([]string{"WHY"}, words...)}, 7
				case wayTimeout:
					want, status = hookOutcome{notInModel: words}, 1
					if shown {
						want.client = []string{"did not finish within 300ms and was killed"}
					}
				case wayGarbage:
					want.notInModel = words
				case wayHuge:
					want.notInModel = []string{"xxxxxxxx"}
					if shown {
						want.client = []string{"too long to be used", "[cut: "}
					}
				}
				subagent := strings.HasPrefix(string(e), "subagent")
				switch {
				case !shown:
					want.notInClient = append(want.notInClient, "hookAction", "SAID")
				case !subagent:
					want.client = append(want.client, `"type":"hookActionStarted"`, fmt.Sprintf(`"status":%d,`, status)+"|"+fmt.Sprintf(`"status":%d}`, status))
				}
				if e != hooks.PreRequest || way != wayTwo {
					want.model = append(want.model, `"hi"|REPLACED`, "directory_tree")
				}
				want.check(t, model, client)
				inputs := r.inputs(t)
				switch {
				case len(inputs) == 0 && way == wayTimeout:
					return // on a busy machine, eca may kill the script before its first command
				case len(inputs) == 0:
					t.Fatal("the hook did not run")
				}
				checkInput(t, r, e, inputs[0])
			})
		}
	}
}

// check searches for texts that must or must not occur; alternatives are separated by |.
func (o hookOutcome) check(t *testing.T, model, client string) {
	t.Helper()
	for _, c := range []struct {
		who, text  string
		yes, never []string
	}{{"the model", withoutTools(model), o.model, o.notInModel}, {"the client", client, o.client, o.notInClient}} {
		for _, p := range c.yes {
			if !slices.ContainsFunc(strings.Split(p, "|"), func(p string) bool { return strings.Contains(c.text, p) }) {
				t.Errorf("%s does not see %s:\n%.6000s", c.who, p, c.text)
			}
		}
		for _, p := range c.never {
			if strings.Contains(c.text, p) {
				t.Errorf("%s sees %s:\n%.6000s", c.who, p, c.text)
			}
		}
	}
}

// withoutTools removes the descriptions of tools, which name all arguments, from requests.
func withoutTools(requests string) string {
	var b strings.Builder
	for line := range strings.Lines(requests) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil {
			delete(m, "tools")
			raw, _ := marshal(m)
			b.WriteString(raw + "\n")
		}
	}
	return b.String()
}

// checkInput checks a script's input against the keys of eca-features.md 18.
func checkInput(t *testing.T, r *rig, e hooks.Event, in map[string]any) {
	t.Helper()
	keys := "hook_name hook_type workspaces cwd db_cache_path session_id eca_executable"
	chatKeys := " chat_id agent behavior full_model variant"
	tool := " tool_name server tool_input tool_call_id"
	keys += map[hooks.Event]string{
		hooks.SessionStart: "", hooks.SessionEnd: "",
		hooks.ChatStart: chatKeys + " resumed", hooks.ChatEnd: chatKeys,
		hooks.ChatStatusChanged:   chatKeys + " status awaiting_user_input pending_approval_tool_call_ids pending_question_tool_call_ids running_tool_call_ids",
		hooks.SubagentStart:       chatKeys + " parent_chat_id",
		hooks.PreRequest:          chatKeys + " prompt",
		hooks.PostRequest:         chatKeys + " response follow_up_active",
		hooks.SubagentPostRequest: chatKeys + " response follow_up_active parent_chat_id",
		hooks.PreToolCall:         chatKeys + tool + " approval", hooks.PostToolCall: chatKeys + tool + " tool_response error",
		hooks.PreCompact: chatKeys + " triggered custom_instructions", hooks.PostCompact: chatKeys + " triggered compact_summary",
	}[e]
	want := strings.Fields(keys)
	slices.Sort(want)
	var got []string
	for k := range in {
		got = append(got, k)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the script reads %q, want %q", got, want)
	}
	for k, v := range map[string]any{
		"hook_name": "the-hook", "hook_type": string(e), "cwd": r.root, "chat_id": "c|subagent-1", "agent": "code", "behavior": "code",
		"full_model": "mock/m", "parent_chat_id": "c", "resumed": false, "prompt": "hi", "response": "The answer.", "follow_up_active": false,
		"tool_name": "directory_tree", "server": "eca", "tool_call_id": "tool-1", "approval": "allow", "error": false,
		"triggered": "manual", "custom_instructions": "please", "compact_summary": "The summary.", "status": "running", "awaiting_user_input": false,
	} {
		if got, ok := in[k]; ok && !slices.Contains(strings.Split(fmt.Sprint(v), "|"), fmt.Sprint(got)) {
			t.Errorf("%s is %v, want %v", k, got, v)
		}
	}
	if args, ok := in["tool_input"].(map[string]any); ok && args["path"] != r.root {
		t.Errorf("tool_input is %v", args)
	}
	if list, ok := in["tool_response"].([]any); ok && (len(list) != 1 || list[0].(map[string]any)["type"] != "text") {
		t.Errorf("tool_response is %v", list)
	}
}

// canceledContext returns a context that has ended: a reader with it gets the available data.
func canceledContext(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
