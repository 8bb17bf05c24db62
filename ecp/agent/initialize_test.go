package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// An invalid value is an error that names it, and changes nothing.
func TestBadConfig(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	file := filepath.Join(r.root, "file")
	r.write("file", "x")
	c := r.connect()
	c.initialize(map[string]any{"model": "mock/n"})
	for _, bad := range []struct {
		config map[string]any
		say    string
	}{
		{map[string]any{"model": "nowhere/none"}, "nowhere"},
		{map[string]any{"model": "mock/none"}, "mock/none"},
		{map[string]any{"model": "none"}, "none"},
		{map[string]any{"agent": "nobody"}, `"nobody"`},
		{map[string]any{"agent": "explorer"}, `"explorer"`}, // a subagent
		{map[string]any{"workspace": filepath.Join(r.root, "missing")}, filepath.Join(r.root, "missing")},
		{map[string]any{"workspace": file}, file},
		{map[string]any{"workspace": "relative"}, `"relative"`},
		{map[string]any{"workspace": testkit.TempDir(t), "agent": "nobody"}, `"nobody"`},
		{map[string]any{"approval": "sure"}, `"sure"`},
		{map[string]any{"budgets": map[string]any{"timeout_s": -1}}, "timeout_s"},
	} {
		e := c.callError(ecp.MethodInitialize, map[string]any{"config": bad.config})
		if e.Code != ecp.CodeInvalidParams || !strings.Contains(e.Message, bad.say) {
			t.Errorf("%v: %v", bad.config, e)
		}
	}
	if step := c.step("still the same?"); step.Model != "mock/n" || !strings.Contains(r.lastRequest(), r.root) {
		t.Errorf("%+v", step)
	}
}

// The caller chooses the workspace for each scenario.
func TestWorkspace(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - steps: [{calls: [{id: c, tool: eca__read_file, arguments: {path: "${workspace}/who"}}]}, {text: "${result:(?s)(.*)}"}]
`})
	c := r.connect()
	for _, name := range []string{"one", "two"} {
		dir := testkit.TempDir(t)
		if err := os.WriteFile(filepath.Join(dir, "who"), []byte("I am "+name), 0o644); err != nil {
			t.Fatal(err)
		}
		c.initialize(map[string]any{"workspace": dir})
		checkContains(t, *c.step("who?").PublicOutput, "I am "+name)
	}
}

// An agent that the user defined in a file can be chosen.
func TestAgent(t *testing.T) {
	r := newRig(t, options{
		model:  "turns: []\ndefault: {steps: [{text: ok}]}",
		config: map[string]any{"agent": map[string]any{"reviewer": map[string]any{"mode": "primary", "systemPrompt": "You review and nothing else."}}},
	})
	c := r.connect()
	c.initialize(map[string]any{"agent": "reviewer"})
	step := c.step("hi")
	checkContains(t, r.lastRequest(), "You review and nothing else.")
	if object(t, step.Extra["metadata"])["agent"] != "reviewer" {
		t.Errorf("%s", step.Extra["metadata"])
	}
}

// Configuration of the workspace has no effect, because no user can trust it.
func TestWorkspaceIsNotTrusted(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{calls: [{id: c, tool: eca__write_file, arguments: {path: \"${workspace}/allowed\", content: x}}]}, {text: ok}]}"})
	r.write(".eca/config.json", `{
		"hooks": {"h": {"type": "preRequest", "actions": [{"type": "shell", "shell": "touch hooked"}]}},
		"mcpServers": {"m": {"command": "touch", "args": ["served"]}},
		"toolCall": {"approval": {"allow": {"eca__write_file": {}}}}
	}`)
	c := r.connect()
	c.initialize(map[string]any{})
	step := c.step("go")
	for _, name := range []string{"hooked", "served", "allowed"} {
		if r.exists(name) {
			t.Errorf("%s was made", name)
		}
	}
	checkContains(t, *step.Logs, "has no effect until it is trusted")
}
