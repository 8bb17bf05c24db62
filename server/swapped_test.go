package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// While the user looks at a call, another program redirects its path: the approved call must not
// run at the new target.
func TestTargetIsReplacedDuringTheQuestion(t *testing.T) {
	t.Parallel()
	tools := map[string]string{
		"write_file": `path: "${workspace}/dir/a.txt", content: evil`,
		"edit_file":  `path: "${workspace}/dir/a.txt", original_content: one, new_content: evil`,
		"multi_edit": `path: "${workspace}/dir/a.txt", edits: [{original_content: one, new_content: evil}]`,
		"move_file":  `source: "${workspace}/dir/a.txt", destination: "${workspace}/moved"`,
		"read_file":  `path: "${workspace}/dir/a.txt"`,
	}
	for name, arguments := range tools {
		t.Run(name, func(t *testing.T) {
			root, outside := tempDir(t), tempDir(t)
			for dir, text := range map[string]string{filepath.Join(root, "dir"): "one\n", outside: "one of a secret\n"} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := newRig(t, options{
				root: root, model: fmt.Sprintf("cassette: 1\nturns:\n  - steps:\n      - calls: [{id: call_1, tool: eca__%s, arguments: {%s}}]\n      - {text: Done.}\n", name, arguments),
				config: map[string]any{"toolCall": map[string]any{"approval": map[string]any{"ask": map[string]any{"eca__" + name: map[string]any{}}}}},
			})
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
			r.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
			if err := os.Rename(filepath.Join(root, "dir"), filepath.Join(root, "gone")); err != nil {
				t.Fatal(err)
			}
			needs.Symlink(t, outside, filepath.Join(root, "dir"))
			r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
			r.Await(0, "the refusal", fake.Content("toolCalled", `"error":true`, "leads to another place than when the call was checked"))
			r.Await(0, "the end", fake.Finished())
			if got := readFile(t, filepath.Join(outside, "a.txt")); got != "one of a secret\n" {
				t.Errorf("outside is %q", got)
			}
		})
	}
}
