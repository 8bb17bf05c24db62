package permission

import (
	"encoding/json"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Commands that only read in the workspace run without a question in every agent, unless the
// user says otherwise or the sandbox cannot hold them to it.
func TestReadsRunUnasked(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	const approval = `"approval": `
	for _, c := range []struct {
		options, agent, command string
		want                    tools.Decision
		rule                    string
	}{
		{`{}`, "code", "ls && git status", tools.Allow, RuleReads},
		{`{}`, "unheard-of", "cat a.txt | head -3", tools.Allow, RuleReads},
		{`{}`, "plan", "ls", tools.Allow, "agent.plan.readOnly"},
		{`{}`, "code", "touch a.txt", tools.Ask, "toolCall.approval.byDefault"},
		{`{}`, "code", "cat /etc/passwd", tools.Ask, "toolCall.approval.byDefault"},
		{`{}`, "code", "cat a.txt > b.txt", tools.Ask, "toolCall.approval.byDefault"},
		{`{}`, "code", "cat a.txt; $x", tools.Ask, "toolCall.approval.byDefault"},
		{`{"toolCall": {"unasked": "off"}}`, "code", "ls", tools.Ask, "toolCall.approval.byDefault"},
		{`{"toolCall": {"unasked": "off"}}`, "plan", "ls", tools.Allow, "agent.plan.readOnly"},
		{`{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, "code", "ls", tools.Ask, "toolCall.approval.byDefault"},
		{`{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, "general", "ls", tools.Allow, RuleReads},
		{`{"toolCall": {"unasked": "off"}, "agent": {"code": {"toolCall": {"unasked": "reads"}}}}`, "code", "ls", tools.Allow, RuleReads},
		{`{"toolCall": {"unasked": "workspace"}}`, "code", "ls", tools.Allow, RuleReads},

		{`{"toolCall": {` + approval + `{"byDefault": "deny"}}}`, "code", "ls", tools.Deny, "toolCall.approval.byDefault"},
		{`{"toolCall": {` + approval + `{"byDefault": "allow"}}}`, "code", "ls", tools.Allow, "toolCall.approval.byDefault"},
		{`{"toolCall": {` + approval + `{"deny": {"eca__shell_command": {"argsMatchers": {"command": ["ls.*"]}}}}}}`, "code", "cat a.txt; ls", tools.Deny, "toolCall.approval.deny.eca__shell_command"},
		{`{"toolCall": {` + approval + `{"ask": {"eca__shell_command": {}}}}}`, "code", "ls", tools.Ask, "toolCall.approval.ask.eca__shell_command"},
		{`{"toolCall": {` + approval + `{"allow": {"eca__shell_command": {"argsMatchers": {"command": ["ls.*"]}}}}}}`, "code", "ls", tools.Allow, "toolCall.approval.allow.eca__shell_command"},
		{`{"agent": {"code": {"toolCall": {` + approval + `{"byDefault": "deny"}}}}}`, "code", "ls", tools.Deny, "agent.code.toolCall.approval.byDefault"},
		{`{"agent": {"code": {"toolCall": {` + approval + `{}}}}}`, "code", "ls", tools.Allow, RuleReads},
	} {
		v := judge(t, real(t, c.options, dir), c.agent, dir, c.command)
		if v.Decision != c.want || v.Rule != c.rule || v.Reason == "" {
			t.Errorf("%s: %s: %q: %+v", c.options, c.agent, c.command, v)
		}
	}

	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{}`), Getenv: func(string) string { return "" }})
	without, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{NoReads: "there is no sandbox"}})
	if v := judge(t, without, "code", dir, "ls"); v.Decision != tools.Ask {
		t.Errorf("without a sandbox: %+v", v)
	}
	p := real(t, `{}`, dir)
	call, plan := tools.Call{Agent: "code", Arguments: json.RawMessage(`{"command":"ls"}`), Roots: []string{dir}}, planOf(`{"command":"ls"}`, dir)
	plan.Command.Background = true
	if v := p.Judge(call, spec("eca__shell_command"), plan); v.Decision != tools.Ask {
		t.Errorf("in the background: %+v", v)
	}
	plan.Command.Background = false
	if v := p.Judge(call, spec("server__shell_command"), plan); v.Decision != tools.Ask {
		t.Errorf("a tool of a server: %+v", v)
	}
}

// The line of a custom tool, with the arguments of the call in it, is judged like a command.
func TestCustomToolIsJudgedAsItsLine(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	p := real(t, `{"toolCall": {"approval": {"allow": {"eca__allowed": {}}}}}`, dir)
	call := tools.Call{Agent: "code", Arguments: json.RawMessage(`{}`), Roots: []string{dir}}
	line := func(text string, given ...string) tools.Plan {
		plan := planOf(`{"command":"`+text+`"}`, dir)
		plan.Command.Given = append([]string{}, given...)
		return plan
	}
	if err := p.Remember(call, spec("eca__remembered"), line("deploy 'x'", "x"), tools.ForSession); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		agent, tool string
		plan        tools.Plan
		want        tools.Decision
		rule        string
	}{
		{"code", "eca__mine", line("cat 'a.txt'", "a.txt"), tools.Allow, RuleReads},
		{"code", "eca__mine", line("cat '/etc/passwd'", "/etc/passwd"), tools.Ask, "toolCall.approval.byDefault"},
		{"code", "eca__mine", line("deploy 'x'", "x"), tools.Ask, "toolCall.approval.byDefault"},
		{"code", "eca__allowed", line("deploy 'x'", "x"), tools.Allow, "toolCall.approval.allow.eca__allowed"},
		{"code", "eca__allowed", line("cp x '.git/hooks/x'", ".git/hooks/x"), tools.Ask, "protected"},
		{"code", "eca__remembered", line("deploy 'y'", "y"), tools.Allow, "remembered.session"},
		{"code", "eca__remembered", line("deploy '../y'", "../y"), tools.Ask, "toolCall.approval.byDefault"},
		{"code", "eca__remembered", line("rm -r 'y'", "y"), tools.Ask, "irreversible"},
		{"plan", "eca__mine", line("cat 'a.txt'", "a.txt"), tools.Allow, "agent.plan.readOnly"},
		{"plan", "eca__mine", line("touch 'a.txt'", "a.txt"), tools.Deny, "agent.plan.readOnly"},
		{"plan", "eca__mine", line("deploy 'x'", "x"), tools.Ask, "agent.plan.readOnly"},
	} {
		call.Agent = c.agent
		if v := p.Judge(call, spec(c.tool), c.plan); v.Decision != c.want || v.Rule != c.rule {
			t.Errorf("%s %s %s: %+v", c.agent, c.tool, c.plan.Command.Text, v)
		}
	}
}
