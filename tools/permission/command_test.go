package permission

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// policyFor returns the policy of a configuration for workspace folders on the disk.
func policyFor(t testing.TB, options string, roots ...string) *Policy {
	t.Helper()
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(options), Getenv: func(string) string { return "" }})
	if len(cfg.Problems) > 0 {
		t.Fatal(cfg.Problems)
	}
	p, errs := New(cfg.Config, Options{Contains: workspace.New(roots...).ContainsResolved, Memory: NewMemory(""), Getenv: os.Getenv, Children: testPool(t)})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

// testPool returns a pool whose processes the test program supervises; nil on systems where it
// cannot.
func testPool(t testing.TB) *proc.Pool {
	t.Helper()
	if runtime.GOOS == "windows" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := proc.NewPool(self, 1)
	t.Cleanup(p.Close)
	return p
}

// judge judges a command of an agent in a folder.
func judge(t testing.TB, p *Policy, agent, dir, command string) tools.Verdict {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	plan := tools.Plan{Paths: []string{dir}, Command: &tools.Command{Text: command, Dir: dir, Program: cmdline.Parse(command)}}
	return p.Judge(tools.Call{Agent: agent, Arguments: args, Roots: []string{dir}}, spec("eca__shell_command"), plan)
}

// makeFiles writes files below a new folder.
func makeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	return testkit.Folder(t, files)
}

