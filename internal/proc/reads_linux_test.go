package proc

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// reader makes a workspace with a repository outside the temporary folders, and the policy
// of a command that may only read it and start only what it names.
func reader(t *testing.T) (ws string, p sandbox.Policy) {
	t.Helper()
	needSandbox(t)
	dir := foldersOutside(t)
	ws = filepath.Join(dir, "ws")
	if err := os.RemoveAll(filepath.Join(ws, ".git")); err != nil {
		t.Fatal(err)
	}
	prepare := exec.Command("bash", "-ec", `
		export GIT_CONFIG_GLOBAL=/dev/null
		printf 'one\ntwo\nthree\n' >a.txt; printf 'two\nthree\nfour\n' >b.txt; mkdir -p src; echo 'package main // TODO' >src/main.go; echo '{"a":[1,2]}' >data.json
		printf '#!/bin/sh\necho script\n' >script; chmod +x script; tar cf all.tar a.txt b.txt; gzip -k a.txt
		git init -q -b main .; git add a.txt src; git -c user.name=n -c user.email=e@x commit -qm first; git tag v1; echo more >>a.txt; git -c user.name=n -c user.email=e@x stash -q; echo again >>a.txt`)
	prepare.Dir = ws
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home := filepath.Join(dir, "other")
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[include]\n\tpath = ~/more\n[core]\n\texcludesFile = ~/ignored\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"more": "[alias]\n\tl = log --oneline\n", "ignored": "*.gz\n"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ws, sandbox.Policy{Level: sandbox.ReadOnly, Read: sandbox.Reads([]string{ws}, os.Getenv), Execute: programs(t, "bash")}
}

// programs returns the paths of those programs that are installed, and of the interpreters of
// scripts.
func programs(t *testing.T, names ...string) []string {
	t.Helper()
	out := []string{}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			continue
		}
		if out = append(out, path); name == "git" {
			if dir, err := exec.Command("git", "--exec-path").Output(); err == nil {
				out = append(out, filepath.Join(strings.TrimSpace(string(dir)), "git"))
			}
		}
		data, err := os.ReadFile(path)
		line, _, _ := strings.Cut(string(data[:min(len(data), 100)]), "\n")
		if interpreter, ok := strings.CutPrefix(line, "#!"); ok && err == nil {
			out = append(out, programs(t, strings.Fields(interpreter)[0])...)
		}
	}
	return out
}

