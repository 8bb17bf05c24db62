package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A user's rules with argsMatchers decide about each call as described in docs/permissions.md, and
// each call names its rule.
func TestRulesOfUsers(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	only := func(arg string, patterns ...any) map[string]any {
		return map[string]any{"argsMatchers": map[string]any{arg: patterns}}
	}
	approval := map[string]any{
		"allow": map[string]any{"eca__shell_command": only("command", "echo [a-z]+", `uname( -\w)?`, `test (?!-w).*`), "eca__write_file": only("path", ".*/docs/.*")},
		"ask":   map[string]any{"eca__shell_command": only("command", "echo secret")},
		"deny":  map[string]any{"eca__shell_command": only("command", "rm .*"), "eca__move_file": only("source", ".*/keep/.*")},
	}
	calls := []struct{ tool, arguments, verdict, rule string }{
		{"shell_command", `{command: "echo hi"}`, "allow", "toolCall.approval.allow.eca__shell_command"},
		{"shell_command", `{command: "uname -s"}`, "allow", "toolCall.approval.allow.eca__shell_command"},
		{"shell_command", `{command: "echo secret"}`, "ask", "toolCall.approval.ask.eca__shell_command"},
		{"shell_command", `{command: "uname && echo secret"}`, "ask", "toolCall.approval.ask.eca__shell_command"},
		{"shell_command", `{command: "echo hi; touch ran"}`, "ask", "toolCall.approval.byDefault"},
		{"shell_command", `{command: "echo hi > ran"}`, "ask", "toolCall.approval.byDefault"},
		{"shell_command", `{command: "test -w x"}`, "ask", "toolCall.approval.byDefault"},
		{"shell_command", `{command: "echo hi; rm a.txt"}`, "deny", "toolCall.approval.deny.eca__shell_command"},
		{"shell_command", `{command: "/bin/rm a.txt"}`, "deny", "toolCall.approval.deny.eca__shell_command"},
		{"shell_command", `{command: "env rm a.txt"}`, "deny", "toolCall.approval.deny.eca__shell_command"},
		{"write_file", `{path: "${workspace}/docs/new.md", content: x}`, "allow", "toolCall.approval.allow.eca__write_file"},
		{"write_file", `{path: "${workspace}/docs/../ran", content: x}`, "ask", "toolCall.approval.byDefault"},
		{"write_file", `{path: "${workspace}/docs/out/ran", content: x}`, "ask", "outside the workspace"},
		{"move_file", `{source: "${workspace}/keep/../a.txt", destination: "${workspace}/ran"}`, "deny", "toolCall.approval.deny.eca__move_file"},
		{"move_file", `{source: "${workspace}/a.txt", destination: "${workspace}/ran"}`, "ask", "toolCall.approval.byDefault"},
	}
	model := "cassette: 1\nturns:\n  - steps:\n"
	for i, c := range calls {
		model += fmt.Sprintf("      - calls: [{id: call-%d, tool: eca__%s, arguments: %s}]\n", i, c.tool, c.arguments)
	}
	root, outside := tempDir(t), tempDir(t)
	for _, err := range []error{os.MkdirAll(filepath.Join(root, "docs"), 0o755), os.MkdirAll(filepath.Join(root, "keep"), 0o755), os.WriteFile(filepath.Join(root, "a.txt"), nil, 0o600), os.Symlink(outside, filepath.Join(root, "docs", "out"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, options{root: root, model: model + "      - {text: Done.}\n", config: map[string]any{"toolCall": map[string]any{"approval": approval}}})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	for i, c := range calls {
		id := fmt.Sprintf("call-%d", i)
		r.Await(0, c.verdict+" for "+c.arguments, fake.Content("toolCallRun", fmt.Sprintf("%q", id), fmt.Sprintf(`"verdict":%q,"rule":%q`, c.verdict, c.rule)))
		switch c.verdict {
		case "ask":
			r.Notify("chat/toolCallReject", map[string]any{"chatId": "c", "toolCallId": id, "goOn": true})
		case "deny":
			r.Await(0, "the denial", fake.Content("toolCallRejected", fmt.Sprintf("%q", id), "userConfigDeny"))
		default:
			r.Await(0, "the result", fake.Content("toolCalled", fmt.Sprintf("%q", id), `"error":false`))
		}
	}
	r.Await(0, "the end", fake.Finished())
	for _, name := range []string{filepath.Join(root, "ran"), filepath.Join(outside, "ran")} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("a call that was not allowed created %s", name)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "a.txt")); err != nil {
		t.Error(err)
	}
}
