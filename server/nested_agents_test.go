package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// The text of a nested AGENTS.md that the model got stays the same, even if the file changes, and
// is not repeated after a restart.
func TestNestedAgentsAfterRestart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	agents := filepath.Join(root, "sub", "AGENTS.md")
	write := func(text string) {
		if err := os.MkdirAll(filepath.Dir(agents), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(agents, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("Be brief here.")
	model := `
cassette: 1
default:
  steps:
    - calls: [{id: call, tool: eca__directory_tree, arguments: {path: "${workspace}/sub"}}]
    - {text: Done.}
turns: []
`
	model = strings.ReplaceAll(model, "${workspace}", filepath.ToSlash(root))
	r := newRig(t, options{model: model, root: root})
	r.Await(0, "the start", fake.Ready())
	r.turn(t, map[string]any{"chatId": "chat-1", "message": "one"})
	before := r.bodies()
	first := before[len(before)-1]
	if strings.Count(first, "Be brief here.") != 1 {
		t.Fatalf("the model was sent %s", first)
	}
	r.Close()
	write("Be long.")
	r = newRig(t, options{model: model, root: root, state: r.state})
	r.Await(0, "the start", fake.Ready())
	r.turn(t, map[string]any{"chatId": "chat-1", "message": "two"})
	after := r.bodies()
	last := after[len(after)-1]
	if strings.Contains(last, "Be long.") {
		t.Errorf("the model got the changed AGENTS.md: %s", last)
	}
	old, now := wireMessages(t, first), wireMessages(t, last)
	if len(now) < len(old) {
		t.Fatalf("messages were lost: %s", last)
	}
	if diff := cmp.Diff(old, now[:len(old)]); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
}
