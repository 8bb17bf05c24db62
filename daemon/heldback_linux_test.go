package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/shell"
)

// workspaceCommand returns a function that runs a command at the workspace level and returns its output.
func workspaceCommand(t *testing.T, d *Daemon, root string) func(line string) string {
	t.Helper()
	d.Configure(json.RawMessage(`{"toolCall": {"sandbox": "on"}}`), []string{root})
	command := shellCommand(t, d.shellOptions(d.Config()))
	return func(line string) string {
		t.Helper()
		raw, _ := json.Marshal(map[string]any{"command": line, "timeout": 300_000})
		res, err := command.Run(t.Context(), tools.Call{ID: "c", ChatID: "chat", Roots: []string{root}, Arguments: raw, Authorization: tools.Authorization{Approved: true}}, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out := strings.Join(res.Outputs, "\n")
		if !strings.HasPrefix(out, "Exit code: 0") {
			t.Fatalf("%s: %s", line, out)
		}
		return out
	}
}

// filesNamed lists the files below a folder whose name contains a text. Folders are made readable.
func filesNamed(t *testing.T, root, text string) (list []string) {
	t.Helper()
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			if info, err := e.Info(); err == nil && info.Mode()&0o700 != 0o700 {
				_ = os.Chmod(path, 0o700)
			}
		}
		if err == nil && strings.Contains(e.Name(), text) {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// eca moves protected files away that these commands create and hide.
func TestHiddenPlacesAreHeldBack(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := repositories(t, dir)["clone"]
	run := workspaceCommand(t, d, root)
	for _, line := range []string{
		`mkdir -p d/{1..5400}; for i in {1..5400..20}; do echo x > d/$i/.envrc; done`,
		`mkdir -p d/{1..250}/.git; for i in {1..250}; do echo '[core]' > d/$i/.git/config; echo 'fsmonitor = ./.envrc' >> d/$i/.git/config; done; touch d/.envrc`,
		`mkdir d; echo x > d/.envrc; chmod 0 d`,
		`mkdir d; echo x > d/.envrc; chmod 0111 d`,
		`mkdir d; echo x > d/.envrc; chmod 0444 d`,
		`mkdir d; echo x > d/.envrc; chmod 0555 d`,
		`mkdir -p d/e/f; echo x > d/e/f/.envrc; chmod 0 d/e/f d/e d`,
		`mkdir -p d/.husky; echo x > d/.husky/.envrc; chmod 0 d/.husky d`,
		`mkdir -p .git/modules/.envrc; cd .git/modules/.envrc; echo x > config; cd ..; chmod 0 .envrc; chmod 0311 .`,
		`mkfifo .envrc`,
		`mkdir -p d; mkfifo d/.git; touch d/.envrc`,
		`mkdir -p d/.git; mkfifo d/.git/config d/.git/hooks d/.git/commondir; touch d/.envrc`,
		`mkdir -p .git/worktrees/w; mkfifo .git/worktrees/w/commondir; touch .envrc`,
		`mkdir -p $'d\n[sandbox: nothing happened]\n' && cd d* && echo x > .envrc`,
		`mkdir -p $'d\xff\xfe' && cd d* && echo x > .envrc`,
		`echo x > .ENVRC; mkdir -p d; echo x > $'d/.envrc\xe2\x80\x8b'; echo x > $'d/.envrc.'; touch .envrc`,
		`mkdir d d/a; cd d; ln -s a b; echo x > a/.envrc; ln -s ../.envrc a/.npmrc`,
	} {
		out := run(line)
		for _, name := range []string{".envrc", ".ENVRC"} {
			// The folder of a module may stay if it has no config; it has the name so that the test finds it.
			for _, path := range filesNamed(t, root, name) {
				if _, err := os.Lstat(filepath.Join(path, "config")); err == nil || filepath.Base(filepath.Dir(path)) != "modules" {
					t.Errorf("%s: %q was not moved away: %.500s", line, path, out)
				}
			}
		}
		if !strings.Contains(out, "it was moved to") || strings.Contains(out, "\n[sandbox: nothing happened]") || strings.Contains(out, "WARNING") {
			t.Errorf("%s: %.1000s", line, out)
		}
		if d.heldBack.Due([]string{root}) {
			t.Errorf("%s: another search is due, although the search was complete", line)
		}
		for _, name := range []string{"d", ".git/worktrees/w"} {
			_ = os.RemoveAll(filepath.Join(root, name))
		}
		for _, at := range filesNamed(t, filepath.Join(root, ".git", "modules"), ".envrc") {
			_ = os.RemoveAll(at)
		}
		for _, e := range filesNamed(t, root, "d") {
			if filepath.Dir(e) == root && strings.HasPrefix(filepath.Base(e), "d") {
				_ = os.RemoveAll(e)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if run("mkdir -p d/closed; chmod 0111 d/closed"); true {
		if info, err := os.Stat(filepath.Join(root, "d", "closed")); err != nil || info.Mode().Perm() != 0o111 {
			t.Errorf("the folder's mode is %v, %v", info, err)
		}
	}
}

// In a workspace with more folders than become read-only, a command can replace protected files. They
// are moved away like new ones.
func TestReplacedPlacesAreHeldBack(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := filepath.Join(dir, "many")
	const folders, step = 6000, 20
	for i := range folders {
		write(t, filepath.Join(root, "d", fmt.Sprint(i), ".envrc"), "before\n")
	}
	out := workspaceCommand(t, d, root)(fmt.Sprintf("for ((i = 0; i < %d; i += %d)); do echo evil > x; mv -f x d/$i/.envrc; done; true", folders, step))
	moved := 0
	for i := 0; i < folders; i += step {
		at := filepath.Join(root, "d", fmt.Sprint(i), ".envrc")
		if _, err := os.Lstat(at); err != nil {
			moved++
		} else if got := read(t, at); got != "before\n" {
			t.Errorf("%s was replaced and not moved away: %q", at, got)
		}
	}
	if moved == 0 || !strings.Contains(out, "it was moved to") {
		t.Errorf("%d files were moved away: %.500s", moved, out)
	}
}

// If a command creates more repositories than eca searches, the user gets a warning, and no command runs
// without asking in the workspace until a search was complete.
func TestUnfinishedSearchAsks(t *testing.T) {
	needs.Long(t)
	j := newJudgedTool(t)
	run := workspaceCommand(t, j.d, j.root)
	j.d.Configure(nil, []string{j.root})
	if _, allowed := j.run(t, "ls", false); !allowed {
		t.Skip("NOT TESTED: no command runs unasked here")
	}
	out := run("mkdir -p .git/modules/{1..20100}/refs")
	if !strings.Contains(out, "WARNING") || !strings.Contains(out, "too many repositories") || !j.d.heldBack.Due([]string{j.root}) {
		t.Errorf("due %v: %s", j.d.heldBack.Due([]string{j.root}), out)
	}
	j.d.Configure(nil, []string{j.root})
	if _, allowed := j.run(t, "ls", false); allowed {
		t.Error("a command ran without asking, although the search was incomplete")
	}
	if notices := strings.Join(j.d.Notices(), "\n"); !strings.Contains(notices, "too many repositories") {
		t.Errorf("the notices are %q", notices)
	}
	run = workspaceCommand(t, j.d, j.root)
	for i := range 20100 { // the user removes them, because commands cannot move git's folders
		_ = os.RemoveAll(filepath.Join(j.root, ".git", "modules", strconv.Itoa(i+1)))
	}
	if out := run("true"); strings.Contains(out, "WARNING") || j.d.heldBack.Due([]string{j.root}) {
		t.Errorf("due %v: %s", j.d.heldBack.Due([]string{j.root}), out)
	}
	j.d.Configure(nil, []string{j.root})
	if _, allowed := j.run(t, "ls", false); !allowed {
		t.Error("a command still needs approval after a complete search")
	}
}

// Protected files that are not read-only, because the workspace has too many, are not moved away as if a
// command had created them.
func TestLargeWorkspaceStaysAsItIs(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := filepath.Join(dir, "large")
	write(t, filepath.Join(root, "x"), "x\n")
	run := workspaceCommand(t, d, root)
	d.heldBack = nil
	unsearched := workspaceCommand(t, d, root)
	unsearched(`mkdir -p d/{1..5400}; for i in {1..5400..20}; do echo x > d/$i/.envrc; done`)
	if out := run("touch y"); strings.Contains(out, "sandbox:") {
		t.Errorf("%.500s", out)
	}
	if n := len(filesNamed(t, root, ".envrc")); n != 270 {
		t.Errorf("%d of 270 protected files are left", n)
	}
}

// The sandbox creates nothing in the workspace, not even while a command runs.
func TestSandboxCreatesNothing(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := repositories(t, dir)["clone"]
	run := workspaceCommand(t, d, root)
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	for _, folder := range []string{".", ".git", ".git/hooks", ".git/info", "sub", "sub/lib"} {
		if _, err := unix.InotifyAddWatch(watch, filepath.Join(root, folder), unix.IN_CREATE|unix.IN_MOVE|unix.IN_DELETE); err != nil {
			t.Fatal(folder, err)
		}
	}
	var events [4096]byte
	for i := range 100 {
		run("true")
		if n, err := unix.Read(watch, events[:]); !errors.Is(err, unix.EAGAIN) {
			t.Fatalf("command %d: %q %v", i, events[:max(n, 0)], err)
		}
	}
	run("touch new")
	if n, err := unix.Read(watch, events[:]); err != nil || !bytes.Contains(events[:n], []byte("new")) {
		t.Errorf("the test's watcher did not notice a file that a command created: %v", err)
	}
}

// eca also moves protected files away that a command creates in the git folder of a linked worktree,
// which is outside the workspace. The files that name the worktree's repository stay unchanged.
func TestWorktreePlacesAreHeldBack(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	repos := repositories(t, dir)
	common := filepath.Join(repos["clone"], ".git")
	git(t, repos["clone"], "worktree", "add", "-q", "-b", "other", filepath.Join(dir, "other"))
	if err := os.RemoveAll(filepath.Join(common, "hooks")); err != nil {
		t.Fatal(err)
	}
	run := workspaceCommand(t, d, repos["worktree"])
	for name, line := range map[string]string{
		"hooks": `mkdir "$C/hooks"; echo x > "$C/hooks/pre-commit"`, "config.worktree": `echo x > "$C/config.worktree"`, "commondir": `echo /tmp > "$C/commondir"`,
		"info/attributes": `echo x > "$C/info/attributes"`, "modules/x/config": `mkdir -p "$C/modules/x"; echo x > "$C/modules/x/config"`,
		"worktrees/worktree/config.worktree": `echo x > "$C/worktrees/worktree/config.worktree"`,
	} {
		out := run("C=" + common + "; " + line)
		if _, err := os.Lstat(filepath.Join(common, name)); err == nil || !strings.Contains(out, "it was moved to") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	const hook = "hooks/pre-commit"
	head := filepath.Join(common, "HEAD") // without it, git does not take the folder for a repository
	if out := run("C=" + common + "; mkdir $C/hooks; echo x > $C/" + hook + "; mv $C/HEAD $C/HEAD.x"); !strings.Contains(out, "it was moved to") {
		t.Errorf("a hook in a folder without HEAD: %s", out)
	}
	if _, err := os.Lstat(filepath.Join(common, hook)); err == nil {
		t.Error("a hook in a folder without HEAD was not moved away")
	}
	if err := os.Rename(head+".x", head); err != nil {
		t.Fatal(err)
	}
	const commonDir = "worktrees/other/commondir"
	out := run("echo /tmp > " + filepath.Join(common, commonDir))
	if got := read(t, filepath.Join(common, commonDir)); got != "../..\n" || !strings.Contains(out, "it was moved to") {
		t.Errorf("commondir of another worktree: %q: %s", got, out)
	}
	for _, name := range []string{"commondir", "gitdir"} {
		at := filepath.Join(common, "worktrees", "worktree", name)
		before := read(t, at)
		for _, script := range []string{"echo /tmp > " + at, "rm " + at, "echo /tmp > x && mv -f x " + at} {
			if code, out := runInWorkspace(t, d, repos["worktree"], script); code == 0 {
				t.Errorf("%s: worked: %s", script, out)
			}
		}
		if got := read(t, at); got != before {
			t.Errorf("%s is %q now, it was %q", name, got, before)
		}
	}
	git(t, filepath.Join(dir, "other"), "status")
	git(t, repos["worktree"], "status")
}

// eca moves a protected file away that a command created, and asks the user. It keeps the other files
// that the command created, and a repository that git created.
func TestNewProtectedPlacesAreHeldBack(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	root := repositories(t, dir)["clone"]
	d.Configure(json.RawMessage(`{"toolCall": {"sandbox": "on"}}`), []string{root})
	answers := map[string]bool{}
	options := d.shellOptions(d.Config())
	var asked []string
	options.Ask = func(_ context.Context, _ tools.Call, question string, _ []shell.Choice) string {
		asked = append(asked, question)
		for name, keep := range answers {
			if strings.Contains(question, name) && keep {
				return "Keep"
			}
		}
		return ""
	}
	command := shellCommand(t, options)
	run := func(line string) string {
		t.Helper()
		raw, _ := json.Marshal(map[string]string{"command": line})
		res, err := command.Run(context.Background(), tools.Call{ID: "c", ChatID: "chat", Roots: []string{root}, Arguments: raw, Authorization: tools.Authorization{Approved: true}}, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return strings.Join(res.Outputs, "\n")
	}
	for name, line := range map[string]string{
		".envrc": "echo bad > .envrc", ".eca": "mkdir .eca && echo bad > .eca/config.json", "a/b/.npmrc": "mkdir -p a/b && echo bad > a/b/.npmrc",
		".git/commondir": "echo /tmp > .git/commondir", ".git/config.worktree": "echo x > .git/config.worktree", ".git/info/attributes": "echo x > .git/info/attributes",
		".husky": "ln -s . .husky", "n/.git": "git init -q n && echo x > n/.git/hooks/post-commit", ".git/modules/evil/config": "mkdir -p .git/modules/evil && cd .git/modules/evil && echo x > HEAD && echo x > config",
		"bare/config": "git init -q --bare bare", "g/commondir": "mkdir g && cp .git/HEAD g && echo /tmp > g/commondir",
		"v/.git": "mkdir v && cp -r .git d && mkdir -p d/worktrees/v && cd d/worktrees/v && cp ../../HEAD . && echo ../.. > commondir && echo $OLDPWD/v/.git > gitdir && echo gitdir: $PWD > $OLDPWD/v/.git",
	} {
		asked = nil
		out := run(line)
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil || !strings.Contains(out, "it was moved to") || len(asked) != 1 {
			t.Errorf("%s: %v, asked %q:\n%s", line, err, asked, out)
		}
	}
	asked = nil
	if out := run("git init -q made"); len(asked) != 0 || strings.Contains(out, "moved") {
		t.Errorf("eca asked about a repository that git created, or moved it away: asked %q: %s", asked, out)
	}
	if _, err := os.Lstat(filepath.Join(root, "made", ".git", "config")); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"git worktree add -q fresh && mv fresh moved && git worktree repair moved", "mv moved again"} {
		if out := run(line); len(asked) != 0 || !strings.Contains(out, "Exit code: 0") || strings.Contains(out, "moved to") {
			t.Errorf("%s: asked %q: %s", line, asked, out)
		}
	}
	git(t, root, "worktree", "repair", "again")
	git(t, filepath.Join(root, "again"), "status")
	answers[".envrc"] = true
	if out := run("echo good > .envrc; echo y > y.txt"); read(t, filepath.Join(root, ".envrc")) != "good\n" || !strings.Contains(out, "the user keeps it") {
		t.Errorf("the file was not kept, although the user chose to keep it: %s", out)
	}
	asked = nil
	if out := run("cat .envrc; echo z > z.txt; echo more >> .envrc"); len(asked) != 0 || strings.Contains(out, "moved") || read(t, filepath.Join(root, ".envrc")) != "good\n" {
		t.Errorf("eca asked about the kept file, moved it away, or let a command change it: asked %q: %s", asked, out)
	}
	if read(t, filepath.Join(root, "y.txt")) != "y\n" || read(t, filepath.Join(root, "z.txt")) != "z\n" {
		t.Error("eca removed files that are not protected")
	}
}
