package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Commands that only read in the workspace run without a question in every agent, unless the user's
// configuration says otherwise or the sandbox cannot confine them.
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
		v := judge(t, policyFor(t, c.options, dir), c.agent, dir, c.command)
		if v.Decision != c.want || v.Rule != c.rule || v.Reason == "" {
			t.Errorf("%s: %s: %q: %+v", c.options, c.agent, c.command, v)
		}
	}

	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{}`), Getenv: func(string) string { return "" }})
	without, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{ReadsUnavailable: "there is no sandbox"}})
	if v := judge(t, without, "code", dir, "ls"); v.Decision != tools.Ask {
		t.Errorf("without a sandbox: %+v", v)
	}
	p := policyFor(t, `{}`, dir)
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
// question if the sandbox can enforce all of its limits. eca asks about commands that leave the
// workspace.
func TestWorkspaceRunsUnasked(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": "", "sub/b.txt": ""})
	with := func(options, why string) *Policy {
		cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(options), Getenv: func(string) string { return "" }})
		p, errs := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{WorkspaceUnavailable: func() string { return why }}, Getenv: func(name string) string {
			return map[string]string{"OUTSIDE": "/etc", "PWD": "/", "PATH": os.Getenv("PATH")}[name]
		}})
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
		// Names outside the workspace that only an expansion shows.
		"cat ~/x": "toolCall.approval.byDefault", "ls ~": "toolCall.approval.byDefault", "cat $HOME/x": "toolCall.approval.byDefault", "cat \"${HOME}/x\"": "toolCall.approval.byDefault",
		"cat \"$HOME\"/.ssh/id_rsa": "toolCall.approval.byDefault", "cat < ~/x": "toolCall.approval.byDefault", "head -c 9 ~/.aws/credentials": "toolCall.approval.byDefault", "grep -r x ~": "toolCall.approval.byDefault",
		"cat ~root/x": "toolCall.approval.byDefault", "X=/etc/passwd; cat $X": "toolCall.approval.byDefault", "for f in /etc/passwd; do cat $f; done": "toolCall.approval.byDefault",
		"cat $(echo /etc/passwd); touch a": "toolCall.approval.byDefault", "cat $OUTSIDE/passwd": "toolCall.approval.byDefault", "cat ${OUTSIDE}/passwd": "toolCall.approval.byDefault",
		"for f in *.txt; do cat $f; done": RuleReads, "X=a.txt; cat $X": RuleReads, "XY=a.txt; cat $XY": tools.RuleWorkspace, "cat $PWD/a.txt": tools.RuleWorkspace,
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
		{policyFor(t, on, dir), "code", "npm test", tools.Ask},
	} {
		if v := judge(t, c.p, c.agent, dir, c.command); v.Decision != c.want {
			t.Errorf("%s: %q: %+v", c.agent, c.command, v)
		}
	}
	call, plan := tools.Call{Agent: "code", Arguments: json.RawMessage(`{"command":"npm start"}`), Roots: []string{dir}}, planOf(`{"command":"npm start"}`, dir)
	plan.Command.Background = true
	if v := p.Judge(call, spec("eca__shell_command"), plan); v.Rule != tools.RuleWorkspace {
		t.Errorf("a server in the background, on the chat's own loopback: %+v", v)
	}
	if v := with(`{}`, "").Judge(call, spec("eca__shell_command"), plan); v.Decision != tools.Ask {
		t.Errorf("in the background, without unasked: workspace: %+v", v)
	}
}

// eca does not ask because of effects that stay in the sandbox of the workspace: names that xargs
// reads, writes to temporary folders, connections on the chat's own loopback.
func TestWhatTheSandboxHoldsDoesNotAsk(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	temp := makeFiles(t, map[string]string{"sub/x": ""})
	needs.Symlink(t, "/etc", filepath.Join(temp, "away"))
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"unasked": "workspace"}}`), Getenv: func(string) string { return "" }})
	p, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{Writable: []string{temp}, WorkspaceUnavailable: func() string { return "" }}})
	for command, reason := range map[string]string{
		"find . -name '*.txt' | xargs wc -l": "", "ls | xargs -n1 cat": "", "find . | xargs grep x": "", "find / | xargs wc -l": "/ is outside the workspace",
		"echo x > TEMP/y": "", "cat TEMP/sub/x": "", "cp a.txt TEMP/sub": "", "cd TEMP/sub && make": "", "cat TEMP/away/passwd": "TEMP/away/passwd leads to /etc/passwd, which is outside the workspace", "echo x > TEMP/away/y": "it writes outside the workspace: TEMP/away/y", "echo x > TEMP/../y": "it writes outside the workspace: TEMP/../y",
		"npm test > /dev/null 2>&1": "", "make -o /dev/null": "",
		"curl localhost:3000": "", "curl -s http://127.0.0.1:8080/health": "", "curl -d '{}' http://u:p@localhost/x?y": "", "wget -qO- http://[::1]:80/": "", "curl http://localhost:$PORT/": "",
		"curl x.example": "curl needs the network", "curl http://localhost@x.example/": "curl needs the network", "curl localhost https://x.example": "curl needs the network", "curl http://localhost.x.example/": "curl needs the network", "curl $URL": "curl needs the network", "curl": "curl needs the network",
		"docker ps": "docker needs the network", "make > /x/y": "it writes outside the workspace: /x/y", "cp a.txt /x/y": "it names a file outside the workspace: /x/y", "echo 'x": "the program cannot be parsed: reached EOF without closing quote `'`",
	} {
		command, reason = strings.ReplaceAll(command, "TEMP", temp), strings.ReplaceAll(reason, "TEMP", temp)
		v := judge(t, p, "code", dir, command)
		if (v.Rule == tools.RuleWorkspace) != (reason == "") || !strings.HasPrefix(v.Reason, reason) {
			t.Errorf("%q: %+v", command, v)
		}
	}
	p.sandbox.Hosts = true
	for command, want := range map[string]tools.Decision{
		"npm install": tools.Allow, "pip install -r a.txt": tools.Allow, "git fetch": tools.Allow, "cargo install x": tools.Allow,
		"npm publish": tools.Ask, "git push": tools.Ask, "npm login": tools.Ask, "curl x.example": tools.Ask, "ssh x.example": tools.Ask, "docker pull x": tools.Ask,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want {
			t.Errorf("with hosts, %q: %+v", command, v)
		}
	}
	call, plan := tools.Call{Agent: "code", Arguments: json.RawMessage(`{"command":"npm test"}`), Roots: []string{dir}}, planOf(`{"command":"cp a.txt `+temp+`/x"}`, dir)
	if err := p.Remember(call, spec("eca__shell_command"), plan, tools.ForSession); err != nil {
		t.Fatal(err)
	}
	without := policyFor(t, `{}`, dir)
	without.memory = p.memory
	if v := judge(t, without, "code", dir, "cp a.txt "+temp+"/x"); v.Decision != tools.Ask {
		t.Errorf("a temporary folder is remembered like the workspace: %+v", v)
	}
}

