package hooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadClaude(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("settings.json", `{"model": "opus", "hooks": {
		"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "a", "timeout": 5}, {"type": "prompt", "prompt": "x"}]}, {"matcher": "*", "hooks": [{"type": "command", "command": "b"}]}],
		"Notification": [{"hooks": []}], "Stop": 7}}`)
	broken, off := write("broken.json", "{"), write("off.json", `{"disableAllHooks": true, "permissions": {"allow": ["Read"], "deny": ["Bash(rm:*)"], "ask": []}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "c"}]}]}}`)
	defs, problems := ReadClaude(nil, good, broken, off, filepath.Join(dir, "none"), dir)
	var got []string
	for _, d := range defs {
		for _, a := range d.Actions {
			got = append(got, strings.Join([]string{d.Name, d.Type, a.Shell}, " "))
		}
	}
	if diff := cmp.Diff([]string{"claude:PreToolUse-1 preToolCall a", "claude:PreToolUse-2 preToolCall b"}, got); diff != "" {
		t.Fatal(diff)
	}
	if *defs[0].Actions[0].Timeout != 5000 || *defs[1].Actions[0].Timeout != claudeLimit || defs[0].Matcher != "Bash|Edit" || defs[1].Matcher != nil {
		t.Errorf("%+v", defs)
	}
	var wrong strings.Builder
	for _, p := range problems {
		wrong.WriteString(filepath.Base(p.Source) + ": " + p.Cause + "\n")
	}
	for _, want := range []string{
		"settings.json: hooks.Notification: eca has no such event", `settings.json: hooks.PreToolUse: the type "prompt" is not supported`,
		"settings.json: hooks.Stop cannot be a JSON number", "broken.json: it is not valid JSON", "off.json: permissions.deny: eca reads only hooks in this file", filepath.Base(dir) + ": it is not a regular file",
	} {
		if !strings.Contains(wrong.String(), want) {
			t.Errorf("no %q in\n%s", want, wrong.String())
		}
	}
	if len(problems) != 6 {
		t.Error(wrong.String())
	}
}

// Input and output of scripts are translated in both directions.
func TestClaudeInputAndOutput(t *testing.T) {
	tool := func(server, name, args string) *Tool {
		return &Tool{CallID: "1", Server: server, Name: name, Arguments: json.RawMessage(args)}
	}
	edit := Call{Event: PreToolCall, Tool: tool("eca", "edit_file", `{"path": "/a", "original_content": "x", "new_content": "y"}`)}
	fields := map[string]any{"chat_id": "c"}
	claudeFields(fields, edit)
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"chat_id":"c","hook_event_name":"PreToolUse","permission_mode":"default","session_id":"c","tool_input":{"file_path":"/a","new_string":"y","old_string":"x"},"tool_name":"Edit","tool_use_id":"1","transcript_path":""}`
	if string(raw) != want {
		t.Errorf("%s", raw)
	}
	if n := claudeName(*tool("git", "log", "{}")); n != "mcp__git__log" {
		t.Error(n)
	}
	for _, c := range []struct {
		event Event
		said  string
		want  output
		block string
	}{
		{PreToolCall, `{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}`, output{Approval: "deny", AdditionalContext: "no"}, ""},
		{PreToolCall, `{"decision": "block", "reason": "old"}`, output{Approval: "deny", AdditionalContext: "old"}, ""},
		{PreToolCall, `{"decision": "approve"}`, output{Approval: "allow"}, ""},
		{PreToolCall, `{"hookSpecificOutput": {"updatedInput": {"file_path": "/b"}}}`, output{UpdatedInput: map[string]json.RawMessage{"path": json.RawMessage(`"/b"`)}}, ""},
		{PreToolCall, `plain`, output{}, ""},
		{PostToolCall, `{"decision": "block", "reason": "tests fail"}`, output{AdditionalContext: "tests fail"}, ""},
		{PreRequest, `plain`, output{AdditionalContext: "plain"}, ""},
		{PreRequest, `{"decision": "block", "reason": "secret"}`, output{}, "secret"},
		{PreRequest, `{"hookSpecificOutput": {"additionalContext": "more"}, "systemMessage": "hi"}`, output{AdditionalContext: "more", SystemMessage: "hi"}, ""},
		{PostRequest, `{"decision": "block", "reason": "go on"}`, output{}, "go on"},
		{PostRequest, `{"continue": false, "stopReason": "enough"}`, output{Stop: true, StopReason: "enough"}, ""},
	} {
		call := Call{Event: c.event, Tool: tool("eca", "edit_file", "{}")}
		got, reason, blocked := call.parseClaudeOutput(c.said)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(output{})); diff != "" || reason != c.block && blocked || blocked != (c.block != "") {
			t.Errorf("%s %s: %q %v %s", c.event, c.said, reason, blocked, diff)
		}
	}
	for _, said := range []string{
		`{"hookSpecificOutput": {"permissionDecision": "maybe"}}`, `{"hookSpecificOutput": {"permisionDecision": "deny"}}`, `{"decisionn": "block"}`,
	} {
		if got, _, _ := edit.parseClaudeOutput(said); got.Approval != "" || len(got.problems) != 1 {
			t.Errorf("%s: %+v", said, got)
		}
	}
}

func FuzzClaudeSettings(f *testing.F) {
	f.Add([]byte(`{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "a", "timeout": 1e300}]}]}}`))
	f.Add([]byte(`{"hooks": {"Stop": null, "": []}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defs, _ := parseClaude("f", data)
		for _, d := range defs {
			for _, a := range d.Actions {
				if a.Shell == "" || *a.Timeout < 0 || len(d.Actions) == 0 {
					t.Errorf("%+v", d)
				}
			}
		}
	})
}

// If a file of settings is empty or cut, as while it is saved, its earlier hooks stay in effect.
func TestIncompleteClaudeSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const whole = `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "guard"}]}]}}`
	write(whole)
	defs, problems := ReadClaude(nil, path)
	if len(defs) != 1 || len(problems) > 0 {
		t.Fatalf("%v, %v", defs, problems)
	}
	for _, text := range []string{"", " \n", whole[:20]} {
		write(text)
		if got, problems := ReadClaude(defs, path); len(got) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Cause, "stays in effect") {
			t.Errorf("%q: %v, %v", text, got, problems)
		}
		if got, problems := ReadClaude(nil, path); len(got) != 0 || len(problems) != 1 {
			t.Errorf("%q at the start: %v, %v", text, got, problems)
		}
	}
	write("{}")
	if got, problems := ReadClaude(defs, path); len(got)+len(problems) > 0 {
		t.Errorf("without hooks: %v, %v", got, problems)
	}
}
