//go:build unix

package permission

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
)

// gitReaders lists git commands that only read unless a repository's configuration makes them do
// more.
func gitReaders() []string {
	return []string{
		"git status", "git status -s", "git log", "git log --oneline -3", "git log -p -2", "git log --graph --all --decorate", "git log --stat", "git log -- a.txt", "git log --format=%H -n 1", "git show", "git show --stat v1", "git diff", "git diff HEAD",
		"git diff --stat", "git diff HEAD~1 HEAD", "git blame b.txt", "git annotate b.txt", "git rev-parse HEAD", "git ls-files", "git ls-files -m", "git ls-tree HEAD", "git describe --always", "git shortlog -s HEAD",
		"git rev-list HEAD", "git merge-base main other", "git name-rev HEAD", "git grep -n foo", "git branch", "git branch -vv", "git branch -a", "git tag", "git tag -l", "git remote", "git remote -v", "git stash list",
		"git reflog", "git worktree list", "git cat-file -p HEAD", "git for-each-ref", "git show-ref", "git count-objects -v", "git check-ignore a.txt", "git cherry main other", "git whatchanged -2",
		"git symbolic-ref HEAD", "git diff-tree -p HEAD", "git diff-index HEAD", "git diff-files", "git show-branch", "git version", "git -C sub log --reverse",
	}
}

// harmlessGitConfig has all keys that eca takes for harmless. Their values name the trap if git
// could run a program or connect.
func harmlessGitConfig() string {
	return `
[alias]
	lg = log --graph
	st = !TRAP
	ls = "!TRAP"
[alias "x y"]
	command = !TRAP
[am]
	threeWay = true
[apply]
	whitespace = fix
[author]
	name = a
[branch]
	sort = -committerdate
	autoSetupMerge = always
[branch "main"]
	remote = origin
	merge = refs/heads/main
	vscode-merge-base = origin/main
	description = d
[checkout]
	defaultRemote = origin
[clone]
	defaultRemoteName = origin
[color]
	ui = auto
[column]
	ui = auto
[commit]
	gpgSign = true
	template = TRAP
[committer]
	name = c
[core]
	askPass = TRAP
	editor = TRAP
	sshCommand = TRAP
	fsmonitor = TRAP
	hooksPath = hooks
	trustctime = false
	notesRef = refs/notes/x
[credential]
	helper = !TRAP
	username = u
[credential "https://127.0.0.1:1"]
	helper = TRAP
[diff]
	algorithm = histogram
	tool = trap
	guitool = trap
	colorMovedWS = no
	relative = false
[diff "evil"]
	xfuncname = "^x"
	wordRegex = .
[difftool "trap"]
	cmd = TRAP
	path = TRAP
[fetch]
	prune = true
[gc]
	auto = 1
[gitflow "branch"]
	master = main
[gitreview]
	remote = origin
[gitk]
	x = TRAP
[gui]
	encoding = utf-8
	wmstate = normal
[http]
	proxy = http://127.0.0.1:PORT
	sslVerify = false
	cookieFile = TRAP
[http "https://127.0.0.1:PORT"]
	extraHeader = x
[hub]
	protocol = https
[init]
	templateDir = hooks
[lfs]
	url = http://127.0.0.1:PORT
	repositoryformatversion = 0
[maintenance]
	auto = true
[merge]
	tool = trap
[merge "evil"]
	driver = TRAP
[mergetool "trap"]
	cmd = TRAP
[notes]
	displayRef = refs/notes/*
[pull]
	rebase = true
[push]
	default = current
[rebase]
	instructionFormat = %s
[receive]
	fsckObjects = true
[remote "origin"]
	url = ssh://127.0.0.1:PORT/x
	fetch = +refs/heads/*:refs/remotes/origin/*
	pushurl = ext::TRAP
	proxy = http://127.0.0.1:PORT
	mirror = false
[repack]
	writeBitmaps = true
[rerere]
	enabled = true
[sendemail]
	sendmailCmd = TRAP
	smtpServer = TRAP
[sequence]
	editor = TRAP
[stash]
	showPatch = true
[submodule]
	fetchJobs = 2
[submodule "subm"]
	update = !TRAP
	url = ext::TRAP
	active = true
[svn]
	authorsProg = TRAP
[svn-remote "svn"]
	url = http://127.0.0.1:PORT
	fetch = :refs/remotes/git-svn
[tag]
	gpgSign = true
	sort = -version:refname
[transfer]
	fsckObjects = true
[url "ext::TRAP "]
	insteadOf = https://example.com/
	pushInsteadOf = ssh://127.0.0.1
[user]
	signingKey = k
[worktree]
	guessRemote = true
`
}