// A user's pattern allows the commands that it is meant for. It does not allow a command line because
// its text as a whole matches.
func TestAllowedCommands(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	const rules = `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": [
		"git (status|diff|log).*", "npm (test|run build).*", "find .*", "timeout \\d+ npm test", "ls.*", "tar .*", "echo .* > out\\.txt", "NODE_ENV=test npm .*", "sudo apt .*",
		"git log --output=log\\.txt", "for f in .*", "npx (?!evil).*", "cat .*"]}}}}}}`
	p := policyFor(t, rules, dir)
	for command, want := range map[string]tools.Decision{
		"git status": tools.Allow, "git diff HEAD~1 -- a.txt": tools.Allow, "npm test": tools.Allow, "npm test -- --watch=false 'a b'": tools.Allow, "ls && git status": tools.Allow, "ls | head -3": tools.Allow,
		"find . -name '*.go'": tools.Allow, "timeout 60 npm test": tools.Allow, "git status; npm test": tools.Allow, "echo a > out.txt": tools.Allow, "NODE_ENV=test npm test": tools.Allow,
		"git log --output=log.txt": tools.Allow, "npm test 2>&1 | tail -5": tools.Allow, "npm test $FLAGS": tools.Allow, "npx tool": tools.Allow, "cat /etc/hostname": tools.Allow,
		"npm test && git grep x": tools.Allow, "npm test && git grep -f/etc/passwd": tools.Ask, "npm test && git blame --contents=/etc/passwd a.txt": tools.Ask, "npm test && git grep -f a.txt": tools.Allow,
		"sudo apt install x": tools.Allow, "npm run build >/dev/null": tools.Allow, "tar xf a.tar": tools.Allow,

		"git status && rm -rf x": tools.Ask, "git status; rm x": tools.Ask, "git status | sh": tools.Ask, "git status\nrm x": tools.Ask, "git status & rm x": tools.Ask, "npm test || rm x": tools.Ask,
		"git log $(rm x)": tools.Ask, "git log `rm x`": tools.Ask, "git log <(rm x)": tools.Ask, "git log \"$(rm x)\"": tools.Ask, "git log > x": tools.Ask, "npm test > package.json": tools.Ask, "git log >> x": tools.Ask,
		"git log --output=hooks/post-commit": tools.Ask, "git diff --no-index --output=/x a b": tools.Ask, "git diff --ext-diff": tools.Ask, "git show HEAD:evil.sh | sh": tools.Ask,
		"find . -exec sh -c 'id' {} \\;": tools.Ask, "find . -delete": tools.Ask, "find . -fprint x": tools.Ask, "find . -name x -ok rm {} \\;": tools.Ask, "ls | ssh host": tools.Ask, "ls && git reset --hard": tools.Ask,
		"tar --to-command=sh -xf a": tools.Ask, "tar --checkpoint-action=exec=sh -xf a": tools.Ask, "tar -I sh -xf a": tools.Ask, "npm test; f() { rm x; }; f": tools.Ask, "ls; ls() { rm x; }": tools.Ask,
		"npm test 'unclosed": tools.Ask, "npm test; $x": tools.Ask, "npm test; eval \"$x\"": tools.Ask, "npm test; X=1": tools.Ask, "npx evil": tools.Ask, "cat <<E | sh\nrm x\nE": tools.Ask,
		"timeout 60 rm x": tools.Ask, "npm test \u202e": tools.Ask, "git log; for X in --output=x; do git log $X; done": tools.Ask, "cat x; xargs rm": tools.Ask, "npm run build; . x": tools.Ask,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want || v.Reason == "" {
			t.Errorf("%q: %+v", command, v)
		}
	}
	every := policyFor(t, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": [".*"]}}}}}}`, dir)
	bare := policyFor(t, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {}}}}}`, dir)
	for _, command := range []string{"rm x", "npm test; $x", "f() { x; }; f"} {
		if judge(t, every, "code", dir, command).Decision != tools.Allow || judge(t, bare, "code", dir, command).Decision != tools.Allow {
			t.Errorf("%q: a rule that allows every command does not allow it", command)
		}
	}
}

// A rule that denies a command applies to each part of a command line, also to quoted, nested and
// computed parts.
func TestDeniedCommands(t *testing.T) {
	dir := t.TempDir()
	p := policyFor(t, `{"toolCall": {"approval": {"byDefault": "allow", "deny": {"eca__shell_command": {"argsMatchers": {"command": ["rm .*", "git push.*--force.*"]}}}}}}`, dir)
	for command, want := range map[string]tools.Decision{
		"ls": tools.Allow, "git push": tools.Allow,
		"rm x": tools.Deny, "ls; rm x": tools.Deny, "ls && rm x": tools.Deny, "'rm' x": tools.Deny, `r\m x`: tools.Deny, "/bin/rm x": tools.Deny, "sudo rm x": tools.Deny, "env A=1 rm x": tools.Deny,
		"sh -c 'rm x'": tools.Deny, "ls $(rm x)": tools.Deny, "xargs rm x": tools.Deny, "find . -exec rm {} +": tools.Deny, "if true; then rm x; fi": tools.Deny, "f() { rm x; }; f": tools.Deny,
		"cd a && git push origin --force": tools.Deny, "git \\\npush --force": tools.Deny, "eval 'rm x'": tools.Deny, "bash <<E\nrm x\nE": tools.Deny, "cat <(rm x)": tools.Deny, "sudo -u root rm x": tools.Deny,
		"echo 'rm x' | sh": tools.Deny, "printf '%s\\n' 'rm x' | bash -s -- a": tools.Deny, "cat <<E | sudo sh\nrm x\nE": tools.Deny, "env -S 'rm x'": tools.Deny, "su -c 'rm x'": tools.Deny, "bash -o pipefail -c 'rm x'": tools.Deny, "a='rm x'; sh -c \"$a\"": tools.Deny, "a='rm x'; $a": tools.Deny, "echo 'rm x' | cat": tools.Allow,
		"A=1 rm x": tools.Deny, "a=rm; $a x": tools.Deny, "a=/bin/rm; $a x": tools.Deny, "a=rm b=x; $a $b": tools.Deny, "echo x | xargs rm": tools.Deny, "ls | xargs rm": tools.Deny, "xargs rm </dev/stdin": tools.Deny,
		"rm \"a\nb\"": tools.Deny, "git -C . push --force": tools.Deny, "git -c a.b=c --no-pager push --force": tools.Deny, "a=ls; $a x": tools.Allow, "ls | xargs ls": tools.Allow,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// For an agent that may not change anything, commands that only read in the workspace run, and
// commands that change something are denied. eca asks about all others each time.
func TestReadOnlyAgents(t *testing.T) {
	outside := makeFiles(t, map[string]string{"secret": "", "fifo/x": ""})
	dir := makeFiles(t, map[string]string{"a.txt": "", "sub/b.txt": "", "--pre=x": ""})
	needs.Symlink(t, filepath.Join(outside, "secret"), filepath.Join(dir, "link"))
	p := policyFor(t, `{}`, dir)
	for command, want := range map[string]tools.Decision{
		"ls": tools.Allow, "cat a.txt | head": tools.Allow, "cd sub && cat b.txt": tools.Allow, "cat sub/../a.txt": tools.Allow, "grep -rn x .": tools.Allow, "ls *.txt": tools.Allow, "git log": tools.Allow,
		"cat " + dir + "/a.txt": tools.Allow, "cat < a.txt": tools.Allow, "grep -n /etc a.txt": tools.Allow, "find . -name '*.go' | sort | uniq -c": tools.Allow, "cd sub; cd .. && ls": tools.Ask,

		"npm test": tools.Ask, "make": tools.Ask, "./x.sh": tools.Ask, "cat /etc/passwd": tools.Ask, "cat ../x": tools.Ask, "cat link": tools.Ask, "cat *": tools.Ask, "cat li*": tools.Ask, "cat < link": tools.Ask,
		"cd .. && cat x": tools.Ask, "cd / && ls": tools.Ask, "cd; ls": tools.Ask, "cd -; ls": tools.Ask, "cat ~/x": tools.Ask, "cat $HOME/x": tools.Ask, "grep -ne. /etc/passwd": tools.Ask, "rg -ie x /etc/passwd": tools.Ask, "grep --reg=. /etc/passwd": tools.Ask, "grep -vf /etc/passwd a.txt": tools.Ask,
		"grep -nflink a.txt": tools.Ask, "git grep -vf/etc/passwd": tools.Ask, "git grep -f link": tools.Ask, "grep -ne. a.txt": tools.Allow, "grep -f/etc/passwd a.txt": tools.Ask, "rg x *": tools.Ask,
		"ls | xargs cat": tools.Ask, "find . -exec cat {} +": tools.Ask, "git -C .. log": tools.Ask, "git diff /etc/passwd /dev/null": tools.Ask, "echo ../*": tools.Ask, "ls 'x": tools.Ask,

		"rm a.txt": tools.Deny, "ls > x": tools.Deny, "ls; rm a.txt": tools.Deny, "find . -delete": tools.Deny, "git commit -m x": tools.Deny, "npm install": tools.Deny, "sed -i s/a/b/ a.txt": tools.Deny,
	} {
		v := judge(t, p, "plan", dir, command)
		if v.Decision != want || v.AlwaysAsk != (want == tools.Ask && !strings.HasPrefix(v.Rule, "agent.plan.toolCall")) {
			t.Errorf("%q: %+v", command, v)
		}
		others := tools.Ask // agents that may change something run what only reads, and are asked about the rest
		if want == tools.Allow {
			others = tools.Allow
		}
		if v := judge(t, p, "code", dir, command); v.Decision != others {
			t.Errorf("agent code: %q: %+v", command, v)
		}
	}
	all := policyFor(t, `{"agent": {"plan": {"toolCall": {"approval": {"byDefault": "allow", "allow": {"eca__shell_command": {}}}}}}}`, dir)
	if v := judge(t, all, "plan", dir, "npm test"); v.Decision != tools.Ask || !v.AlwaysAsk {
		t.Errorf("a rule that allows commands lets the agent plan run npm test: %+v", v)
	}
	ask := policyFor(t, `{"agent": {"plan": {"toolCall": {"approval": {"ask": {"eca__shell_command": {}}}}}}}`, dir)
	if v := judge(t, ask, "plan", dir, "ls"); v.Decision != tools.Ask {
		t.Errorf("eca does not ask about a command for which a rule says ask: %+v", v)
	}
	if v := judge(t, p, "plan", outside, "ls"); v.Decision != tools.Ask {
		t.Errorf("reading elsewhere: %+v", v)
	}
}

// A repository's own configuration can make git run programs.
func TestRepositoryHelpers(t *testing.T) {
	needs.Long(t)
	needs.Git(t)
	const harmless = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n[branch \"a]b\"] remote = origin\n[user]\n\tname = n\n"
	for extra, want := range map[string]tools.Decision{
		"": tools.Allow, "[core]\n\thooksPath = .husky": tools.Allow, "[lfs]\n\trepositoryformatversion = 0": tools.Allow,
		"[diff]\n\texternal = ./x": tools.Ask, "[diff \"p\"]\n\ttextconv = ./x": tools.Ask, "[diff \"p\"]\n\tcommand = ./x": tools.Ask, "[filter \"p\"]\n\tclean = ./x": tools.Ask, "[core]\n\tpager = ./x": tools.Ask,
		"[pager]\n\tlog = ./x": tools.Ask, "[include]\n\tpath = x": tools.Ask, "[includeIf \"gitdir:/\"]\n\tpath = x": tools.Ask, "[gpg]\n\tprogram = ./x": tools.Ask, "[log]\n\tshowSignature = true": tools.Ask,
		"[remote \"origin\"]\n\tuploadpack = ./x": tools.Ask, "[remote \"origin\"]\n\tpromisor = true": tools.Ask, "[core] alternateRefsCommand = ./x": tools.Ask, "[Diff]External=./x": tools.Ask,
		"[core]\n\tbare = \\\nfalse": tools.Allow, "[diff]\n\texter\\\nnal = ./x": tools.Ask, "[diff]\n\tcontext = 3\\\n1\n\texternal = ./x": tools.Ask, "[diff": tools.Ask, "[credential]\n\thelper = !./x": tools.Allow, "[alias]\n\tlg = !./x": tools.Allow, "[alias]\n\twhatchanged = !./x": tools.Ask, "[alias \"log\"]\n\tcommand = !./x": tools.Ask, "[nobody]\n\tknows = x": tools.Ask,
		"[blame]\n\tignoreRevsFile = .ignored": tools.Allow, "[blame]\n\tignoreRevsFile = /etc/passwd": tools.Ask, "[core]\n\texcludesFile = sub/ignored": tools.Allow, "[core]\n\texcludesFile = ../x": tools.Ask, "[core]\n\texcludesFile = ~/x": tools.Ask,
		"[branch]\n\tsort = -committerdate": tools.Allow, "[tag]\n\tsort = signature:grade": tools.Ask, "[svn-remote \"svn\"]\n\turl = x\n[gui]\n\tencoding = x\n[http]\n\tproxy = x\n[url \"x\"]\n\tinsteadOf = y": tools.Allow, "[user]name=n\n[diff \"a]\"]textconv=./x": tools.Ask, "[diff.p]\n\ttextconv = ./x": tools.Ask,
	} {
		dir := makeFiles(t, map[string]string{".git/config": harmless + extra, "sub/x": ""})
		p := policyFor(t, `{}`, dir)
		for _, command := range []string{"git status", "cd sub && git log -p", "git -C sub diff"} {
			if v := judge(t, p, "plan", dir, command); v.Decision != want {
				t.Errorf("%q with %q: %+v", command, extra, v)
			}
		}
	}
	// Git commands that show no contents of files run unasked, because they do not start the programs that
	// convert contents.
	dir := makeFiles(t, map[string]string{".git/config": harmless + "[diff \"p\"]\n\ttextconv = ./x\n[filter \"lfs\"]\n\tclean = ./x\n", "sub/x": ""})
	for command, want := range map[string]tools.Decision{
		"git log": tools.Allow, "git log --oneline -5": tools.Allow, "git -C sub log -n 3 -- x": tools.Allow, "git branch -a": tools.Allow, "git rev-parse HEAD": tools.Allow, "git remote -v": tools.Allow,
		"git log -p": tools.Ask, "git log -Sx": tools.Ask, "git log --stat": tools.Ask, "git log -n1 -u": tools.Ask, "git status": tools.Ask, "git diff": tools.Ask, "git show": tools.Ask, "git blame x": tools.Ask, "git grep x": tools.Ask,
	} {
		if v := judge(t, policyFor(t, `{}`, dir), "plan", dir, command); v.Decision != want {
			t.Errorf("%q where contents are filtered: %+v", command, v)
		}
	}
	const evil = "[diff]\n\texternal = ./x\n"
	many := map[string]string{".git/config": harmless}
	for i := range maxRepositories + 1 {
		many[fmt.Sprintf(".git/modules/%d/x", i)] = ""
	}
	for name, files := range map[string]map[string]string{
		"a folder that is a bare repository": {"HEAD": "", "objects/x": "", "refs/x": "", "config": evil},
		"a linked folder":                    {".git": "gitdir: real\n", "real/config": evil},
		"a worktree":                         {".git": "gitdir: main/worktrees/w\n", "main/worktrees/w/commondir": "../..\n", "main/config": evil},
		"a worktree's own configuration":     {".git/config": harmless, ".git/config.worktree": evil},
		"a submodule":                        {".git/config": harmless, ".gitmodules": "[submodule \"s\"]\n\tpath = s\n", "s/.git/config": evil},
		"a submodule that is kept":           {".git/config": harmless, ".git/modules/s/HEAD": "", ".git/modules/s/objects/x": "", ".git/modules/s/refs/x": "", ".git/modules/s/config": evil},
		"a kept one with a slash":            {".git/config": harmless, ".git/modules/a/b/HEAD": "", ".git/modules/a/b/objects/x": "", ".git/modules/a/b/refs/x": "", ".git/modules/a/b/config": evil},
		"a work tree elsewhere":              {".git/config": "[core]\n\tworktree = ../..\n"},
		"too many submodules":                many,
	} {
		dir := makeFiles(t, files)
		if v := judge(t, policyFor(t, `{}`, dir), "plan", dir, "git status"); v.Decision != tools.Ask {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// eca judges a command that changes its folder many times. If it cannot know the folder of a part, a
// rule has to allow that part.
func TestManyFolders(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	p := policyFor(t, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["cd .*"]}}}}}}`, dir)
	many := ""
	for i := range 60 { // each may have happened or not
		many += fmt.Sprintf("cd a%d; ", i)
	}
	for command, want := range map[string]tools.Decision{
		"cd sub && cat a.txt": tools.Allow, many: tools.Allow, many + "cat a.txt": tools.Ask, "cd - && cat a.txt": tools.Ask, "cd -; ls; cat a.txt": tools.Ask,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want {
			t.Errorf("%s: %+v", command, v)
		}
	}
}

