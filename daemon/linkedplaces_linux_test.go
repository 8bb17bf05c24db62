package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/tools/shell"
)

// If a protected path is a link or contains links, commands cannot change the targets under their own
// paths either.
func TestLinkedPlacesStay(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := filepath.Join(dir, "ws")
	makeTree(t, root, map[string]string{
		".husky": "-> tools/husky", "tools/husky/pre-commit": "before\n", "tools/x": "x\n",
		".vscode": "-> one", "one": "-> deep/two", "deep/two": "-> ../far/settings", "far/settings/tasks.json": "before\n",
		"AGENTS.md": "-> doc/agents.txt", "doc/agents.txt": "before\n",
		".claude/commands": "-> ../prompts", "prompts/a.md": "before\n", ".cursor/rules/a.md": "-> ../../prompts/b/b.md", "prompts/b/b.md": "before\n",
		".idea": "-> .", "temp.txt": "x\n", "shared/.git/HEAD": "x\n",
	})
	outside := filepath.Join(os.TempDir(), "conf", "settings.json")
	write(t, outside, "before\n")
	makeTree(t, root, map[string]string{".zed/settings.json": "-> " + outside})
	checkUnchangeable(t, d, root, ".husky/pre-commit", "tools/husky/pre-commit", "far/settings/tasks.json", ".vscode/tasks.json", "AGENTS.md", "doc/agents.txt", "prompts/a.md", "prompts/b/b.md", outside)
	for _, script := range []string{"rm .husky", "ln -sfn tools .husky", "rm one", "ln -sfn x deep/two", "mv deep x", "mv tools x", "mv doc x"} {
		if code, out := runInWorkspace(t, d, root, script); code == 0 {
			t.Errorf("%s: worked: %s", script, out)
		}
	}
	if code, out := runInWorkspace(t, d, root, "echo y > tools/x && echo y > doc/other && echo y > temp.txt"); code != 0 {
		t.Errorf("other files: exit %d: %s", code, out)
	}
}