// Commands that read print the same in the read-only sandbox as without a sandbox, also in namespaces
// if this machine supports them.
func TestReadersPrintTheSame(t *testing.T) {
	needs.Long(t)
	ws, policy := reader(t)
	p := newPool(t)
	kinds := []sandbox.Policy{policy}
	if here := p.Isolation(); here.Mounts && here.Processes {
		policy.Isolate, policy.OwnProcesses, policy.Write = true, true, []string{ws}
		kinds = append(kinds, policy)
	}
	for _, line := range []string{
		"git log", "git log --oneline -p", "git diff", "git diff --stat", "git status", "git status --short", "git show HEAD", "git grep one", "git blame HEAD a.txt",
		"git ls-files", "git rev-parse HEAD", "git rev-parse --show-toplevel", "git branch -a", "git stash list", "git shortlog HEAD", "git remote -v", "git describe --tags",
		"git config --list", "git l", "git log --graph --all", "git cat-file -p HEAD", "git ls-tree HEAD", "git tag",
		"rg --sort path two", "rg --files --sort path", "grep -rn two .", "find . -name '*.txt'", "find . -name '*.txt' -exec cat {} +", "ls -la", "ls -laR src", "cat a.txt", "head -1 a.txt", "tail -n 1 a.txt",
		"sort a.txt b.txt", "wc -l a.txt", "jq .a data.json", "sed -n 1,2p a.txt", "awk '{print $1}' a.txt", "diff a.txt b.txt", "file a.txt", "stat -c %s a.txt", "du -s src", "id", "id -un",
		"whoami", "date +%Y", "date -d '2020-01-01' +%A", "uname -a", "nproc", "md5sum a.txt", "sha256sum a.txt", "tr a b <a.txt", "cut -c1 a.txt", "paste a.txt b.txt", "column -t a.txt", "od -c a.txt", "xxd a.txt",
		"readlink -f a.txt", "nl a.txt", "comm a.txt b.txt", "cmp a.txt b.txt", "seq 3", "realpath a.txt", "basename /x/y", "dirname /x/y", "printf 'a.txt\\0' | xargs -0 cat", "timeout 9 cat a.txt", "nice cat a.txt",
		"env | grep ^HOME", "tar tf all.tar", "zcat a.txt.gz", "which cat", "getent passwd root", "free >/dev/null", "uptime >/dev/null", "strings a.txt", "tac a.txt", "rev a.txt", "uniq a.txt", "fold -w 2 a.txt", "expand a.txt",
		"tree", "hexdump -C a.txt", "base64 a.txt", "join a.txt b.txt", "split --version | head -1", "locale -a | head -1", "test -f a.txt && echo yes", "cat /dev/stdin <a.txt", "for f in *.txt; do cat \"$f\"; done", "pwd -P", "sleep 0", "cksum a.txt", "tsort </dev/null", "yes | head -2", "cat nothere", "ls nothere; nosuchprogram",
	} {
		names := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" |;&'<>", r) })
		if _, err := exec.LookPath(names[0]); err != nil && !slices.Contains([]string{"for", "ls"}, names[0]) {
			t.Logf("NOT TESTED: %s is missing", names[0])
			continue
		}
		run := func(bounds sandbox.Policy) (string, Exit) {
			var out, errs bytes.Buffer
			exit, err := p.Run(context.Background(), Spec{Path: "bash", Args: []string{"-c", line}, Dir: ws, Stdout: &out, Stderr: &errs, Env: []string{"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"}, Sandbox: bounds})
			if err != nil {
				t.Fatal(err)
			}
			return out.String() + "--\n" + errs.String(), exit
		}
		free, freeExit := run(sandbox.Policy{})
		for _, bounds := range kinds {
			bounds.Execute = slices.Concat(policy.Execute, programs(t, names...), programs(t, "gzip")) // zcat is a script that starts it
			got, gotExit := run(bounds)
			if free != got || freeExit != gotExit {
				t.Errorf("%s, in namespaces: %v: exit %d, not %d:\n%s\nwithout bounds:\n%s", line, bounds.Isolate, gotExit.Code, freeExit.Code, got, free)
			}
		}
	}
}

// A command that may only read can read the workspace, the system and the user's configuration of
// git. The test tries several ways to read other files.
func TestReadersReadNothingElse(t *testing.T) {
	needs.Long(t)
	ws, policy := reader(t)
	policy.Execute = nil
	elsewhere := filepath.Join(filepath.Dir(ws), "other")
	temp, err := os.CreateTemp("/tmp", "secret-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(temp.Name()) })
	_, _ = temp.WriteString("text\n")
	_ = temp.Close()
	for _, script := range []string{
		"cat ../other/b.txt", "cat link/b.txt", "cat src/../link/b.txt", "cat " + elsewhere + "/b.txt", "cat < ../other/b.txt", "read x <link/b.txt && echo $x",
		"cat " + temp.Name(), "git --no-pager diff --no-index /dev/null ../other/b.txt", "git --git-dir=../other/.git log", "ls ../other", "ls ..", "ls ~", "ls /", "find ../other -name b.txt",
		"cat /etc/shadow", "cat /etc/hostname /etc/hosts", "tar cf - ../other/b.txt", "ln -s ../other/b.txt \"$TMPDIR/l\" && cat \"$TMPDIR/l\"", "cat /proc/1/environ", "cat /proc/$PPID/environ", "cat /proc/$$/cmdline", "ls /run", "ls /dev/pts",
		"(setsid cat ../other/b.txt)", "env cat ../other/b.txt", "printf '../other/b.txt' | xargs cat", "cd ../other && cat b.txt", "grep -r text ../other", "sed -n p ../other/b.txt", "awk 1 ../other/b.txt", "sort --files0-from=<(printf ../other/b.txt)",
	} {
		if exit, out := runBounded(t, policy, ws, script); exit.Code == 0 || strings.Contains(out, "\ntext") || strings.HasPrefix(out, "text") {
			t.Errorf("%s: exit %d: %s", script, exit.Code, out)
		}
	}
	if exit, out := runBounded(t, policy, ws, "cat a.txt && ls src /usr >/dev/null && echo x >\"$TMPDIR/x\" && cat \"$TMPDIR/x\""); exit.Code != 0 {
		t.Errorf("what it may read: %s", out)
	}
}

// A program that was not judged does not start, neither from the shell nor from another program.
func TestUnjudgedProgramsDoNotStart(t *testing.T) {
	needs.Long(t)
	ws, policy := reader(t)
	policy.Execute = programs(t, "bash", "cat", "env", "xargs", "find", "git", "cp", "dd", "chmod")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "evil"), []byte("#!/bin/sh\necho started\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{
		"echo started | tac", "/usr/bin/printf started", "env printf started", "echo started | xargs printf", "find a.txt -exec printf started \\;", "./evil", "bash ./script && ./script && echo started", "exec printf started",
		"git -c diff.external=./evil diff", "git -c core.fsmonitor=./evil status", "git -c core.pager=./evil -p log", "git -c alias.x='!printf started' x", "git -c diff.x.textconv=./evil diff",
		"cp /usr/bin/printf \"$TMPDIR/p\"; \"$TMPDIR/p\" started", "printf '#!/bin/bash\\necho started\\n' >\"$TMPDIR/p\"; \"$TMPDIR/p\"", "printf '#!/usr/bin/printf started\\n' >\"$TMPDIR/p\"; \"$TMPDIR/p\"",
		self + " " + callsArg, "sh -c 'echo started'", "(setsid printf started)", "command -p tac <<<started", "python3 -c 'print(\"started\")'", "perl -e 'print \"started\"'",
	} {
		_, out := runBounded(t, policy, ws, script)
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "started") || strings.HasPrefix(line, "size of a pointer") {
				t.Errorf("%s: %s", script, out)
			}
		}
	}
	for _, script := range []string{"cat a.txt", "env cat a.txt", "printf a.txt | xargs cat", "find a.txt -exec cat {} +", "git log -1"} {
		if exit, out := runBounded(t, policy, ws, script); exit.Code != 0 {
			t.Errorf("%s: %s", script, out)
		}
	}
}