// With toolCall.unasked set to workspace, file tools change files of the workspace without a
// question, as commands do.
func TestFileToolsRunUnaskedInTheWorkspace(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	needs.Symlink(t, "/etc", filepath.Join(dir, "away"))
	with := func(options, why string) *Policy {
		cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(options), Getenv: func(string) string { return "" }})
		p, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{Writable: []string{os.TempDir()}, WorkspaceUnavailable: func() string { return why }}})
		return p
	}
	const on = `{"toolCall": {"unasked": "workspace"}}`
	p := with(on, "")
	for _, c := range []struct {
		p                 *Policy
		agent, tool, path string
		want              tools.Decision
	}{
		{p, "code", "eca__write_file", "new/b.txt", tools.Allow},
		{p, "code", "eca__edit_file", "a.txt", tools.Allow},
		{p, "code", "eca__write_file", ".git/hooks/x", tools.Ask},
		{p, "code", "eca__write_file", "away/x", tools.Ask},
		{p, "code", "eca__write_file", "../x", tools.Ask},
		{p, "code", "server__write_file", "a.txt", tools.Ask},
		{p, "plan", "eca__write_file", "a.txt", tools.Deny},
		{with(on, "x is not trusted"), "code", "eca__write_file", "a.txt", tools.Ask},
		{with(`{}`, ""), "code", "eca__write_file", "a.txt", tools.Ask},
		{with(`{"toolCall": {"unasked": "workspace", "approval": {"ask": {"eca__write_file": {}}}}}`, ""), "code", "eca__write_file", "a.txt", tools.Ask},
		{with(`{"toolCall": {"unasked": "workspace", "approval": {"byDefault": "deny"}}}`, ""), "code", "eca__write_file", "a.txt", tools.Deny},
	} {
		v := c.p.Judge(tools.Call{Agent: c.agent, Arguments: json.RawMessage(`{}`), Roots: []string{dir}}, spec(c.tool), tools.Plan{Paths: []string{filepath.Join(dir, c.path)}})
		if v.Decision != c.want || (v.Decision == tools.Allow) != (v.Rule == RuleFiles) {
			t.Errorf("%s: %s %s: %+v", c.agent, c.tool, c.path, v)
		}
	}
}