// The same for the parts of a repository that name programs.
func TestLinkedPartsOfRepositoryStay(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := filepath.Join(dir, "ws")
	for _, name := range []string{"plain", "elsewhere", "configured", "husky"} {
		git(t, dir, "init", "-q", filepath.Join(root, name))
	}
	makeTree(t, root, map[string]string{
		"parts/info/attributes": "before\n", "parts/config": read(t, filepath.Join(root, "plain/.git/config")), "parts/modules/sub/config": "before\n", "parts/modules/sub/HEAD": "x\n",
		"parts/one-module/config": "before\n", "parts/one-module/HEAD": "x\n", "parts/modules/linked": "-> ../one-module", "parts/store/alternates": "before\n",
		"scripts/hooks/pre-commit": "before\n", "scripts/post-merge": "before\n", "settings/git.inc": "[core]\n",
	})
	for _, part := range []string{"info", "hooks", "config"} {
		if err := os.RemoveAll(filepath.Join(root, "plain/.git", part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(root, "plain/.git/objects/info")); err != nil {
		t.Fatal(err)
	}
	makeTree(t, filepath.Join(root, "plain/.git"), map[string]string{
		"info": "-> ../../parts/info", "config": "-> ../../parts/config", "modules": "-> ../../parts/modules", "hooks": "-> ../../scripts/hooks", "objects/info": "-> ../../../parts/store",
	})
	makeTree(t, root, map[string]string{"configured/.git/hooks/post-merge": "-> ../../../scripts/post-merge", "configured/ci/hooks/pre-push": "before\n"})
	git(t, filepath.Join(root, "configured"), "config", "core.hooksPath", "ci/hooks")
	git(t, filepath.Join(root, "configured"), "config", "include.path", "../../settings/git.inc")
	makeTree(t, root, map[string]string{"husky/.husky/pre-commit": "before\n", "husky/.husky/_/h": "before\n"})
	git(t, filepath.Join(root, "husky"), "config", "core.hooksPath", ".husky/_")
	if err := os.Rename(filepath.Join(root, "elsewhere/.git"), filepath.Join(root, "data")); err != nil {
		t.Fatal(err)
	}
	makeTree(t, root, map[string]string{"elsewhere/.git": "-> ../data", "data/hooks/pre-commit": "before\n"})
	if code, out := runInWorkspace(t, d, root, "cd elsewhere && echo x > x && git add x && git commit -qm x && echo y > ../parts/y"); code != 0 {
		t.Errorf("a commit: exit %d: %s", code, out)
	}
	checkUnchangeable(t, d, root,
		"plain/.git/info/attributes", "parts/info/attributes", "parts/config", "parts/modules/sub/config", "parts/one-module/config", "parts/store/alternates", "scripts/hooks/pre-commit", "scripts/post-merge",
		"configured/ci/hooks/pre-push", "husky/.husky/pre-commit", "husky/.husky/_/h", "settings/git.inc", "data/config", "data/hooks/pre-commit", "elsewhere/.git/config")
	for _, script := range []string{"rm plain/.git/info", "ln -sfn x plain/.git/hooks", "mv parts x", "mv data x", "ln -sfn x elsewhere/.git", "mv configured/ci x"} {
		if code, out := runInWorkspace(t, d, root, script); code == 0 {
			t.Errorf("%s: worked: %s", script, out)
		}
	}
}

// If a protected link has no target, eca moves a file away that a command creates there.
func TestTargetsOfDanglingLinksAreHeldBack(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := filepath.Join(dir, "ws")
	makeTree(t, root, map[string]string{"AGENTS.md": "-> later/agents.txt", ".husky/pre-commit": "-> ../scripts/check", "scripts/x": "x\n"})
	d.Configure(json.RawMessage(`{"toolCall": {"sandbox": "on"}}`), []string{root})
	options := d.shellOptions(d.Config())
	options.Ask = func(context.Context, tools.Call, string, []shell.Choice) string { return "" }
	command := shellCommand(t, options)
	for _, name := range []string{"later/agents.txt", "scripts/check"} {
		raw, _ := json.Marshal(map[string]string{"command": "mkdir -p later && echo evil > " + name + " && echo y > later/other"})
		res, err := command.Run(context.Background(), tools.Call{ID: "c", ChatID: "chat", Roots: []string{root}, Arguments: raw, Authorization: tools.Authorization{Approved: true}}, nil)
		if _, lerr := os.Lstat(filepath.Join(root, name)); err != nil || lerr == nil || !strings.Contains(strings.Join(res.Outputs, "\n"), "it was moved to") {
			t.Errorf("%s: %v, %v: %s", name, err, lerr, res.Outputs)
		}
	}
	if read(t, filepath.Join(root, "later/other")) != "y\n" {
		t.Error("eca removed a file that is not the target of a protected link")
	}
}

// Files with a name outside the workspace, or a protected one, cannot be changed by their other
// names; files with all names in the workspace can.
func TestOtherNamesOfFiles(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := filepath.Join(dir, "ws")
	makeTree(t, dir, map[string]string{
		"home/notes": "before\n", "store/index.js": "before\n", "ws/.envrc": "before\n", "ws/.git/hooks/pre-commit": "before\n", "ws/.claude/settings.json": "before\n", "ws/a": "a\n",
		"ws/node_modules/.bin/x": "x\n", "ws/.venv/bin/python": "x\n", "ws/node_modules/plain/index.js": "x\n",
	})
	for from, to := range map[string]string{
		"home/notes": "ws/src/notes", "ws/.envrc": "ws/src/env", "ws/.git/hooks/pre-commit": "ws/scripts/check", "ws/.claude/settings.json": "ws/deep/er/than/the/search/goes.json",
		"store/index.js": "ws/node_modules/.pnpm/p@1/node_modules/p/index.js", "store/./index.js": "ws/.venv/lib/python3/site-packages/p/p.py", "ws/a": "ws/b",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	before := fmt.Sprint(read(t, filepath.Join(dir, "home/notes")), read(t, filepath.Join(dir, "store/index.js")))
	for _, name := range []string{
		"src/notes", "src/env", "scripts/check", "deep/er/than/the/search/goes.json",
		"node_modules/.pnpm/p@1/node_modules/p/index.js", ".venv/lib/python3/site-packages/p/p.py",
	} {
		for _, script := range []string{`echo evil > "$N"`, `echo evil >> "$N"`, `truncate -s 0 "$N"`, `chmod 777 "$N"`, `mv "$(dirname "$N")" x && echo evil > "x/$(basename "$N")"`} {
			if code, out := runInWorkspace(t, d, root, "N="+name+"; "+script); code == 0 {
				t.Errorf("%s: %s: worked: %s", name, script, out)
			}
			if _, err := os.Lstat(filepath.Join(root, "x")); err == nil {
				_ = os.Rename(filepath.Join(root, "x"), filepath.Join(root, filepath.Dir(name)))
			}
		}
	}
	after := fmt.Sprint(read(t, filepath.Join(dir, "home/notes")), read(t, filepath.Join(dir, "store/index.js")))
	if after != before || read(t, filepath.Join(root, ".envrc"))+read(t, filepath.Join(root, ".claude/settings.json")) != "before\nbefore\n" {
		t.Errorf("changed: %q", after)
	}
	if code, out := runInWorkspace(t, d, root, "echo y > a && grep -q y b && echo y > node_modules/.bin/x && mkdir node_modules/.cache && echo y > node_modules/plain/index.js && echo y > .venv/bin/python && cat node_modules/.pnpm/p@1/node_modules/p/index.js"); code != 0 {
		t.Errorf("other files: exit %d: %s", code, out)
	}
}

// If a workspace has too many such files, not all of them can be protected, and the rule
// sandbox.workspace does not allow a command.
func TestTooManyOtherNamesAsk(t *testing.T) {
	_, dir := newIsolated(t)
	for i := range 100 {
		at := filepath.Join(dir, "ws", fmt.Sprint(i))
		write(t, at, "x")
		if err := os.Link(at, filepath.Join(dir, fmt.Sprint("other", i))); err != nil {
			t.Fatal(err)
		}
	}
	guard := sandbox.Guard{Roots: []string{filepath.Join(dir, "ws")}, Names: permission.ProtectedNames()}
	if sandbox.FindPlaces(guard).Whole {
		t.Error("FindPlaces claims to protect all of a hundred files with names outside the workspace")
	}
}