// gitWorld is a world with a configuration added to its repository's.
func gitWorld(t *testing.T, config string) (w *world, bad func(text string) string) {
	t.Helper()
	w = newWorld(t, false)
	hooks := filepath.Join(w.dir, "hooks")
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	trap, err := os.ReadFile(filepath.Join(w.dir, "x.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-index-change", "reference-transaction", "post-checkout"} {
		if err := os.WriteFile(filepath.Join(hooks, hook), trap, 0o755); err != nil { //nolint:gosec // hooks are executed
			t.Fatal(err)
		}
	}
	w.configure(t, config)
	watch := w.watcher(t)
	return w, func(text string) string { return watch(t, []string{text})[0].violation(text) }
}

// configure adds to the repository's configuration.
func (w *world) configure(t *testing.T, config string) {
	t.Helper()
	path := filepath.Join(w.dir, ".git", "config")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config = strings.NewReplacer("TRAP", filepath.Join(w.dir, "x.sh"), "PORT", "9").Replace(config)
	if err := os.WriteFile(path, append(data, config...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// With all keys that eca takes for harmless in the repository's configuration, the commands of
// gitReaders run unasked, and start nothing.
func TestHarmlessGitConfiguration(t *testing.T) {
	needs.Long(t)
	w, _ := gitWorld(t, harmlessGitConfig())
	policy := policyFor(t, `{}`, w.dir)
	readers := gitReaders()
	for _, text := range readers {
		if v := judge(t, policy, "plan", w.dir, text); v.Decision != tools.Allow {
			t.Errorf("%q asks: %s", text, v.Reason)
		}
	}
	for i, report := range w.watcher(t)(t, readers) {
		if bad := report.violation(readers[i]); bad != "" {
			t.Errorf("%q runs without asking, and %s", readers[i], bad)
		}
	}
}

// With a key that starts a program, eca asks before the command that starts it; the test observes the
// start. Commands that run unasked nevertheless start nothing.
func TestDangerousGitConfiguration(t *testing.T) {
	needs.Long(t)
	for name, c := range map[string]struct {
		config string
		runs   string // a command that starts the trap
		signed bool   // it takes a commit with a signature
	}{
		"diff.external":     {"[diff]\n\texternal = TRAP\n", "git diff", false},
		"a diff command":    {"[diff \"evil\"]\n\tcommand = TRAP\n", "git log -p --ext-diff", false},
		"textconv":          {"[diff \"evil\"]\n\ttextconv = TRAP\n", "git log -p", false},
		"textconv of blame": {"[diff \"evil\"]\n\ttextconv = TRAP\n", "git blame b.txt", false},
		"a clean filter":    {"[filter \"evil\"]\n\tclean = TRAP\n", "git status", false},
		"a filter process":  {"[filter \"evil\"]\n\tprocess = TRAP\n", "git diff", false},
		"include":           {"[include]\n\tpath = ../more\n", "git diff", false},
		"includeIf":         {"[includeIf \"gitdir:**\"]\n\tpath = ../more\n", "git diff", false},
		"signatures":        {"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = TRAP\n", "git log", true},
		"a pretty format":   {"[format]\n\tpretty = %G?\n[gpg]\n\tprogram = TRAP\n", "git log", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, bad := gitWorld(t, c.config)
			if err := os.WriteFile(filepath.Join(w.dir, "more"), []byte("[diff]\n\texternal = "+filepath.Join(w.dir, "x.sh")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.signed {
				w.sign(t)
			}
			if got := bad(c.runs); !strings.Contains(got, "x.sh") && !strings.Contains(got, "/sh") {
				t.Errorf("%q does not start the trap: %q", c.runs, got)
			}
			policy := policyFor(t, `{}`, w.dir)
			if allowedUnasked(t, policy, w.dir, c.runs) {
				t.Errorf("%q runs without asking", c.runs)
			}
			var allowed []string
			for _, text := range gitReaders() {
				if allowedUnasked(t, policy, w.dir, text) {
					allowed = append(allowed, text)
				}
			}
			if len(allowed) == 0 {
				return
			}
			for i, report := range w.watcher(t)(t, allowed) {
				if got := report.violation(allowed[i]); got != "" {
					t.Errorf("%q runs without asking, and %s", allowed[i], got)
				}
			}
		})
	}
}

// sign gives the last commit a signature.
func (w *world) sign(t *testing.T) {
	t.Helper()
	git := func(input string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env, cmd.Stdin = w.dir, slices.Concat(w.env, harmlessGit()), strings.NewReader(input)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	head, message, _ := strings.Cut(git("", "cat-file", "commit", "HEAD"), "\n\n")
	signed := head + "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n" + message
	git("", "update-ref", "refs/heads/main", strings.TrimSpace(git(signed, "hash-object", "-w", "-t", "commit", "--stdin")))
}