// eca asks about a call that is to run outside the sandbox, with each setting of the table, and
// remembers nothing about it.
func TestLeavingTheSandboxAlwaysAsks(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	for _, options := range []string{
		`{}`, `{"toolCall": {"unasked": "workspace"}}`, `{"toolCall": {"approval": {"byDefault": "allow"}}}`, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {}}}}}`,
		`{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": [".*"]}}}}}}`,
	} {
		p := policyFor(t, options, dir)
		for _, command := range []string{"ls", "npm test"} {
			call, plan := tools.Call{Agent: "code", Arguments: json.RawMessage(`{"command":"` + command + `"}`), Roots: []string{dir}}, planOf(`{"command":"`+command+`"}`, dir)
			for range 2 {
				plan.Command.Outside = "it needs the registry"
				v := p.Judge(call, spec("eca__shell_command"), plan)
				if v.Decision != tools.Ask || !v.AlwaysAsk || !strings.Contains(v.Reason, "outside the sandbox, with all your rights: it needs the registry") {
					t.Errorf("%s: %q: %+v", options, command, v)
				}
				if err := p.Remember(call, spec("eca__shell_command"), plan, tools.ForSession); err != nil {
					t.Fatal(err)
				}
			}
			plan.Command.Outside = ""
			if v := p.Judge(call, spec("eca__shell_command"), plan); strings.HasPrefix(v.Rule, "remembered") {
				t.Errorf("%s: %q is remembered: %+v", options, command, v)
			}
		}
	}
	deny := policyFor(t, `{"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["npm .*"]}}}}}}`, dir)
	plan := planOf(`{"command":"npm test"}`, dir)
	plan.Command.Outside = "why"
	if v := deny.Judge(tools.Call{Agent: "code", Arguments: json.RawMessage(`{"command":"npm test"}`), Roots: []string{dir}}, spec("eca__shell_command"), plan); v.Decision != tools.Deny {
		t.Errorf("a denied command is not denied outside the sandbox: %+v", v)
	}
}

