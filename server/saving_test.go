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

// While a configuration file is saved, it may be empty or broken for a moment. Until it is complete
// again, its previous content counts, and the user is notified of each state once.
func TestConfigurationIsBeingSaved(t *testing.T) {
	needs.Long(t)
	r := newRig(t, options{closed: true, model: anyAnswer})
	plugins := tempDir(t)
	global := fmt.Sprintf(`{"providers": {"mine": {"api": "openai-chat", "url": "http://127.0.0.1:1/v1", "key": "k", "models": {"m1": {}}}},
		"plugins": {"local": {"source": %q}, "install": ["kit"]}}`, plugins)
	files := []struct {
		path, text, half string
		counts           func() bool
	}{
		{r.globalFile(), global, global[:len(global)/2], func() bool { _, ok := r.daemon.Config().Providers["mine"].Models["m1"]; return ok }},
		{
			r.workspaceFile(), `{"agent": {"own": {"description": "Mine"}}}`, `{"agent": {"own"`,
			func() bool { return r.daemon.Config().Agents["own"].Description == "Mine" },
		},
		{
			filepath.Join(r.root, ".eca", "agents", "helper.md"), "---\ndescription: Helps\n---\nYou help.", "---\ndescription: He",
			func() bool { return r.daemon.Config().Agents["helper"].SystemPrompt == "You help." },
		},
		{
			filepath.Join(plugins, ".eca-plugin", "marketplace.json"), `{"plugins": [{"name": "kit", "source": "kit"}]}`, "{\n\"plugins\": [{\"na",
			func() bool { return r.daemon.Config().Agents["kits"].Description == "Kit's" },
		},
		{
			filepath.Join(plugins, "kit", "eca.json"), `{"agent": {"kits": {"description": "Kit's"}}}`, `{"agent": {"ki`,
			func() bool { return r.daemon.Config().Agents["kits"].Description == "Kit's" },
		},
		{
			filepath.Join(plugins, "kit", "hooks", "hooks.json"), `{"greet": {"type": "preRequest", "actions": [{"type": "shell", "shell": "true"}]}}`, `{"greet": {"ty`,
			func() bool { _, ok := r.daemon.Config().Hooks["kit::greet"]; return ok },
		},
		{
			filepath.Join(plugins, "kit", ".mcp.json"), `{"mcpServers": {"kits": {"command": "none", "disabled": true}}}`, `{"mcpServers": {"kits": {"comm`,
			func() bool { return r.daemon.Config().MCPServers["kits"].Command == "none" },
		},
	}
	for _, f := range files {
		r.save(t, f.path, f.text)
	}
	r.Open(r.root, nil)
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "the agents", fake.Contains("config/updated", `"helper"`, `"kits"`))
	for _, f := range files {
		if !f.counts() {
			t.Fatalf("the complete file %s has no effect", f.path)
		}
	}
	start := r.Mark()
	for _, f := range files {
		for _, text := range []string{"", f.half} {
			mark := r.Mark()
			if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil { // in place, as shells do
				t.Fatal(err)
			}
			r.Await(mark, fmt.Sprintf("the problem of %s with %q", f.path, text),
				fake.Contains("$/showMessage", `"type":"warning"`, filepath.Base(f.path), "(what the file said before stays in effect)"))
			for _, other := range files {
				if !other.counts() {
					t.Errorf("with %q in %s, %s has lost its effect", text, f.path, other.path)
				}
			}
		}
	}
	r.save(t, r.globalFile(), strings.Replace(global, "m1", "m2", 1))
	r.Await(start, "the whole file", fake.Contains("config/updated", `"mine/m2"`))
	seen := map[string]bool{}
	for _, m := range r.Since(start) {
		if text := string(m.Params); m.Method == "$/showMessage" && seen[text] {
			t.Errorf("the user got this message twice: %s", text)
		} else if m.Method == "$/showMessage" {
			seen[text] = true
		}
		if m.Method == "config/updated" && !strings.Contains(string(m.Params), "mine/m2") {
			t.Errorf("an incomplete file reached the client: %s", m.Params)
		}
	}
}
