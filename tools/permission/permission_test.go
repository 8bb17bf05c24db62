package permission

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

func policy(t *testing.T, options string) *Policy {
	t.Helper()
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(options), Getenv: func(string) string { return "" }})
	if len(cfg.Problems) > 0 {
		t.Fatal(cfg.Problems)
	}
	p, errs := New(cfg.Config, Options{Contains: func(path string) bool { return path == "/ws" || strings.HasPrefix(path, "/ws/") }, Memory: NewMemory("")})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

func spec(full string) tools.Spec {
	server, name, _ := strings.Cut(full, "__")
	return tools.Spec{Server: server, Name: name}
}

// planOf is the plan of a call: of a command, if it has one.
func planOf(args, path string) tools.Plan {
	plan := tools.Plan{Paths: []string{path}}
	var a struct{ Command string }
	if json.Unmarshal([]byte(args), &a) == nil && a.Command != "" {
		plan.Command = &tools.Command{Text: a.Command, Dir: path, Program: cmdline.Parse(a.Command)}
	}
	return plan
}

func TestPrecedence(t *testing.T) {
	const rules = `{"toolCall": {"approval": {
		"byDefault": "allow",
		"deny":  {"eca__shell_command": {"argsMatchers": {"command": ["rm .*", "(?!git).*--force"]}}, "evil": {}},
		"ask":   {"shell_command": {"argsMatchers": {"command": ["curl.*"], "timeout": ["0"]}}, "github__push": {}},
		"allow": {"github": {}, "eca__write_file": {}}}},
		"agent": {"strict": {"toolCall": {"approval": {"byDefault": "deny", "allow": {"eca__read_file": {}}}}},
			"own": {"toolCall": {"approval": {"deny": {}}}}}}`
	for _, c := range []struct {
		agent, tool, args, path string
		want                    tools.Decision
		rule                    string
	}{
		{"code", "eca__shell_command", `{"command":"rm -r x"}`, "/ws/", tools.Deny, "toolCall.approval.deny.eca__shell_command"},
		{"code", "eca__shell_command", `{"command":"push --force"}`, "/ws/", tools.Deny, "toolCall.approval.deny.eca__shell_command"},
		{"code", "eca__shell_command", `{"command":"git --force"}`, "/ws/", tools.Allow, "toolCall.approval.byDefault"},
		{"code", "eca__shell_command", `{"command":"ls; rm x"}`, "/ws/", tools.Deny, "toolCall.approval.deny.eca__shell_command"}, // each part counts
		{"code", "eca__shell_command", `{"command":"curl x"}`, "/ws/", tools.Ask, "toolCall.approval.ask.shell_command"},
		{"code", "eca__shell_command", `{"command":"x","timeout":0}`, "/ws/", tools.Ask, "toolCall.approval.ask.shell_command"},
		{"code", "evil__anything", `{}`, "/ws/", tools.Deny, "toolCall.approval.deny.evil"},
		{"code", "github__push", `{}`, "/ws/", tools.Ask, "toolCall.approval.ask.github__push"},
		{"code", "github__list", `{}`, "/ws/", tools.Allow, "toolCall.approval.allow.github"},
		{"code", "eca__write_file", `{}`, "/etc/passwd", tools.Ask, "outside the workspace"},
		{"code", "eca__write_file", `{}`, "/ws/x", tools.Allow, "toolCall.approval.allow.eca__write_file"},
		{"strict", "eca__read_file", `{}`, "/ws/x", tools.Allow, "agent.strict.toolCall.approval.allow.eca__read_file"},
		{"strict", "github__list", `{}`, "/ws/x", tools.Deny, "agent.strict.toolCall.approval.byDefault"},
		{"strict", "eca__shell_command", `{"command":"rm -r x"}`, "/ws/", tools.Deny, "toolCall.approval.deny.eca__shell_command"}, // it has no list of its own
		{"strict", "github__push", `{}`, "/ws/", tools.Ask, "toolCall.approval.ask.github__push"},
		{"strict", "eca__write_file", `{}`, "/ws/x", tools.Deny, "agent.strict.toolCall.approval.byDefault"}, // the general list of allow is replaced
		{"own", "evil__anything", `{}`, "/ws/", tools.Allow, "toolCall.approval.byDefault"},
		{"own", "github__push", `{}`, "/ws/", tools.Ask, "toolCall.approval.ask.github__push"},
	} {
		p := policy(t, rules)
		v := p.Judge(tools.Call{Agent: c.agent, Arguments: json.RawMessage(c.args)}, spec(c.tool), planOf(c.args, c.path+"a"))
		if v.Decision != c.want || v.Rule != c.rule || v.Reason == "" {
			t.Errorf("%s %s %s: %+v", c.agent, c.tool, c.args, v)
		}
	}
}

