package permission

import (
	"encoding/json"
	"strings"
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

// With toolCall.unasked set to workspace, commands that stay in the workspace run without a
// question where the sandbox holds it in full; whatever leaves it asks.
func TestWorkspaceRunsUnasked(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": "", "sub/b.txt": ""})
	with := func(options, why string) *Policy {
		cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(options), Getenv: func(string) string { return "" }})
		p, errs := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{NoWorkspace: func() string { return why }}})
		if len(errs)+len(cfg.Problems) > 0 {
			t.Fatal(errs, cfg.Problems)
		}
		return p
	}
	const on = `{"toolCall": {"unasked": "workspace"}}`
	p := with(on, "")
	for command, rule := range map[string]string{
		"npm test": tools.RuleWorkspace, "make && ./run > out.txt": tools.RuleWorkspace, "python3 -c 'print(1)'": tools.RuleWorkspace, "rm a.txt": tools.RuleWorkspace, "cd sub && touch c": tools.RuleWorkspace, "X=1 pytest; $x": tools.RuleWorkspace,
		"git commit -am x": tools.RuleWorkspace, "cat a.txt": RuleReads, "npm test > /dev/null": tools.RuleWorkspace,
		"git reset --hard": "irreversible", "rm -rf sub": "irreversible", "echo x > .git/hooks/x": "protected", "cp a.txt .envrc": "protected",
		"curl http://x.example": "toolCall.approval.byDefault", "git push": "toolCall.approval.byDefault", "npm install x": "toolCall.approval.byDefault", "pnpm --filter a add x": "toolCall.approval.byDefault", "sudo docker ps": "toolCall.approval.byDefault",
		"cp a.txt /etc/x": "toolCall.approval.byDefault", "cp a.txt ../x": "toolCall.approval.byDefault", "make > /etc/x": "toolCall.approval.byDefault", "cat /etc/passwd": "toolCall.approval.byDefault", "cd / && make": "toolCall.approval.byDefault", "touch ~/x": "toolCall.approval.byDefault",
		"echo 'unclosed": "toolCall.approval.byDefault",
	} {
		v := judge(t, p, "code", dir, command)
		if v.Rule != rule || (v.Decision == tools.Allow) != strings.HasPrefix(rule, "sandbox.") {
			t.Errorf("%q: %+v", command, v)
		}
	}
	for _, c := range []struct {
		p              *Policy
		agent, command string
		want           tools.Decision
	}{
		{with(`{}`, ""), "code", "npm test", tools.Ask},
		{with(on, "there are no namespaces"), "code", "npm test", tools.Ask},
		{with(`{"agent": {"code": {"toolCall": {"unasked": "reads"}}}, "toolCall": {"unasked": "workspace"}}`, ""), "code", "npm test", tools.Ask},
		{p, "plan", "npm test", tools.Ask},
		{p, "plan", "rm a.txt", tools.Deny},
		{with(`{"toolCall": {"unasked": "workspace", "approval": {"byDefault": "deny"}}}`, ""), "code", "npm test", tools.Deny},
		{with(`{"toolCall": {"unasked": "workspace", "approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["rm .*"]}}}}}}`, ""), "code", "npm test; rm x", tools.Deny},
		{with(`{"toolCall": {"unasked": "workspace", "approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["rm .*"]}}}}}}`, ""), "code", "npm test; $x", tools.Ask},
		{with(`{"toolCall": {"unasked": "workspace", "approval": {"ask": {"eca__shell_command": {"argsMatchers": {"command": ["npm .*"]}}}}}}`, ""), "code", "make; npm test", tools.Ask},
		{real(t, on, dir), "code", "npm test", tools.Ask},
	} {
		if v := judge(t, c.p, c.agent, dir, c.command); v.Decision != c.want {
			t.Errorf("%s: %q: %+v", c.agent, c.command, v)
		}
	}
	call, plan := tools.Call{Agent: "code", Arguments: json.RawMessage(`{"command":"npm test"}`), Roots: []string{dir}}, planOf(`{"command":"npm test"}`, dir)
	plan.Command.Background = true
	if v := p.Judge(call, spec("eca__shell_command"), plan); v.Decision != tools.Ask {
		t.Errorf("in the background: %+v", v)
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