// eca resolves the paths of a command as the system does: name by name, following each link before
// a .. after it.
func TestPathsAreFollowedByName(t *testing.T) {
	outside := makeFiles(t, map[string]string{"in/x": "", "secret": "", "in/a.txt": ""})
	dir := makeFiles(t, map[string]string{"a.txt": "", "sub/b.txt": "", "sub2/c": "", "d/x": "", "opts/-R": "", "opts/y": "", "list": "", "--pre=x": "", ".e": ""})
	for link, to := range map[string]string{"link": filepath.Join(outside, "in"), "sub/back": dir, "d/out": filepath.Join(outside, "secret"), "sub3": filepath.Join(outside, "in")} {
		needs.Symlink(t, to, filepath.Join(dir, filepath.FromSlash(link)))
	}
	if filepath.Separator == '\\' {
		t.Skip("Windows takes .. away before it follows links")
	}
	p := policyFor(t, `{}`, dir)
	for command, want := range map[string]tools.Decision{
		"cat sub/back/a.txt": tools.Allow, "cat sub/../a.txt": tools.Allow, "cat sub/back/../a.txt": tools.Ask, "cat sub/back/../" + filepath.Base(dir) + "/a.txt": tools.Allow, "cat -- a.txt": tools.Allow, "cd -- sub && cat b.txt": tools.Allow, "cd sub/back && cat a.txt": tools.Allow,
		"cat link/../secret": tools.Ask, "cat link/../a.txt": tools.Ask, "cat -- link/../secret": tools.Ask, "ls link/..": tools.Ask, "cat link/../*": tools.Ask, "cat sub/back/../*": tools.Ask, "cat < link/../secret": tools.Ask, "git -C link/.. log": tools.Ask, "git diff --no-index a.txt link/../secret": tools.Ask,
		"git grep -f link/../secret": tools.Ask, "cat -- --pre=x ../x": tools.Ask, "head -n 1 -- link/a.txt": tools.Ask, "grep x -- link/a.txt": tools.Ask, "git -C sub grep -f ../../x": tools.Ask, "cd link && cat a.txt": tools.Ask, "cd link/.. && cat secret": tools.Ask, "cd sub && cat ../../x": tools.Ask,
		"cd su?/back && cat a.txt": tools.Allow, "cd sub*": tools.Ask, "cd sub* && cat a.txt": tools.Ask, "cd l* && cat a.txt": tools.Ask, "cd ./li?k/.. && cat secret": tools.Ask, "cd opts && ls *": tools.Ask, "cd opts && wc -l ?*": tools.Ask, "ls opts/*": tools.Allow,
		"pushd link; cat a.txt": tools.Ask, "cd; cat a.txt": tools.Ask, "cd sub b; cat a.txt": tools.Ask, "cd -P link/..; cat secret": tools.Ask, "command cd link; cat a.txt": tools.Ask, "builtin cd link && cat a.txt": tools.Ask, "eval 'cd link'; cat a.txt": tools.Ask, "cd -@ sub": tools.Ask,
		"diff a.txt list": tools.Allow, "diff /dev/null a.txt": tools.Allow, "grep x a.txt /dev/null": tools.Allow, "cat /dev/zero": tools.Ask, "cat /dev/null/../zero": tools.Ask, "diff sub d": tools.Ask, "diff --no-dereference sub d": tools.Allow, "diff sub/* d/x": tools.Ask, "grep -rn x .": tools.Allow, "grep x *": tools.Ask, "jq . *": tools.Ask, "wc -l *.txt": tools.Allow, "cat -?*": tools.Ask,
	} {
		if v := judge(t, p, "plan", dir, command); v.Decision != want {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// eca asks git which repository a command uses and what its configuration is. If the repository or
// its objects are outside the workspace, eca asks the user.
func TestGitIsAsked(t *testing.T) {
	needs.Long(t)
	needs.Git(t)
	outside := makeFiles(t, map[string]string{"repo/.git/HEAD": "ref: refs/heads/main\n", "repo/.git/config": "", "repo/.git/objects/x": "", "repo/.git/refs/x": "", "repo/.git/worktrees/w/HEAD": "ref: refs/heads/w\n", "repo/.git/worktrees/w/commondir": "../..\n", "other/HEAD": "ref: refs/heads/main\n", "other/objects/x": "", "other/refs/x": ""})
	valid := func(prefix string, more map[string]string) map[string]string {
		files := map[string]string{prefix + "HEAD": "ref: refs/heads/main\n", prefix + "config": "[core]\n\tbare = false\n", prefix + "objects/x": "", prefix + "refs/x": "", "sub/x": "", "in/objects/info/x": ""}
		for name, text := range more {
			files[name] = text
		}
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  tools.Decision
	}{
		"a repository":                                {valid(".git/", nil), tools.Allow},
		"none":                                        {map[string]string{"sub/x": ""}, tools.Allow},
		"alternates inside":                           {valid(".git/", map[string]string{".git/objects/info/alternates": "../../in/objects\n"}), tools.Allow},
		"alternates outside":                          {valid(".git/", map[string]string{".git/objects/info/alternates": "# x\n" + outside + "/repo/.git/objects\n"}), tools.Ask},
		"alternates of alternates":                    {valid(".git/", map[string]string{".git/objects/info/alternates": "../../in/objects\n", "in/objects/info/alternates": outside + "/repo/.git/objects\n"}), tools.Ask},
		"alternates in quotes":                        {valid(".git/", map[string]string{".git/objects/info/alternates": "\"../../in/objects\"\n"}), tools.Ask},
		"a link to a repository outside":              {map[string]string{".git": "gitdir: " + outside + "/other\n", "sub/x": ""}, tools.Ask},
		"a common folder outside":                     {valid(".git/", map[string]string{".git/commondir": outside + "/repo/.git\n"}), tools.Ask},
		"a link that says nothing":                    {map[string]string{".git": "x\n", "sub/x": ""}, tools.Ask},
		"a work tree outside":                         {valid(".git/", map[string]string{".git/config": "[core]\n\tworktree = /\n"}), tools.Ask},
		"a repository that somebody put here":         {valid("", map[string]string{"config": "[core]\n\tpager = ./x\n"}), tools.Ask},
		"a key behind a line that goes on":            {valid(".git/", map[string]string{".git/config": "[user]\n\tname = a\\\n[core]\n[diff]\n\texternal = ./x\n"}), tools.Ask},
		"a line that goes on hides no key":            {valid(".git/", map[string]string{".git/config": "[user]\n\tname = a\\\n[diff]\n"}), tools.Allow},
		"a repository that git does not take for one": {valid(".git/", map[string]string{".git/config": "[diff]\n\texternal = ./x\n", "sub/.git/HEAD": "nonsense\n", "sub/.git/objects/x": "", "sub/.git/refs/x": "", "sub/.git/config": ""}), tools.Ask},
		"a configuration that git refuses":            {valid(".git/", map[string]string{".git/config": "[core\n"}), tools.Ask},
	} {
		dir := makeFiles(t, c.files)
		p := policyFor(t, `{}`, dir)
		for _, command := range []string{"git status", "cd sub && git log -p", "git -C sub diff"} {
			if v := judge(t, p, "plan", dir, command); v.Decision != c.want {
				t.Errorf("%s: %q: %+v", name, command, v)
			}
		}
	}

	// Parts of a repository may be links.
	linked := makeFiles(t, valid(".git/", nil))
	for path, want := range map[string]tools.Decision{".git/logs": tools.Allow, ".git/objects/pack": tools.Ask, ".git/info/exclude": tools.Ask} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(linked, filepath.FromSlash(path))), 0o755); err != nil {
			t.Fatal(err)
		}
		to := map[tools.Decision]string{tools.Allow: linked, tools.Ask: outside}[want]
		needs.Symlink(t, to, filepath.Join(linked, filepath.FromSlash(path)))
		if v := judge(t, policyFor(t, `{}`, linked), "plan", linked, "git log"); v.Decision != want {
			t.Errorf("%s is a link to %s: %+v", path, to, v)
		}
		if err := os.Remove(filepath.Join(linked, filepath.FromSlash(path))); err != nil {
			t.Fatal(err)
		}
	}

	// A linked work tree's repository names it in turn.
	dir := makeFiles(t, map[string]string{".git": "gitdir: " + outside + "/repo/.git/worktrees/w\n"})
	for _, c := range []struct {
		back string
		want tools.Decision
	}{{dir, tools.Allow}, {outside, tools.Ask}} {
		if err := os.WriteFile(filepath.Join(outside, "repo/.git/worktrees/w/gitdir"), []byte(c.back+"/.git\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if v := judge(t, policyFor(t, `{}`, dir), "plan", dir, "git log"); v.Decision != c.want {
			t.Errorf("a work tree whose repository names %s: %+v", c.back, v)
		}
	}
	// The workspace is a folder in a repository.
	sub := makeFiles(t, valid(".git/", nil))
	if v := judge(t, policyFor(t, `{}`, filepath.Join(sub, "sub")), "plan", filepath.Join(sub, "sub"), "git log"); v.Decision != tools.Ask {
		t.Errorf("a repository around the workspace: %+v", v)
	}
	// eca notices changes of the configuration although it caches git's answers.
	p := policyFor(t, `{}`, sub)
	for _, c := range []struct {
		text string
		want tools.Decision
	}{{"", tools.Allow}, {"[diff]\n\texternal = ./x\n", tools.Ask}, {"[core]\n\tbare = false\n", tools.Allow}} {
		if err := os.WriteFile(filepath.Join(sub, ".git/config"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if v := judge(t, p, "plan", sub, "git log -p"); v.Decision != c.want {
			t.Errorf("%q: %+v", c.text, v)
		}
	}
	// To the top of the repository.
	for command, want := range map[string]tools.Decision{
		`cd "$(git rev-parse --show-toplevel)" && cat sub/x`: tools.Allow, `'cd' "$('git' "rev-parse" '--show-toplevel' 2>'/dev/null')" && cat 'sub/x'`: tools.Allow, `cd "$(git rev-parse --show-toplevel 2>/dev/null)" && git status`: tools.Allow, `cd sub && cd "$(git rev-parse --show-toplevel)" && cat ../x`: tools.Ask,
		`cd $(git rev-parse --show-toplevel) && ls`: tools.Ask, `cd "$(git rev-parse --show-toplevel)/.." && ls`: tools.Ask, `cd "$(git rev-parse --show-toplevel; echo /)" && ls`: tools.Ask, `cd "$(git rev-parse --show-toplevel >x)" && ls`: tools.Deny, `cd "$(git -C / rev-parse --show-toplevel)" && ls`: tools.Ask,
	} {
		if v := judge(t, p, "plan", sub, command); v.Decision != want {
			t.Errorf("%s: %+v", command, v)
		}
	}
}