// The command line of a custom tool, with the arguments of the call in it, is judged like any
// command.
func TestCustomToolIsJudgedAsItsLine(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	p := policyFor(t, `{"toolCall": {"approval": {"allow": {"eca__allowed": {}}}}}`, dir)
	call := tools.Call{Agent: "code", Arguments: json.RawMessage(`{}`), Roots: []string{dir}}
	line := func(text string, given ...string) tools.Plan {
		plan := planOf(`{"command":"`+text+`"}`, dir)
		plan.Command.TemplateArguments = append([]string{}, given...)
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

// Names that a program reads from another program may lead anywhere. eca does not ask about them if
// the sandbox confines reading to the workspace and no such name can make the program do more than
// read.
func TestNamesFromOthersAreHeldBySandbox(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": "foo\n"})
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{}`), Getenv: func(string) string { return "" }})
	policy := func(held bool) *Policy {
		p, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{ReadsConfined: held}})
		return p
	}
	for _, command := range []string{"find . -name '*.txt' | xargs wc -l", "find . -type f -exec grep -l foo {} +", `find . -exec ls -l {} \;`, "grep -rl foo . | xargs -n 1 head -5"} {
		if v := judge(t, policy(true), "code", dir, command); v.Decision != tools.Allow || v.Rule != RuleReads {
			t.Errorf("%q: %v (%s: %s)", command, v.Decision, v.Rule, v.Reason)
		}
		if v := judge(t, policy(false), "code", dir, command); v.Decision != tools.Ask {
			t.Errorf("%q, where reading is not confined: %v (%s)", command, v.Decision, v.Rule)
		}
	}
	for _, command := range []string{"ls | xargs rm", "ls | xargs sort", "ls | xargs sed -n 1p", "ls | xargs git log", "find . -exec sort {} +", "find . -exec cat /etc/passwd {} +", "ls | xargs cat ../x", "find / -exec cat {} +", "find . -execdir cat {} +"} {
		if v := judge(t, policy(true), "code", dir, command); v.Decision != tools.Ask {
			t.Errorf("%q: %v (%s)", command, v.Decision, v.Rule)
		}
	}
}

// Commands that only read run unasked with loops, variables and tests if eca knows what runs. It
// judges the value of a variable like a word in its stead.
func TestVariablesRunUnasked(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": "", "b.txt": "", "sub/c.txt": "", "list": "-v a[$(id)]\n/etc/passwd\n"})
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Skip("NOT TESTED: no links: ", err)
	}
	with := func(held bool, approval string) *Policy {
		cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"approval": ` + approval + `}}`), Getenv: func(string) string { return "" }})
		p, errs := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{ReadsConfined: held}, Getenv: func(name string) string {
			return map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/home/u"}[name]
		}})
		if len(errs)+len(cfg.Problems) > 0 {
			t.Fatal(errs, cfg.Problems)
		}
		return p
	}
	p := with(true, `{}`)
	asks := func(p *Policy, agent, command string) bool {
		return judge(t, p, agent, dir, command).Decision != tools.Allow
	}
	for _, agent := range []string{"code", "plan"} {
		for _, command := range []string{
			"d=sub; ls \"$d\"", "d=sub && ls $d/*.txt", "for f in *.txt; do echo \"== $f\"; head -3 \"$f\"; done", "for f in a.txt b.txt; do [ -f \"$f\" ] || continue; wc -l < \"$f\"; done", "for i in {1..3}; do echo $i; done", "for f in $(ls); do wc -l \"$f\"; done",
			"while IFS= read -r line; do printf '%s\\n' \"$line\"; done < list", "ls | while read -r f; do cat \"$f\"; done", "[[ -f a.txt && ! -d nothing ]] && cat a.txt", "n=$(ls | wc -l); echo \"$n files\"; [ \"$n\" -gt 3 ]", "wc -l $(ls)", "ls; echo \"exit: $?\"; [ $? -eq 0 ]",
			"bash -lc 'ls sub'", "bash -lc 'for f in a.txt; do cat \"$f\"; done'",
			"f=a.go; cat \"${f%.go}.txt\"", "n=2; head -n $((n + 1)) a.txt", "case a in a*) cat a.txt;; *) ls sub;; esac",
		} {
			if v := judge(t, p, agent, dir, command); v.Decision != tools.Allow {
				t.Errorf("%s: %q asks: %s", agent, command, v.Reason)
			}
		}
	}
	for _, command := range []string{
		// Values lead out of the workspace, become options or other words.
		"f=/etc/passwd; cat \"$f\"", "d=out; cat \"$d/passwd\"", "d=..; ls \"$d\"", "for f in a.txt /etc/passwd; do cat \"$f\"; done", "f=/etc/passwd; wc -l < \"$f\"", "f=/dev/tcp/h/1; cat < \"$f\"", "d=/; ls $d*", "f=~/x; cat \"$f\"", "[[ -f /etc/passwd ]]", "f=/etc/x; [[ -e $f ]]", "for f in /etc/*; do echo \"$f\"; done", "for f in out/*; do echo \"$f\"; done",
		"o=--output=x; git diff \"$o\"", "o=-o; sort \"$o\" b.txt a.txt", "o=-exec; find . \"$o\" rm {} +", "o=-delete; find . $o", "o=-v; [ \"$o\" 'a[$(id)]' ]", "f='a.txt /etc/passwd'; cat $f", "f='/etc/*'; ls $f", "c=rm; $c a.txt",
		// Values may differ from what they seem to be: they are set conditionally, or in another shell.
		"cat \"$f/etc/passwd\"", "echo \"$(f=a.txt)\"; cat \"$f/etc/passwd\"", "(f=a.txt); cat \"$f/etc/passwd\"", "f=a.txt | ls; cat \"$f/etc/passwd\"", "f=a.txt & cat \"$f/etc/passwd\"", "false && f=a.txt; cat \"$f/etc/passwd\"", "true || f=a.txt; cat \"$f/etc/passwd\"", "! { false && f=a.txt; } && cat \"$f/etc/passwd\"",
		"if false; then f=a.txt; fi; cat \"$f/etc/passwd\"", "for f in; do :; done; cat \"$f/etc/passwd\"", "f=a.txt; sh -c 'cat \"$f/etc/passwd\"'", "f=a.txt < nothing; cat \"$f/etc/passwd\"", "f=a.txt; for i in 1 2; do cat \"$f\"; f=/etc/passwd; done", "f() { g=/etc/passwd; }; g=a.txt; f; cat \"$g\"",
		"export f=a; cat \"$f\"", "declare f=a; cat \"$f\"", "readonly f=a; cat \"$f\"", "f=a; unset f; cat \"$f/etc/passwd\"", "f=a; printf -v f /etc/passwd; cat \"$f\"", "f=a; mapfile f < list; cat \"$f\"", "f=a; getopts x f; cat \"$f\"", "f=a; eval 'f=/etc/passwd'; cat \"$f\"", "f=a; f+=/../../x; cat \"$f\"", "f=a; declare -n g=f; cat \"$g\"",
		"echo $((f=5)); cat \"$f\"", "((f=5)); cat \"$f\"", "let f=5; cat \"$f\"", "echo ${f:=/etc/passwd}; cat \"$f\"", "f=g; cat \"${!f}\"", "f=(a /etc/passwd); cat \"${f[1]}\"", "f[0]=a; cat \"$f\"", "f=a; cat \"${f/a//etc/passwd}\"", "set -- /etc/passwd; cat \"$1\"", "wait -p f; cat \"$f\"", "coproc f { ls; }; cat \"$f\"",
		// Variables that shells and programs obey.
		"PATH=.; ls", "IFS=a; ls", "BASH_ENV=x; bash -c ls", "ENV=x; sh -c ls", "LD_PRELOAD=./x; ls", "GIT_DIR=x; git log", "GIT_EXTERNAL_DIFF=./x; git diff", "PAGER=./x; git log", "CDPATH=/; cd etc; cat passwd", "HOME=/etc; cd; cat passwd", "PWD=/; ls", "OLDPWD=/etc; cd -; cat passwd", "PS4='$(id)'; set -x; ls", "GLOBIGNORE=x; ls", "SHELLOPTS=x; ls",
		"for PATH in .; do ls; done", "read -r PATH < list; ls", "while read -r LD_PRELOAD; do ls; done < list", "IFS=/ read -r IFS; ls",
		// Data from a file may become an option, an operator, a folder or code.
		"while read -r a b; do [ \"$a\" \"$b\" ]; done < list", "read -r a < list; test $a x", "while read -r a; do sort \"$a\"; done < list", "while read -r a; do git log \"$a\"; done < list", "while read -r a; do find . \"$a\"; done < list", "while read -r a; do cd \"$a\" && cat passwd; done < list", "while read -r a; do cat < \"$a\"; done < list", "while read -r a; do eval \"$a\"; done < list", "while read -r a; do $a; done < list", "while read -r a; do printf \"$a\"; done < list", "sort $(cat list)", "while read -r a; do jq \"$a\" list; done < list",
		"[[ -v a ]]", "a='x[$(id)]'; [[ -v $a ]]", "a='x[$(id)]'; [[ $a -eq 1 ]]", "[[ a =~ $(id) ]]", "test -v 'x[$(id)]'", "read 'x[$(id)]' < list", "while read -r a; do [[ $a -gt 1 ]]; done < list",
		"f=x/etc/passwd; cat \"${f#x}\"", "f=; cat \"${f:-/etc/passwd}\"", "f=a.txt; cat \"${f%a.txt}/etc/passwd\"", "case a in a) cat /etc/passwd;; esac", "case a in b) ls;; *) cd /etc;; esac; cat passwd", "x='a[$(touch y)]'; echo $((x))", "a='x[$(touch y)]'; b=a; echo $((b * 2))", "x=$((1 / 0))\ncat \"$x\"", "o=-oyx; sort \"${o%x}\" a.txt",
		"bash -lc 'touch x'", "bash -lc 'cat /etc/passwd'", "bash -ilc ls", "bash -lc 'f=/etc/passwd; cat \"$f\"'",
	} {
		for _, agent := range []string{"code", "plan"} {
			if !asks(p, agent, command) {
				t.Errorf("%s: %q runs unasked", agent, command)
			}
		}
	}
	// A command may only read names that eca does not know if the sandbox confines it to the workspace.
	for _, command := range []string{"while read -r f; do cat \"$f\"; done < list", "wc -l $(ls)", "for f in $(ls); do echo $f; done"} {
		if !asks(with(false, `{}`), "code", command) {
			t.Errorf("%q runs unasked, and may read anything", command)
		}
	}
	// A rule of the user applies to values of variables, names that globs match, and unknown names.
	for _, approval := range []string{`{"deny": {"eca__shell_command": {"argsMatchers": {"command": ["(cat|<) a\\.txt"]}}}}`, `{"ask": {"eca__shell_command": {"argsMatchers": {"command": ["(cat|<) a\\.txt"]}}}}`} {
		for _, command := range []string{
			"cat a.txt", "f=a.txt; cat \"$f\"", "n=a; cat $n.txt", "for f in b.txt a.txt; do cat \"$f\"; done", "for f in *.txt; do cat \"$f\"; done", "cat a.t?t", "f=a.txt; head < \"$f\"", "bash -lc 'f=a.txt; cat \"$f\"'", "cd sub; f=a.txt; cat \"$f\"",
			"while read -r f; do cat \"$f\"; done < list", "ls | xargs cat", "cat $(ls)", "find . -exec cat {} +",
		} {
			if !asks(with(true, approval), "code", command) {
				t.Errorf("with %s, %q runs unasked", approval, command)
			}
		}
		for _, command := range []string{"cat b.txt", "f=b.txt; cat \"$f\"", "for f in b.txt; do cat \"$f\"; done", "ls; echo $?", "while read -r l; do echo \"$l\"; done < list"} {
			if asks(with(true, approval), "code", command) {
				t.Errorf("with %s, %q asks", approval, command)
			}
		}
	}
}
