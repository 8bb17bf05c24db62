package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// The differences to the reference server that TestUserConfigs does not test: agents, MCP servers,
// shells and patterns. docs/permissions.md has a row for each.
func TestOtherDifferences(t *testing.T) {
	const (
		readers  = "`plan` and `explorer` run every call that the configuration allows"
		hints    = "`byDefault: allow` lets every tool of an MCP server run"
		changed  = "an allowed MCP tool stays allowed, even if its description changes"
		shells   = "an `allow` pattern for commands applies to every shell"
		patterns = "patterns are Java's regular expressions"
		legacy   = "`manualApproval` with a list of tools comes after `allow`"
	)
	doc, err := os.ReadFile(filepath.FromSlash("../../docs/permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row, options, agent, tool, command string
		change                             func(*tools.Spec, *tools.Plan)
		is                                 tools.Decision
	}{
		{readers, `{"agent": {"plan": {"disabledTools": [], "toolCall": {"approval": {"allow": {"eca__write_file": {}}}}}}}`, "plan", "eca__write_file", "", nil, tools.Deny},
		{readers, `{"agent": {"plan": {"toolCall": {"approval": {"allow": {"github": {}}}}}}}`, "plan", "github__list", "", nil, tools.Ask},
		{readers, `{"agent": {"explorer": {"toolCall": {"approval": {"allow": {"eca__shell_command": {}}}}}}}`, "explorer", "eca__shell_command", "npm test", nil, tools.Ask},
		{readers, `{"agent": {"plan": {"readOnly": false, "disabledTools": [], "toolCall": {"approval": {"allow": {"eca__write_file": {}}}}}}}`, "plan", "eca__write_file", "", nil, tools.Allow},
		{hints, `{"toolCall": {"approval": {"byDefault": "allow"}}}`, "code", "db__drop", "", func(s *tools.Spec, _ *tools.Plan) { s.Caution = "it may destroy" }, tools.Ask},
		{hints, `{"toolCall": {"approval": {"byDefault": "allow"}}}`, "code", "db__read", "", nil, tools.Allow},
		{hints, `{"toolCall": {"approval": {"allow": {"db": {}}}}}`, "code", "db__drop", "", func(s *tools.Spec, _ *tools.Plan) { s.Caution = "it may destroy" }, tools.Allow},
		{changed, `{"toolCall": {"approval": {"allow": {"db": {}}}}}`, "code", "db__read", "", func(s *tools.Spec, _ *tools.Plan) { s.Changed = "it says something else" }, tools.Ask},
		{shells, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["npm test.*"]}}}}}}`, "code", "eca__shell_command", "npm test", otherShell, tools.Ask},
		{shells, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": [".*"]}}}}}}`, "code", "eca__shell_command", "npm test", otherShell, tools.Allow},
		{shells, `{"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["npm test.*"]}}}}}}`, "code", "eca__shell_command", "npm test", otherShell, tools.Deny},
		{patterns, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["npm\\h+test"]}}}}}}`, "code", "eca__shell_command", "npm test", nil, tools.Ask},
		{patterns, `{"toolCall": {"approval": {"byDefault": "allow", "deny": {"eca__shell_command": {"argsMatchers": {"command": ["rm\\h.*"]}}}}}}`, "code", "eca__shell_command", "npm test", nil, tools.Deny},
		{legacy, `{"toolCall": {"manualApproval": ["eca__read_file"]}}`, "code", "eca__read_file", "", nil, tools.Ask},
		{legacy, `{"toolCall": {"manualApproval": false}}`, "code", "db__read", "", nil, tools.Allow},
		{legacy, `{"toolCall": {"manualApproval": true}}`, "code", "db__read", "", nil, tools.Ask},
	} {
		if !strings.Contains(string(doc), "\n| "+c.row) {
			t.Errorf("docs/permissions.md has no row %q", c.row)
		}
		cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(c.options), Getenv: func(string) string { return "" }})
		p, errs := New(cfg.Config, Options{Contains: func(path string) bool { return strings.HasPrefix(path, "/ws") }, Memory: NewMemory("")})
		if len(cfg.Problems) > 0 || (len(errs) > 0) != (c.row == patterns) {
			t.Errorf("%s: %v %v", c.options, cfg.Problems, errs)
		}
		s, plan, args := spec(c.tool), tools.Plan{Paths: []string{"/ws/a"}}, `{"path": "/ws/a"}`
		if c.command != "" {
			args = `{"command": "` + c.command + `"}`
			plan.Command = &tools.Command{Text: c.command, Dir: "/ws", Program: cmdline.Parse(c.command)}
		}
		if c.change != nil {
			c.change(&s, &plan)
		}
		if v := p.Judge(tools.Call{Agent: c.agent, Arguments: json.RawMessage(args)}, s, plan); v.Decision != c.is {
			t.Errorf("%s: %s %s %s: %s (%s: %s), want %s", c.options, c.agent, c.tool, c.command, v.Decision, v.Rule, v.Reason, c.is)
		}
	}
}

// otherShell makes the command of a plan one for a shell that eca cannot parse.
func otherShell(_ *tools.Spec, p *tools.Plan) {
	p.Command.Program = cmdline.Program{Unresolved: "eca cannot parse commands of this shell"}
}
