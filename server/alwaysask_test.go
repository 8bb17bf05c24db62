package server_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A chat with auto-approve still asks about protected places and irreversible effects, and not
// about other calls.
func TestAutoApproveStillAsks(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	var ids, want []string
	model := "cassette: 1\nturns:\n  - steps:\n"
	for i, c := range []struct {
		tool, arguments string
		asks            bool
	}{
		{"write_file", `{path: "${workspace}/a.txt", content: x}`, false},
		{"shell_command", `{command: "mkdir -p src build && rm a.txt"}`, false},
		{"shell_command", `{command: "rm -rf build"}`, false}, // git ignores it
		{"shell_command", `{command: "rm -rf src"}`, true},
		{"shell_command", `{command: "git reset --hard"}`, true},
		{"git", `{command: "git push --force", operation: push}`, true},
		{"shell_command", `{command: "sh -c 'git clean -fdx'"}`, true},
		{"write_file", `{path: "${workspace}/.git/hooks/pre-commit", content: x}`, true},
		{"edit_file", `{path: "${workspace}/.envrc", original_content: a, new_content: b}`, true},
		{"move_file", `{source: "${workspace}/.gitignore", destination: "${workspace}/.eca/config.json"}`, true},
		{"shell_command", `{command: "echo x >> ~/.bashrc"}`, true},
		{"shell_command", `{command: "cp .gitignore .GIT/hooks/x"}`, true},
	} {
		id := fmt.Sprintf("call_%d", i)
		ids = append(ids, id)
		if c.asks {
			want = append(want, id)
		}
		model += fmt.Sprintf("      - calls: [{id: %s, tool: eca__%s, arguments: %s}]\n", id, c.tool, c.arguments)
	}
	model += "      - {text: Done.}\n"
	r := newRig(t, options{model: model, closed: true})
	r.save(t, filepath.Join(r.root, ".gitignore"), "build\n")
	r.save(t, filepath.Join(r.root, ".envrc"), "a\n")
	r.Open(r.root, nil)
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "trust": true})
	var asked []string
	for _, id := range ids {
		r.Await(0, "the call "+id, fake.Content("toolCallRun", fmt.Sprintf(`"id":%q`, id)))
		for _, m := range r.Since(0) {
			text := string(m.Params)
			if strings.Contains(text, `"toolCallRun"`) && strings.Contains(text, fmt.Sprintf(`"id":%q`, id)) && strings.Contains(text, `"manualApproval":true`) {
				asked = append(asked, id)
				r.Notify("chat/toolCallReject", map[string]any{"chatId": "c", "toolCallId": id, "goOn": true})
			}
		}
	}
	r.Await(0, "the end", fake.Finished())
	if got := strings.Join(asked, " "); got != strings.Join(want, " ") {
		t.Errorf("asked about %s, want %s", got, strings.Join(want, " "))
	}
}
