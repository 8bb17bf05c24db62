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

// eca asks each time before a call writes a file that makes programs run later or changes what eca
// may do.
func TestProtectedPlaces(t *testing.T) {
	dir := makeFiles(t, map[string]string{
		".git/config": "", "a.txt": "", "own/state/x": "",
		"bare/HEAD": "", "bare/objects/x": "", "bare/refs/x": "", "almost/objects/x": "", "almost/refs/x": "", "half/HEAD": "", "half/refs/x": "",
	})
	for link, to := range map[string]string{"folder": ".git", "file": ".git/config"} {
		needs.Symlink(t, filepath.Join(dir, to), filepath.Join(dir, link))
	}
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"approval": {"byDefault": "allow", "allow": {"eca": {}}}}}`), Getenv: func(string) string { return "" }})
	p, _ := New(cfg.Config, Options{Contains: workspace.New(dir).ContainsResolved, Memory: NewMemory(""), Protected: []string{filepath.Join(dir, "own")}})
	call := tools.Call{Agent: "code", Roots: []string{dir}, Arguments: json.RawMessage(`{}`)}
	if err := p.Remember(call, spec("eca__write_file"), tools.Plan{Paths: []string{filepath.Join(dir, "a.txt")}}, tools.ForSession); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"a.txt": false, "src/git/x": false, ".gitignore": false, ".github/x": false, "bashrc": false, "x.git/y": false, "ecabin": false, "owner": false,
		".git/hooks/pre-commit": true, ".git/config": true, "sub/.git/config": true, ".git": true, ".eca/config.json": true, ".eca/new/x": true, ".husky/pre-commit": true, ".vscode/tasks.json": true,
		".mcp.json": true, ".envrc": true, "AGENTS.md": true, "sub/CLAUDE.md": true, ".bashrc": true, ".profile": true, ".ssh/authorized_keys": true, ".config/fish/config.fish": true,
		".GIT/config": true, ".Git/Config": true, ".ECA/Config.json": true, "agents.MD": true, ".git./config": true, ".git /config": true, "GIT~1/config": true, ".git::$INDEX_ALLOCATION/config": true, ".g\u200cit/config": true,
		".jj/x": true, ".zed/tasks.json": true, ".devcontainer/devcontainer.json": true, ".cursor/mcp.json": true, ".claude/settings.json": true, ".gemini/x": true, ".codex/config.toml": true,
		"GEMINI.md": true, ".mvn/maven.config": true, ".gradle/init.d/x.gradle": true, ".gradle/x": false, ".local/bin/ls": true, ".local/x": false, ".config/nvim/init.lua": true, ".config/x": false,
		".dir-locals.el": true, ".nvim.lua": true, ".exrc": true, "x.code-workspace": true, "sub/My.Code-Workspace": true, "code-workspace": false, ".cargo/config.toml": true, ".cargo/config": true, "cargo/config.toml": false,
		".yarnrc": true, ".yarnrc.yml": true, ".pnpmfile.cjs": true, "mise.toml": true, "mise.local.toml": true, ".pre-commit-config.yaml": true, "lefthook.yml": true, "lefthook-local.yml": true,
		".bazelrc": true, ".hgrc": true, ".gdbinit": true, ".Rprofile": true, ".tmux.conf": true, ".pam_environment": true,
		"bare/config": true, "bare/hooks/post-checkout": true, "bare/info/attributes": true, "bare/readme.txt": false, "almost/HEAD": true, "almost/head": true, "half/objects/x": true, "half/config": false, "config": false, "src/HEAD": false,
		"folder/hooks/x": true, "file": true, "sub/../.git/x": true, "own/state/x": true, "own/new": true, "OWN/x": true,
	} {
		plan := tools.Plan{Paths: []string{dir + "/" + path}}
		v := p.Judge(call, spec("eca__write_file"), plan)
		if asks := v.Decision == tools.Ask && v.AlwaysAsk && v.Rule == "protected"; asks != want {
			t.Errorf("writing %q: %+v", path, v)
		}
		s := spec("eca__read_file")
		s.ReadOnly = true
		if v := p.Judge(call, s, plan); v.Decision != tools.Allow {
			t.Errorf("reading %q: %+v", path, v)
		}
	}
	for command, want := range map[string]bool{
		"echo x > a.txt": false, "cat .git/config": false, "git commit -m .git": false, "npm test": false, "ls .eca": false, "git log > log.txt": false,
		"echo x > .git/hooks/pre-commit": true, "echo x >> ~/.bashrc": true, "echo x >> $HOME/.zshrc": true, "cp a.txt .git/hooks/x": true, "tee .eca/config.json": true, "mv a.txt folder/x": true,
		"cd .git && touch x": true, "cd .git/hooks; echo x > y": true, "sed -i s/a/b/ .git/config": true, "dd of=.git/config": true, "cp --target-directory=.git/hooks a.txt": true, "git config core.pager x": true,
		"sh -c 'echo x > .git/config'": true, "echo 'cp a .git/hooks/x' | sh": true, "env -S 'cp a .envrc'": true, "ln -s x .bashrc": true, "sudo cp a.txt /root/.profile": true, "echo x > .GIT/config": true, "cp a own/x": true, "python -c 1 > AGENTS.md": true,
		"cp a.txt almost/HEAD": true, "mkdir half/objects": true, "curl -X HEAD https://x.example": false, "cp a.txt x.code-workspace": true,
		"git submodule add ./x y": true, "git -C a submodule -q update --init --recursive": true, "git submodule deinit y": true, "git submodule update": false, "git add submodule": false,
		"d=.git/hooks; cp a.txt $d/x": true, `for f in .envrc; do touch "$f"; done`: true, "f=env; echo x > .${f}rc": true, "cp a.txt .{envrc,x}": true, "cp a.txt .g[i]t/config": true, "x=config; git $x core.pager y": true,
		"cp -t.vscode a.txt": true, "f=b.txt; cp a.txt $f": false, "f=.envrc; cat $f": false,
		"cd - && cp a.txt ~/.bashrc": true, "cd -; cp a.txt .git/hooks/x": true, "cd a; cd b; cd c; cd d; cd e; tee ~/.profile": true, "cd - && cp a.txt b.txt": false,
	} {
		v := judge(t, p, "code", dir, command)
		if asks := v.Decision == tools.Ask && v.AlwaysAsk && v.Rule == "protected"; asks != want {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// An option with a wildcard (`--colo?=auto`) does not count as the known option `--color=auto`,
// because bash can expand it to the name of a file.
func TestGlobInOption(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	p := policyFor(t, `{}`, dir)
	for command, want := range map[string]tools.Decision{
		"ls --colo?=auto": tools.Ask, "ls -l*=a": tools.Ask, "grep --inc*=a.txt x a.txt": tools.Ask, "grep --include=*.go x a.txt": tools.Allow, "cat --*=/etc/passwd": tools.Ask, "grep --fi*=../x a": tools.Ask,
	} {
		if v := judge(t, p, "plan", dir, command); v.Decision != want {
			t.Errorf("%s: %+v", command, v)
		}
	}
}

// A deny or ask rule applies if it matches the path as written or the resolved path. An allow rule
// has to match the resolved path.
func TestPathRules(t *testing.T) {
	outside := makeFiles(t, map[string]string{"secret": ""})
	dir := makeFiles(t, map[string]string{"docs/a.md": "", "secret/key": "", "src/x": ""})
	for link, to := range map[string]string{"docs/link": filepath.Join(dir, "secret"), "docs/out": outside, "dir-evil": outside} {
		needs.Symlink(t, to, filepath.Join(dir, filepath.FromSlash(link)))
	}
	// pattern returns a pattern for a path below dir, with slashes on every system.
	pattern := func(rel string) string { return strings.ReplaceAll(filepath.ToSlash(dir), `\`, `\\`) + rel }
	options, err := json.Marshal(map[string]any{"toolCall": map[string]any{"approval": map[string]any{
		"allow": map[string]any{"eca__write_file": map[string]any{"argsMatchers": map[string]any{"path": []string{pattern("/docs/.*")}}}},
		"deny":  map[string]any{"eca__write_file": map[string]any{"argsMatchers": map[string]any{"path": []string{".*/secret(/.*)?"}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	p := policyFor(t, string(options), dir)
	for path, want := range map[string]tools.Decision{
		dir + "/docs/a.md": tools.Allow, dir + "/docs/new/b.md": tools.Allow, dir + "/src/x": tools.Ask, "docs/a.md": tools.Allow,
		dir + "/docs/../src/x": tools.Ask, dir + "/docs/link/../../src/x": tools.Ask, dir + "/docs/out/x": tools.Ask, dir + "-evil/docs/x": tools.Ask,
		dir + "/secret/key": tools.Deny, dir + "/docs/link/key": tools.Deny, "secret/key": tools.Deny, dir + "/docs/../secret/key": tools.Deny, dir + "//secret/key": tools.Deny, dir + "/docs/out/secret": tools.Deny,
	} {
		args, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		plan := tools.Plan{Paths: []string{workspace.Abs([]string{dir}, path)}}
		if v := p.Judge(tools.Call{Agent: "code", Arguments: args, Roots: []string{dir}}, spec("eca__write_file"), plan); v.Decision != want {
			t.Errorf("%s: %+v", path, v)
		}
	}
}

// A question about a path that is a link, or goes through one, says where the path leads. A question
// about an address names the host and the whole address.
func TestQuestionsSayWhereLinksLead(t *testing.T) {
	elsewhere := makeFiles(t, map[string]string{"key": ""})
	dir := makeFiles(t, map[string]string{"docs/a.md": "", "src/x": ""})
	for link, to := range map[string]string{"docs/out": elsewhere, "docs/in": filepath.Join(dir, "src"), "docs/gone": filepath.Join(elsewhere, "missing")} {
		needs.Symlink(t, to, filepath.Join(dir, filepath.FromSlash(link)))
	}
	p := policyFor(t, `{}`, dir)
	for path, want := range map[string]string{
		"/docs/out/key": "/docs/out/key leads to " + filepath.Join(elsewhere, "key") + ", which is outside the workspace",
		"/docs/gone":    "/docs/gone leads to " + filepath.Join(elsewhere, "missing") + ", which is outside the workspace",
		"/docs/in/x":    "/docs/in/x leads to " + filepath.Join(dir, "src", "x"),
		"/docs/a.md":    "",
	} {
		plan := tools.Plan{Paths: []string{filepath.Join(dir, filepath.FromSlash(path))}}
		v := p.Judge(tools.Call{Agent: "code", Arguments: []byte(`{}`), Roots: []string{dir}}, spec("eca__write_file"), plan)
		if v.Decision != tools.Ask || !strings.Contains(filepath.ToSlash(v.Reason), filepath.ToSlash(want)) || strings.Count(v.Reason, "leads to") != min(len(want), 1) {
			t.Errorf("%s: %+v", path, v)
		}
	}
	for _, command := range []string{"cat docs/out/key", "tee docs/out/key", "cd docs && cp x out/key", "echo x > docs/out/key", "dd of=docs/out/key"} {
		if v := judge(t, p, "code", dir, command); v.Decision != tools.Ask || !strings.Contains(v.Reason, "out/key leads to "+filepath.Join(elsewhere, "key")) {
			t.Errorf("%s: %+v", command, v)
		}
	}
	v := p.Judge(tools.Call{Agent: "code", Arguments: []byte(`{}`)}, spec("eca__web_fetch"), tools.Plan{Address: "https://evil.example/a?b=c"})
	if v.Decision != tools.Ask || !strings.HasSuffix(v.Reason, "; the host is evil.example, the address https://evil.example/a?b=c") {
		t.Errorf("an address: %+v", v)
	}
}

// An approval that is remembered for a workspace or everywhere also applies in other and later
// processes, until it is forgotten.
func TestRememberedApprovals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "permissions.json")
	a, b := t.TempDir(), t.TempDir()
	allPathsInside := &Policy{contains: func(string) bool { return true }}
	allows := func(m *Memory, root, command string) tools.Scope {
		return m.scopeOfCall(allPathsInside.judgment(nil), tools.Call{Roots: []string{root}}, spec("eca__shell_command"), planOf(`{"command":"`+command+`"}`, root))
	}
	remember := func(m *Memory, root, command string, scope tools.Scope) {
		t.Helper()
		if err := m.remember(allPathsInside.judgment(nil), tools.Call{Roots: []string{root}}, spec("eca__shell_command"), planOf(`{"command":"`+command+`"}`, root), scope); err != nil {
			t.Fatal(err)
		}
	}
	one, other := NewMemory(file), NewMemory(file)
	remember(one, a, "npm test", tools.ForWorkspace)
	remember(other, a, "go test", tools.Everywhere)
	remember(one, a, "cargo test", tools.ForSession)
	remember(one, a, "make", tools.Everywhere) // cannot be remembered
	again := NewMemory(file)
	for _, c := range []struct {
		root, command string
		want          tools.Scope
	}{
		{a, "npm test", tools.ForWorkspace},
		{b, "npm test", tools.Once},
		{a, "go test", tools.Everywhere},
		{b, "go test ./x", tools.Everywhere},
		{a, "cargo test", tools.Once},
		{a, "npm run x", tools.Once},
		{a, "make", tools.Once},
		{a, "npm test && go test", tools.Everywhere},
	} {
		if got := allows(again, c.root, c.command); got != c.want {
			t.Errorf("%s: %q", c.command, got)
		}
	}
	if got := allows(one, a, "cargo test"); got != tools.ForSession {
		t.Errorf("in the session: %q", got)
	}
	kept, err := again.Kept()
	if err != nil || len(kept) != 2 || kept[0].Key != "eca__shell_command go test" || kept[1].Workspace == "" {
		t.Errorf("%+v %v", kept, err)
	}
	if existed, err := again.Forget("eca__shell_command go test"); !existed || err != nil {
		t.Errorf("%v %v", existed, err)
	}
	if existed, err := again.Forget("eca__shell_command go test"); existed || err != nil {
		t.Errorf("%v %v", existed, err)
	}
	if allows(NewMemory(file), b, "go test") != tools.Once {
		t.Error("the choice still counts after Forget")
	}
	// ForgetServer removes what is remembered about the tools of an MCP server.
	if err := again.file.add("", []string{"calc__add", "calculator__add"}); err != nil {
		t.Fatal(err)
	}
	if existed, err := again.ForgetServer("calc"); !existed || err != nil {
		t.Errorf("%v %v", existed, err)
	}
	if kept, err := again.Kept(); err != nil || len(kept) != 2 || kept[0].Key != "calculator__add" {
		t.Errorf("%+v %v", kept, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 && filepath.Separator == '/' {
		t.Errorf("%v %v", info.Mode(), err)
	}
	// A file that cannot be used allows nothing, and is not overwritten.
	const newer = `{"version": 9, "global": ["eca__shell_command go test"]}`
	if err := os.WriteFile(file, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := NewMemory(file)
	if allows(broken, a, "go test") != tools.Once || broken.remember(allPathsInside.judgment(nil), tools.Call{}, spec("a__b"), tools.Plan{}, tools.Everywhere) == nil {
		t.Error("a file of another version allows a call, or can be changed")
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != newer {
		t.Errorf("the file of another version was overwritten: %q, %v", data, err)
	}
}
