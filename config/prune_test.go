package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If a key does not accept a value, the value of the layers below or the default applies: neither a
// typo nor a workspace's file turns a limit or a protection off.
func TestWrongValueLeavesTheLayerBelow(t *testing.T) {
	for _, c := range []struct {
		name, user, workspace string
		got                   func(*Config) any
		want                  any
	}{
		{"a text for a number", `{"toolCall": {"readFile": {"maxLines": 10}}}`, `{"toolCall": {"readFile": {"maxLines": "x"}}}`, func(c *Config) any { return c.ToolCall.ReadFile.MaxLines }, 10},
		{"a number out of bounds", `{"toolCall": {"readFile": {"maxLines": 10}}}`, `{"toolCall": {"readFile": {"maxLines": -5}}}`, func(c *Config) any { return c.ToolCall.ReadFile.MaxLines }, 10},
		{"no layer but the defaults", `{}`, `{"autoCompactPercentage": 5000}`, func(c *Config) any { return c.AutoCompactPercentage }, 75},
		{"a misspelled protection", `{"toolCall": {"sandbox": "required"}}`, `{"toolCall": {"sandbox": "requird"}}`, func(c *Config) any { return c.ToolCall.Sandbox }, "required"},
		{"a misspelled word that fails safe", `{"toolCall": {"unasked": "workspce"}}`, `{}`, func(c *Config) any { return c.ToolCall.Unasked }, "off"},
	} {
		home, root := t.TempDir(), t.TempDir()
		for path, text := range map[string]string{filepath.Join(home, "config.json"): c.user, filepath.Join(root, ".eca", "config.json"): c.workspace} {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l := Load(Inputs{Getenv: func(string) string { return "" }, ConfigHome: home, Roots: []string{root}, Trusts: func(Unit) bool { return true }})
		if got := c.got(l.Config); got != c.want || len(l.Problems) != 1 {
			t.Errorf("%s: %v, want %v; %v", c.name, got, c.want, l.Problems)
		}
	}
}

// A rule that allows calls and has a mistake allows nothing, also what a lower layer allows. A rule
// that denies or asks keeps its effect on all calls.
func TestAllowRuleWithMistakeAllowsNothing(t *testing.T) {
	for rule, want := range map[string]string{
		`{"argMatchers": {"command": ["ls"]}}`:                             "unknown key toolCall.approval.allow.eca__shell_command.argMatchers; it has no effect, so this rule allows nothing; did you mean",
		`{"argsMatchers": "ls"}`:                                           "it is ignored, so this rule allows nothing",
		`{"argsMatchers": {"command": "ls", "working_directory": ["/a"]}}`: "it is ignored, so this rule allows nothing",
	} {
		text := `{"toolCall": {"approval": {"allow": {"eca__shell_command": ` + rule + `}, "deny": {"eca__grep": {"argMatchers": {}}}}}}`
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(`{"toolCall": {"approval": {"allow": {"eca__shell_command": {}}}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		path := filepath.Join(root, ".eca", "config.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := Load(Inputs{Getenv: func(string) string { return "" }, ConfigHome: home, Roots: []string{root}})
		if m := l.ToolCall.Approval.Allow["eca__shell_command"].ArgsMatchers; m == nil || len(m) > 0 {
			t.Errorf("%s: allows calls with %v", rule, m)
		}
		if m, denied := l.ToolCall.Approval.Deny["eca__grep"]; !denied || m.ArgsMatchers != nil {
			t.Errorf("%s: denies %v", rule, m)
		}
		var all string
		for _, f := range l.Findings() {
			all += f.Message + "\n"
		}
		for _, part := range []string{want, "so this rule now applies to every call of the tool"} {
			if !strings.Contains(all, part) {
				t.Errorf("%s: no problem contains %q: %s", rule, part, all)
			}
		}
	}
}