func TestDefaults(t *testing.T) {
	p := policy(t, `{}`)
	for _, c := range []struct {
		tool       string
		readOnly   bool // of the tool, or of the call
		code, plan tools.Decision
	}{
		{"eca__read_file", true, tools.Allow, tools.Allow},
		{"eca__grep", true, tools.Allow, tools.Allow},
		{"eca__directory_tree", true, tools.Allow, tools.Allow},
		{"eca__write_file", false, tools.Ask, tools.Deny},
		{"eca__edit_file", false, tools.Ask, tools.Deny},
		{"eca__move_file", false, tools.Ask, tools.Deny},
		{"any__tool", false, tools.Ask, tools.Ask},
	} {
		for agent, want := range map[string]tools.Decision{"code": c.code, "plan": c.plan} {
			v := p.Judge(tools.Call{Agent: agent, Arguments: json.RawMessage(`{}`)}, spec(c.tool), tools.Plan{Paths: []string{"/ws/a"}, ReadOnly: c.readOnly})
			if v.Decision != want || v.AlwaysAsk != (agent == "plan" && c.tool == "any__tool") {
				t.Errorf("%s %s: %+v", agent, c.tool, v)
			}
		}
	}
	for _, tool := range []string{"eca__write_file", "eca__edit_file", "eca__move_file"} {
		if p.HiddenBy("plan", spec(tool)) == "" || p.HiddenBy("code", spec(tool)) != "" {
			t.Errorf("%s is offered to the wrong agent", tool)
		}
	}
}

func TestHidden(t *testing.T) {
	p := policy(t, `{"disabledTools": ["grep", "docs", "a__(x|y)", "("], "toolCall": {"approval": {"deny": {"eca__read_file": {}, "eca__edit_file": {"argsMatchers": {"path": ["x"]}}}}}}`)
	for tool, want := range map[string]bool{
		"eca__grep": true, "docs__search": true, "a__x": true, "a__z": false, "b__grep": false, "eca__read_file": true, "eca__edit_file": false,
	} {
		if (p.HiddenBy("code", spec(tool)) != "") != want {
			t.Errorf("%s: hidden is %v", tool, !want)
		}
	}
}

