package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

const claudeModel = `cassette: 1
turns:
  - steps:
      - calls: [{id: call_1, tool: eca__shell_command, arguments: {command: "rm -rf x"}}]
      - {text: "Done."}
  - steps: [{text: "Listed."}]
`

// Files of Claude Code count only after the user enables them in the user's own configuration.
func TestClaudeFiles(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	home := tempDir(t)
	r := newRig(t, options{closed: true, model: claudeModel, env: map[string]string{"HOME": home}})
	for name, text := range map[string]string{
		"agents/checker.md":     "---\nname: checker\ndescription: Checks\ntools: Read, Bash(git log:*), mcp__git__blame\nmodel: sonnet\n---\nYou check.",
		"commands/list.md":      "---\ndescription: Lists\nallowed-tools: Bash(ls:*)\n---\nList $ARGUMENTS ${env:HOME}.",
		"skills/paint/SKILL.md": "---\nname: paint\ndescription: Paints\n---\nPaint.",
		"settings.json":         `{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo from $CLAUDE_PROJECT_DIR"}]}]}}`,
		"settings.local.json":   `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "grep -q '\"rm -rf x\"' && echo 'never delete' >&2 && exit 2"}]}]}}`,
		"../.eca/config.json":   `{"claudeFiles": true}`,
	} {
		r.save(t, filepath.Join(r.root, ".claude", filepath.FromSlash(name)), text)
	}
	r.save(t, filepath.Join(home, ".claude", "commands", "mine.md"), "Mine.")
	r.save(t, filepath.Join(home, ".claude", "CLAUDE.md"), "Be kind.")
	r.Open(r.root, nil)
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "the workspace has no say", fake.Contains("$/showMessage", "claudeFiles can be set only in your own configuration"))
	if got := string(r.Call("chat/queryCommands", map[string]any{"chatId": "c", "query": "mine"})); strings.Contains(got, "mine") && strings.Contains(got, "customPrompt") {
		t.Error(got)
	}
	if _, ok := r.daemon.Config().Agents["checker"]; ok {
		t.Error("an agent of Claude Code exists, although the user did not enable claudeFiles")
	}

	mark := r.Mark()
	r.save(t, r.globalFile(), `{"claudeFiles": true, "welcomeMessage": "changed"}`)
	r.Await(mark, "the change", fake.Contains("config/updated", "changed"))
	if got := ask(t, r, "u", "/hooks"); strings.Contains(got, "claude:") {
		t.Errorf("hooks of the workspace count before it is trusted: %s", got)
	}
	trustAll(t, r)
	ask(t, r, "c", "Delete x")
	body := r.lastBody(t)
	for _, want := range []string{"from " + r.root, "never delete", "Be kind.", `name=\"paint\"`} {
		if !strings.Contains(strings.ReplaceAll(body, `\u003c`, "<"), want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	ask(t, r, "c", "/list all")
	if body := r.lastBody(t); !strings.Contains(body, "List all ${env:HOME}.") {
		t.Error(body)
	}
	a := r.daemon.Config().Agents["checker"]
	if !a.Subagent() || a.Primary() || a.DefaultModel != "" || a.SystemPrompt != "You check." || a.ToolCall.Approval == nil ||
		a.ToolCall.Approval.ByDefault != "deny" || len(a.ToolCall.Approval.Allow) != 1 || len(a.ToolCall.Approval.Ask) != 2 {
		t.Errorf("%+v", a)
	}
	if got := string(r.Call("chat/queryCommands", map[string]any{"chatId": "c", "query": "mine"})); !strings.Contains(got, `"name":"mine"`) {
		t.Error(got)
	}
	if got := ask(t, r, "c", "/hooks"); !strings.Contains(got, "claude:PreToolUse-1") || !strings.Contains(got, "settings.local.json") {
		t.Error(got)
	}
	// A changed settings file counts.
	mark = r.Mark()
	r.save(t, filepath.Join(r.root, ".claude", "settings.json"), `{"hooks": {"Unknown": []}, "permissions": {"deny": ["Read(./.env)"]}}`)
	r.Await(mark, "a problem in it", fake.Contains("$/showMessage", "hooks.Unknown: eca has no such event"))
	r.Await(mark, "a restriction without effect", fake.Contains("$/showMessage", "permissions.deny: eca reads only hooks in this file"))
	if err := os.Remove(r.globalFile()); err != nil {
		t.Fatal(err)
	}
}
