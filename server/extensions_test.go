package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// add writes a file of the workspace's .eca folder as editors do.
func (r *rig) add(t *testing.T, name, text string) {
	t.Helper()
	r.save(t, filepath.Join(r.root, ".eca", filepath.FromSlash(name)), text)
}

// Markdown agents come to the client when they are read, and when they change; one that is
// broken is named with its line, and the others stay.
func TestMarkdownAgents(t *testing.T) {
	root := tempDir(t)
	r := newRig(t, options{root: root, closed: true, config: map[string]any{"agent": map[string]any{"reviewer": map[string]any{"variant": "high"}}}})
	r.add(t, "agents/reviewer.md", "---\nmode: primary\ninherit: plan\n---\nYou review.")
	r.add(t, "agents/helper.md", "---\nmode: subagent\n---\nYou help.")
	r.Open(r.root, nil)
	agents := func(what, list string) {
		t.Helper()
		r.Await(0, what, fake.Contains("config/updated", `"agents":[`+list+`]`))
	}
	agents("the agents", `"code","plan","reviewer"`)
	r.add(t, "agents/helper.md", "You help everybody.")
	agents("a changed agent", `"code","helper","plan","reviewer"`)
	r.add(t, "agents/worse.md", "---\nmode: boss\n---\n")
	r.Await(0, "a problem", fake.Contains("$/showMessage", `worse.md:2: mode must be primary, subagent`))
	if err := os.Remove(filepath.Join(root, ".eca", "agents", "helper.md")); err != nil {
		t.Fatal(err)
	}
	mark := r.Mark()
	r.add(t, "agents/deep.md", "x")
	r.Await(mark, "an agent less and one more", fake.Contains("config/updated", `"agents":["code","deep","plan","reviewer"]`))
	a := r.daemon.Config().Agents["reviewer"]
	if a.SystemPrompt != "You review." || a.Variant != "high" || len(a.DisabledTools) == 0 {
		t.Errorf("%+v", a)
	}
}
