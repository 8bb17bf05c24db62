package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// asReference decides as eca-features.md 16 says: the whole text of each argument, deny before
// what is outside, ask, allow and the default.
func asReference(t *testing.T, a *config.Approval, spec tools.Spec, args map[string]string, outside bool) tools.Decision {
	t.Helper()
	matches := func(set map[string]config.ApprovalRule) bool {
		for selector, rule := range set {
			if selector != spec.FullName() && selector != spec.Name && selector != spec.Server {
				continue
			}
			if rule.ArgsMatchers == nil {
				return true
			}
			for arg, patterns := range rule.ArgsMatchers {
				for _, pattern := range patterns {
					re, err := regexp2.Compile(`\A(?:`+pattern+`)\z`, regexp2.RE2)
					if err != nil {
						t.Fatal(err)
					}
					if ok, _ := re.MatchString(args[arg]); ok && args[arg] != "" {
						return true
					}
				}
			}
		}
		return false
	}
	switch {
	case matches(a.Deny):
		return tools.Deny
	case outside, matches(a.Ask):
		return tools.Ask
	case matches(a.Allow):
		return tools.Allow
	case a.ByDefault == "":
		return tools.Ask
	}
	return tools.Decision(a.ByDefault)
}

// Usual configurations decide as in the reference server, except for the differences that
// docs/permissions.md lists. Each call has its row of that list.
func TestUserConfigs(t *testing.T) {
	const (
		same     = ""
		hidden   = "an `allow` pattern is compared with the whole text only"
		missed   = "a `deny` or `ask` pattern is compared with the whole text only"
		links    = "path patterns are compared with the path as the model wrote it"
		reserved = "`allow` rules, remembered approvals and auto-approve cover"
		computed = "an `allow` pattern also allows commands that the text does not show"
		shape    = "an `allow` pattern for a program also allows options that make the program write or run something"
		quotes   = "quotes and folders evade a `deny` pattern"
	)
	root := makeFiles(t, map[string]string{"src/a.go": "", "secrets/key": "", "docs/a.md": "", "a.txt": ""})
	needs.Symlink(t, filepath.Join(root, "secrets"), filepath.Join(root, "docs", "link"))
	type call struct{ tool, value, row string }
	for _, c := range []struct {
		name, approval string
		calls          []call
	}{
		{"tools by name", `{"allow": {"eca__read_file": {}, "grep": {}, "github": {}}, "ask": {"eca__write_file": {}}, "deny": {"evil": {}}}`, []call{
			{"eca__read_file", "src/a.go", same},
			{"eca__grep", "src", same},
			{"github__search", "", same},
			{"evil__x", "", same},
			{"eca__write_file", "src/a.go", same},
			{"other__x", "", same},
		}},
		{"everything allowed but some", `{"byDefault": "allow", "deny": {"eca__shell_command": {"argsMatchers": {"command": ["rm .*", ".*--force.*"]}}}, "ask": {"eca__shell_command": {"argsMatchers": {"command": ["git push.*"]}}}}`, []call{
			{"eca__shell_command", "npm install", same},
			{"eca__shell_command", "make && ./run > out", same},
			{"eca__shell_command", "rm x", same},
			{"eca__shell_command", "git push", same},
			{"eca__shell_command", "git push --force", same},
			{"eca__write_file", "src/a.go", same},
			{"eca__shell_command", "ls; rm x", missed},
			{"eca__shell_command", "sudo rm x", missed},
			{"eca__shell_command", "git add . && git push", missed},
			{"eca__shell_command", "'rm' x", quotes},
			{"eca__shell_command", "/bin/rm x", quotes},
			{"eca__write_file", ".git/hooks/pre-commit", reserved},
			{"eca__shell_command", "echo x >> ~/.bashrc", reserved},
		}},
		{"programs of a project", `{"allow": {"eca__shell_command": {"argsMatchers": {"command": ["npm (test|run build).*", "go test.*", "git (status|diff|log|show).*", "find .*", "timeout \\d+ go test.*", "cd [\\w/]+ && go test.*", "echo .* > out\\.txt"]}}}}`, []call{
			{"eca__shell_command", "npm test", same},
			{"eca__shell_command", "npm run build -- --prod", same},
			{"eca__shell_command", "go test ./... -run 'TestA|TestB'", same},
			{"eca__shell_command", "go test ./... 2>&1 | head -50", same},
			{"eca__shell_command", "git log --oneline | head -3", same},
			{"eca__shell_command", "git diff HEAD~1 -- src", same},
			{"eca__shell_command", "find . -name '*.go' | head", same},
			{"eca__shell_command", "timeout 60 go test ./x", same},
			{"eca__shell_command", "cd src && go test ./...", same},
			{"eca__shell_command", "echo done > out.txt", same},
			{"eca__shell_command", "npm install", same},
			{"eca__shell_command", "npm test && npm publish", hidden},
			{"eca__shell_command", "git log; rm -rf ~", hidden},
			{"eca__shell_command", "git status | sh", hidden},
			{"eca__shell_command", "git log $(rm x)", hidden},
			{"eca__shell_command", "git show HEAD:x | sh", hidden},
			{"eca__shell_command", "git log --output=.git/hooks/x", shape},
			{"eca__shell_command", "find . -exec sh -c id {} ;", shape},
			{"eca__shell_command", "find . -delete", shape},
			{"eca__shell_command", "go test -exec ./x ./...", shape},
			{"eca__shell_command", "npm test > package.json", shape},
			{"eca__shell_command", "npm test; $x", computed},
			{"eca__shell_command", "npm test; eval \"$x\"", computed},
			{"eca__shell_command", "go test 'unclosed", computed},
		}},
		{"all but something, with a lookahead", `{"allow": {"eca__shell_command": {"argsMatchers": {"command": ["git (?!push).*", "(?!.*rm).*"]}}}}`, []call{
			{"eca__shell_command", "git status", same},
			{"eca__shell_command", "make", same},
			{"eca__shell_command", "git push", same},
			{"eca__shell_command", "rm x", same},
			{"eca__shell_command", "make; $x", computed},
		}},
		{"nothing but something, denied with a lookahead", `{"byDefault": "allow", "deny": {"eca__shell_command": {"argsMatchers": {"command": ["(?!git ).*"]}}}}`, []call{
			{"eca__shell_command", "git status", same},
			{"eca__shell_command", "make", same},
			{"eca__shell_command", "git log | head", missed},
		}},
		{"everything for commands", `{"allow": {"eca__shell_command": {"argsMatchers": {"command": [".*"]}}}}`, []call{
			{"eca__shell_command", "rm -rf x; $y", same},
			{"eca__shell_command", "echo x > .git/config", reserved},
		}},
		{"folders", `{"allow": {"eca__write_file": {"argsMatchers": {"path": ["{WS}/docs/.*"]}}}, "deny": {"eca__write_file": {"argsMatchers": {"path": [".*/secrets/.*"]}}}}`, []call{
			{"eca__write_file", "docs/a.md", same},
			{"eca__write_file", "docs/new/b.md", same},
			{"eca__write_file", "src/a.go", same},
			{"eca__write_file", "secrets/key", same},
			{"eca__write_file", "../x", same},
			{"eca__write_file", "docs/link/key", links},
			{"eca__write_file", "docs/../src/a.go", links},
		}},
	} {
		approval := strings.ReplaceAll(c.approval, "{WS}", strings.ReplaceAll(filepath.ToSlash(root), `\`, `\\`))
		cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"approval": ` + approval + `}}`), Getenv: func(string) string { return "" }})
		if len(cfg.Problems) > 0 {
			t.Fatal(c.name, cfg.Problems)
		}
		p, errs := New(cfg.Config, Options{Contains: workspace.New(root).ContainsResolved, Memory: NewMemory("")})
		if len(errs) > 0 {
			t.Fatal(c.name, errs)
		}
		for _, k := range c.calls {
			args, plan := map[string]string{}, tools.Plan{}
			switch s := spec(k.tool); {
			case s.Name == "shell_command":
				args["command"], plan.Paths = k.value, []string{root}
				plan.Command = &tools.Command{Text: k.value, Dir: root, Program: cmdline.Parse(k.value)}
			case k.value != "":
				args["path"] = root + "/" + k.value
				plan.Paths = []string{workspace.Abs(nil, args["path"])}
			}
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			outside := len(plan.Paths) > 0 && !workspace.New(root).Contains(plan.Paths[0])
			was := asReference(t, cfg.ToolCall.Approval, spec(k.tool), args, outside)
			is := p.Judge(tools.Call{Agent: "code", Roots: []string{root}, Arguments: raw}, spec(k.tool), plan)
			if (was == is.Decision) != (k.row == same) {
				t.Errorf("%s: %s %q was %s and is %s (%s: %s); the documentation has %q", c.name, k.tool, k.value, was, is.Decision, is.Rule, is.Reason, k.row)
			}
			if rank := []tools.Decision{tools.Allow, tools.Ask, tools.Deny}; slices.Index(rank, is.Decision) < slices.Index(rank, was) {
				t.Errorf("%s: %s %q became looser: %s, was %s", c.name, k.tool, k.value, is.Decision, was)
			}
		}
	}
	doc, err := os.ReadFile(filepath.FromSlash("../../docs/permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{hidden, missed, links, reserved, computed, shape, quotes} {
		if !strings.Contains(string(doc), "\n| "+row) {
			t.Errorf("docs/permissions.md has no row %q", row)
		}
	}
}
