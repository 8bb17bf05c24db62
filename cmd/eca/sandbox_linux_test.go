package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// Commands that run without the user's approval only write where they are allowed to, in the
// shipped program.
func TestSandboxedProgram(t *testing.T) {
	needs.Long(t)
	if s := sandbox.Probe(); !s.Holds {
		t.Skip("NOT TESTED: no sandbox on this machine: " + s.Without)
	}
	out := testkit.OutOfTemp(t)
	outside := filepath.Join(out, "outside.txt")
	p := newProvider(t, fmt.Sprintf(`
cassette: 1
default:
  steps:
    - calls: [{id: c, tool: eca__shell_command, arguments: {command: "echo x > inside.txt; echo x > %s"}}]
    - {text: Done.}
turns: []
`, outside))
	for _, c := range []struct {
		name, toolCall, hook string
		args                 []string
		inside, outside      bool
	}{
		{"approve all", `{}`, "", []string{"--approve", "all"}, true, false},
		{"the user's rule", `{"approval": {"allow": {"eca__shell_command": {}}}}`, "", nil, true, false},
		{"auto-approve", `{}`, `"chat": {"title": false, "defaultTrust": true},`, nil, true, false},
		{"required", `{"sandbox": "required"}`, "", []string{"--approve", "all"}, true, false},
		{"off", `{"sandbox": "off"}`, "", []string{"--approve", "all"}, true, true},
		{"the user's hook", `{}`, `"hooks": {"h": {"type": "preRequest", "actions": [{"type": "shell", "shell": "echo x > inside.txt; echo x > ` + outside + `"}]}},`, []string{"--approve", "none"}, true, true},
		{"the user's hook, always bound", `{"sandbox": "on"}`, `"hooks": {"h": {"type": "preRequest", "actions": [{"type": "shell", "shell": "echo x > inside.txt; echo x > ` + outside + `"}]}},`, []string{"--approve", "none"}, true, false},
	} {
		here := newPlace(t, p.env()...)
		here.env = append(here.env, "TMPDIR="+t.TempDir(), `ECA_CONFIG={`+c.hook+`"toolCall": `+c.toolCall+`}`)
		stdout, stderr, _ := runProgram(t, here, "", append([]string{"exec", "--json", "go"}, c.args...)...)
		for path, want := range map[string]bool{filepath.Join(here.root, "inside.txt"): c.inside, outside: c.outside} {
			if _, err := os.Stat(path); (err == nil) != want {
				t.Errorf("%s: %s is there: %v\n%s%s", c.name, filepath.Base(path), err == nil, stdout, stderr)
			}
		}
		_ = os.Remove(outside)
	}
	if report, _, _ := runProgram(t, newPlace(t), "", "doctor", "--offline"); !strings.Contains(report, "Landlock") {
		t.Errorf("doctor:\n%s", report)
	}
}