func TestRemember(t *testing.T) {
	p := policy(t, `{}`)
	call := tools.Call{Arguments: json.RawMessage(`{}`)}
	shell := func(command string) tools.Plan { return planOf(`{"command":"`+command+`"}`, "/ws/a") }
	decide := func(tool string, plan tools.Plan) tools.Decision { return p.Judge(call, spec(tool), plan).Decision }
	remember := func(tool string, plan tools.Plan) {
		t.Helper()
		if err := p.Remember(call, spec(tool), plan, tools.ForSession); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"git status; ls", "npm run build", "make", "git log -1", "go test ./... > x", "cargo build $x", "env X=1 pytest", "t() { npm test; }; t", "pnpm test; [[ -f x ]]", "make && yarn test; xargs deno", "n=1; gradle test", "for n in 1; do mvn test; done", "read n; swift test", "dotnet test $(x)"} {
		remember("eca__shell_command", shell(command))
	}
	if err := p.Remember(call, spec("eca__shell_command"), shell("git push"), tools.Once); err != nil {
		t.Fatal(err)
	}
	remember("eca__write_file", tools.Plan{Paths: []string{"/ws/x"}})
	remember("eca__read_file", tools.Plan{Paths: []string{"/other/x"}})
	for command, want := range map[string]tools.Decision{
		"ls": tools.Allow, "ls -l; git status": tools.Allow, "npm run build --fast": tools.Allow, "git log -3": tools.Allow,
		"yarn test": tools.Allow, "make && yarn test": tools.Ask, "deno": tools.Ask,
		"ls; git push": tools.Ask, "npm run other": tools.Ask, "npm test": tools.Ask, "make": tools.Ask, "git log --output=x": tools.Ask, "ls > x": tools.Ask, "ls $(rm x)": tools.Ask,
		"go test ./...": tools.Ask, "cargo build": tools.Ask, "pytest": tools.Ask, "t": tools.Ask, "pnpm test": tools.Allow, "gradle test": tools.Ask, "mvn test": tools.Ask, "swift test": tools.Ask, "dotnet test": tools.Ask, "n=1; pnpm test": tools.Ask, "X=1 ls": tools.Ask, "sudo ls": tools.Ask, "./ls": tools.Ask, "ls & rm x": tools.Ask,
		"git push": tools.Ask, "for i in a b; do pnpm test; done": tools.Ask, "ls & ls": tools.Ask, "ls <<E\\n$x\\nE": tools.Ask,
	} {
		if got := decide("eca__shell_command", shell(command)); got != want {
			t.Errorf("%s: %s", command, got)
		}
	}
	if got := decide("eca__shell_command", planOf(`{"command":"ls"}`, "/other")); got != tools.Ask {
		t.Errorf("a command in another folder: %s", got)
	}
	for path, want := range map[string]tools.Decision{"/ws/y": tools.Allow, "/other/y": tools.Ask} {
		if got := decide("eca__write_file", tools.Plan{Paths: []string{path}}); got != want {
			t.Errorf("writing %s: %s", path, got)
		}
	}
	for path, want := range map[string]tools.Decision{"/other/x": tools.Allow, "/other/y": tools.Ask} {
		if got := decide("eca__read_file", tools.Plan{Paths: []string{path}}); got != want {
			t.Errorf("reading %s: %s", path, got)
		}
	}
	if decide("eca__edit_file", tools.Plan{}) != tools.Ask {
		t.Error("remembering a path for eca__write_file allows every call of eca__edit_file")
	}
}