// A program or folder that became a link after it was judged is not followed.
func TestSwappedPathsAreNotFollowed(t *testing.T) {
	ws, policy := reader(t)
	program, folder := filepath.Join(ws, "..", "program"), filepath.Join(ws, "..", "folder")
	if err := os.Symlink("/usr/bin/printf", program); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", folder); err != nil {
		t.Fatal(err)
	}
	policy.Execute = append(policy.Execute, filepath.Clean(program))
	policy.Read = append(policy.Read, filepath.Clean(folder))
	if _, out := runBounded(t, policy, ws, "../program started; read x <../folder/b.txt && echo started"); strings.Contains(out, "\nstarted") || strings.HasPrefix(out, "started") {
		t.Error(out)
	}
}

// A command can read the repository of a linked work tree. It cannot do so from a folder that only
// claims to be a work tree of that repository.
func TestReadersOfWorktrees(t *testing.T) {
	ws, policy := reader(t)
	linked, claims, stolen := filepath.Join(ws, "..", "linked"), filepath.Join(ws, "..", "false"), filepath.Join(ws, "..", "stolen")
	if out, err := exec.Command("git", "-C", ws, "worktree", "add", "-q", linked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for dir, repo := range map[string]string{claims: ws + "/.git", stolen: ws + "/.git/worktrees/linked"} { // the second belongs to linked
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+repo+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A work tree that contains the files with which a repository should confirm the link.
	planted, other := filepath.Join(ws, "..", "planted"), filepath.Clean(filepath.Join(ws, "..", "other"))
	for name, text := range map[string]string{".git": "gitdir: meta\n", "meta/gitdir": "../.git\n", "meta/commondir": other + "\n"} {
		file := filepath.Join(planted, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	policy.Execute = nil
	policy.Read = sandbox.Reads([]string{filepath.Clean(planted)}, os.Getenv)
	if exit, out := runBounded(t, policy, planted, "cat ../other/b.txt"); exit.Code == 0 {
		t.Errorf("a command in a planted repository could read another folder: %s", out)
	}
	for root, want := range map[string]int{linked: 0, filepath.Join(ws, "src"): 0, claims: 128, stolen: 128} {
		root = filepath.Clean(root)
		policy.Read = sandbox.Reads([]string{root}, os.Getenv)
		if exit, out := runBounded(t, policy, root, "git log -1 && git status --short"); exit.Code != want {
			t.Errorf("%s: exit %d: %s", root, exit.Code, out)
		}
	}
}