// A remembered command runs unasked on files of the workspace only. For files outside, eca asks
// again.
func TestRememberedStaysInside(t *testing.T) {
	outside := makeFiles(t, map[string]string{"x": ""})
	dir := makeFiles(t, map[string]string{"a": "", "sub/b": ""})
	needs.Symlink(t, outside, filepath.Join(dir, "link"))
	p := policyFor(t, `{"toolCall": {"unasked": "off"}}`, dir)
	call := tools.Call{Agent: "code", Roots: []string{dir}, Arguments: json.RawMessage(`{}`)}
	for _, command := range []string{"cat a", "pytest sub", "touch a", "cd sub"} {
		plan := planOf(`{"command":"`+command+`"}`, dir)
		if err := p.Remember(call, spec("eca__shell_command"), plan, tools.ForSession); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]tools.Decision{
		"cat a": tools.Allow, "cat sub/b": tools.Allow, "touch sub/new": tools.Allow, "pytest -q sub/b": tools.Allow, "cd sub && cat b": tools.Allow,
		"cat /etc/passwd": tools.Ask, "cat ../x": tools.Ask, "cat link/x": tools.Ask, "touch " + outside + "/y": tools.Ask, "touch link/y": tools.Ask, "pytest /tmp": tools.Ask, "pytest --cov=../x": tools.Ask, "touch ~/x": tools.Ask, "cd sub && touch ../a": tools.Ask, "cd sub && touch ../../x": tools.Ask, "cd / && touch x": tools.Ask,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// Entries that earlier versions stored for programs that run code have no effect, and the list marks
// them.
func TestOldMemoryOfInterpretersIsVoid(t *testing.T) {
	dir, file := makeFiles(t, map[string]string{"x.py": ""}), filepath.Join(t.TempDir(), "permissions.json")
	keys := map[string]bool{ // and whether it still counts
		"eca__shell_command python3.11": false, "eca__shell_command nodejs": false, "eca__shell_command docker exec": false, "eca__shell_command git bisect": false, "eca__git git submodule": false, "eca__shell_command psql": false,
		"eca__shell_command npm test": true, "eca__shell_command ls": true, "eca__git git push": true, "eca__write_file": true, "eca__shell_command in /other": true, "eca__web_fetch docs.rs": true,
	}
	raw, err := json.Marshal(map[string]any{"version": 1, "global": slices.Sorted(maps.Keys(keys)), "workspaces": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	memory := NewMemory(file)
	kept, err := memory.Kept()
	if err != nil || len(kept) != len(keys) {
		t.Fatal(kept, err)
	}
	for _, k := range kept {
		if k.Void == keys[k.Key] {
			t.Errorf("%s: void is %v", k.Key, k.Void)
		}
	}
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{}`), Getenv: func(string) string { return "" }})
	p, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: memory})
	for command, want := range map[string]tools.Decision{
		"npm test": tools.Allow, "python3.11 x.py": tools.Ask, "nodejs x.js": tools.Ask, "docker exec c sh": tools.Ask, "git bisect run x": tools.Ask, "psql -c x": tools.Ask,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// A pattern that backtracks for very long makes the call ask within a minute.
func TestEvilPattern(t *testing.T) {
	p := policy(t, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["(a+)+b"]}}}}}}`)
	start := time.Now()
	v := p.Judge(tools.Call{Arguments: json.RawMessage(`{"command":"` + strings.Repeat("a", 200) + `"}`)}, spec("eca__shell_command"), tools.Plan{})
	if v.Decision != tools.Ask || time.Since(start) > time.Minute {
		t.Errorf("%+v after %s", v, time.Since(start))
	}
}

func TestBadRulesAreReported(t *testing.T) {
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"approval": {"byDefault": "maybe", "allow": {"eca__shell_command": {"argsMatchers": {"command": ["("]}}}}}}`), Getenv: func(string) string { return "" }})
	p, errs := New(cfg.Config, Options{Contains: func(string) bool { return true }, Memory: NewMemory("")})
	if len(errs) != 2 {
		t.Errorf("%v", errs)
	}
	if v := p.Judge(tools.Call{Arguments: json.RawMessage(`{"command":"x"}`)}, spec("eca__shell_command"), tools.Plan{}); v.Decision != tools.Ask {
		t.Errorf("a rule with a broken pattern allows: %+v", v)
	}
	cfg = config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"approval": {"byDefault": "allow", "deny": {"eca__shell_command": {"argsMatchers": {"command": ["(", "x"]}}, "eca__grep": {"argsMatchers": {"pattern": ["(a+)+b"]}}}}}}`), Getenv: func(string) string { return "" }})
	p, _ = New(cfg.Config, Options{Contains: func(string) bool { return true }, Memory: NewMemory("")})
	for tool, args := range map[string]string{"eca__shell_command": `{"command":"y"}`, "eca__grep": `{"pattern":"` + strings.Repeat("a", 200) + `"}`} {
		if v := p.Judge(tools.Call{Arguments: json.RawMessage(args)}, spec(tool), tools.Plan{}); v.Decision != tools.Deny {
			t.Errorf("a deny rule that cannot be judged allows: %+v", v)
		}
	}
}
