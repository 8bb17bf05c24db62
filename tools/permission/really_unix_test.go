//go:build unix

package permission

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == bindArg {
		os.Exit(bindAndExec(os.Args[2], os.Args[3:]))
	}
	// The tests generate the same programs each time, so that only a change makes them fail.
	// -rapid.seed=0 generates new ones.
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock")) // it ends some time after the last match
}

// The test generates programs and really runs those that a built-in agent may run unasked, watched
// from outside. They do not write, delete or connect, read no file of the user outside the
// workspace, and execute only programs that the policy listed. `go test -rapid.checks=5000` tries
// more.
func TestAllowedProgramsOnlyRead(t *testing.T) {
	needs.Long(t)
	for _, evil := range []bool{false, true} {
		t.Run(fmt.Sprintf("evil submodules: %v", evil), func(t *testing.T) {
			runAllowed(t, newWorld(t, evil), generatedPrograms(), 50)
		})
	}
}

// The same for programs with options in different spellings and orders, made up from eca's tables of
// options.
func TestAllowedOptionsOnlyRead(t *testing.T) {
	runAllowed(t, newWorld(t, false), optionCommands(), 50)
}

// The same for scripts of sed and awk.
func TestAllowedScriptsOnlyRead(t *testing.T) {
	runAllowed(t, newWorld(t, false), scriptCommands(), 20)
}

// runAllowed runs those of the generated programs that may run unasked. It fails the test if they are
// fewer than few.
func runAllowed(t *testing.T, w *world, programs *rapid.Generator[string], few int) {
	t.Helper()
	watch := w.watcher(t)
	policy := policyFor(t, `{}`, w.dir)
	ran, looked := map[string]bool{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		if len(ran) >= enoughPrograms {
			return
		}
		var allowed []string
		for _, text := range rapid.SliceOfN(programs, 15, 15).Draw(rt, "programs") {
			looked++
			if printed := runsAs(t, policy, w.dir, text); printed != "" && !ran[printed] {
				allowed = append(allowed, printed)
			}
		}
		if len(allowed) == 0 {
			return
		}
		for i, report := range watch(rt, allowed) {
			if bad := report.violation(allowed[i]); bad != "" {
				rt.Fatalf("%q runs without asking, and %s", allowed[i], bad)
			}
		}
		for _, text := range allowed { // programs that passed do not run again; rapid runs failures again to shrink them
			ran[text] = true
		}
	})
	if len(ran) < few {
		t.Errorf("only %d programs were run, want at least %d", len(ran), few)
	}
	t.Logf("of %d programs, %d were run", looked, len(ran))
}

// eca asks about each of the known tricks, and still runs programs that only read unasked.
func TestKnownTricksAsk(t *testing.T) {
	evil, w := newWorld(t, true), newWorld(t, false)
	policy := policyFor(t, `{}`, w.dir)
	for _, text := range tricks() {
		if allowedUnasked(t, policy, w.dir, text) {
			t.Errorf("%q runs without asking", text)
		}
	}
	for _, text := range []string{"git status", "git diff", "git log -p", "git ls-files", "cd sub && git show"} {
		if allowedUnasked(t, policyFor(t, `{}`, evil.dir), evil.dir, text) {
			t.Errorf("%q runs without asking where a submodule's configuration runs programs", text)
		}
	}
	for _, text := range knownReaders() {
		if !allowedUnasked(t, policy, w.dir, text) {
			t.Errorf("%q asks", text)
		}
	}
	for i, report := range w.watcher(t)(t, knownReaders()) {
		if bad := report.violation(knownReaders()[i]); bad != "" {
			t.Errorf("%q runs without asking, and %s", knownReaders()[i], bad)
		}
	}
}

// The watcher reports programs that change, read, run or connect to something that they may not.
func TestWatcherSees(t *testing.T) {
	w := newWorld(t, false)
	bad := map[string]string{
		"touch new": "changes", "echo x >a.txt": "changes", "rm b.txt": "changes", "mv a.txt c.txt": "changes", "mkdir d": "changes", "ln -s a.txt l": "changes", "chmod 600 data.json": "changes",
		"cat sub/key": "reads", "grep -R x out": "reads", "cat out/../a.txt": "reads", "find -L . -name q": "reads",
		"./x.sh": "runs", "sh -c ./x.sh": "runs", "PATH=3; ls": "runs", "git -c alias.x=!./x.sh x": "runs",
		fmt.Sprintf("echo x >/dev/tcp/127.0.0.1/%d", w.port): "network",
	}
	var texts []string
	for text := range bad {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	for i, report := range w.watcher(t)(t, texts) {
		if bad[texts[i]] == "reads" && straceWorks(t) == "" {
			continue // only strace sees it
		}
		// Judged as if it ran nothing but harmless programs.
		report.judged = []string{"touch", "rm", "mv", "mkdir", "ln", "chmod", "sh", "git", "bash", "echo", "cat", "grep", "find"}
		if got := report.violation(""); !strings.Contains(got, bad[texts[i]]) {
			t.Errorf("%q is reported as %q, want one that %s", texts[i], got, bad[texts[i]])
		}
	}
}

// runsAs returns the text that eca runs if one of the built-in agents may run a program unasked,
// else "".
func runsAs(t *testing.T, p *Policy, dir, text string) string {
	t.Helper()
	for _, agent := range []string{"code", "plan", "explorer", "general"} {
		if v := judge(t, p, agent, dir, text); v.Decision == tools.Allow {
			return v.Printed.Text
		}
	}
	return ""
}

// allowedUnasked says whether one of the built-in agents may run a program unasked.
func allowedUnasked(t *testing.T, p *Policy, dir, text string) bool {
	t.Helper()
	return slices.ContainsFunc([]string{"code", "plan", "explorer", "general"}, func(agent string) bool {
		return judge(t, p, agent, dir, text).Decision == tools.Allow
	})
}

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Fatal(args ...any)
	Logf(format string, args ...any)
}

// observation has what a watcher saw one program do.
type observation struct {
	changed []string // what it wrote or deleted, or tried to
	ran     []string // paths of the programs it executed
	opened  []string // connections
	read    []string // files of the user's that it opened outside the workspace
	judged  []string // what it may execute; nil: what cmdline lists
}

// violation returns the first thing that a program did and may not do, or "".
func (s observation) violation(text string) string {
	if s.judged == nil {
		for _, c := range cmdline.Parse(text).Commands {
			s.judged = append(s.judged, filepath.Base(c.Name))
		}
	}
	if slices.Contains(s.judged, "egrep") || slices.Contains(s.judged, "fgrep") {
		s.judged = append(s.judged, "grep") // which they are other names of
	}
	for _, path := range s.ran {
		dir, name := filepath.Split(path)
		if !slices.Contains(s.judged, name) {
			return "runs " + path + ", which nobody judged"
		}
		if !slices.Contains(systemDirs(), filepath.Clean(dir)) && !strings.HasSuffix(dir, "/git-core/") {
			return "runs " + path + ", which is not the system's"
		}
	}
	switch {
	case len(s.changed) > 0:
		return "changes something: " + s.changed[0]
	case len(s.opened) > 0:
		return "opens the network: " + s.opened[0]
	case len(s.read) > 0:
		return "reads outside the workspace: " + s.read[0]
	}
	return ""
}

func systemDirs() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/homebrew/bin"}
}

// world is a workspace full of temptations.
type world struct {
	dir  string
	away string // a folder outside of it, to which links lead
	port int
	env  []string
}

// newWorld makes a git repository with traps: programs with names of others, files that look like
// options, a repository whose configuration runs programs and, if evil, a submodule with such a
// configuration.
func newWorld(t *testing.T, evil bool) *world {
	t.Helper()
	needs.Long(t)
	needs.Git(t)
	needs.Program(t, "bash", "bash")
	const trap = "#!/bin/sh\necho pwned\n: >\"${0%/*}/pwned\"\n"
	big := strings.Repeat("some lines to be sorted\nwhich are many\n", 20_000)
	dir := makeFiles(t, map[string]string{
		"a.txt": "a\nb\n", "b.txt": "b\nfoo\n", "sub/c.go": "package c // foo\n", "data.json": `{"a": [1]}`, "list": "./x.sh\n--output=pwn\n", "big.txt": big, "magic": "0 string x y\n", "zip.gz": "\x1f\x8b\x08",
		"x.sh": trap, "ls": trap, "cat": trap, "nothing": trap, "3/ls": trap, "3/nothing": trap, "3/cat": trap, "pr": trap, "gpg": trap, "-x": "x\n",
		"opts/-o": "", "opts/--output=pwn": "", "opts/--pre=x.sh": "", "opts/-exec": "", ".gitattributes": "*.txt filter=evil diff=evil\n",
	})
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: dir}
	home := t.TempDir()
	w.env = []string{"PATH=" + strings.Join(systemDirs(), ":"), "HOME=" + home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1"}
	for _, name := range []string{"x.sh", "ls", "cat", "nothing", "3/ls", "3/nothing", "3/cat", "pr", "gpg"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git := func(in string, args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always", "-C", in}, args...)...)
		cmd.Env = w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	origin := makeFiles(t, map[string]string{"a.txt": "a\n", ".gitattributes": "*.txt filter=evil diff=evil\n"})
	git(origin, "init", "-q", "-b", "main")
	git(origin, "add", "-A")
	git(origin, "commit", "-qm", "one")
	git(dir, "init", "-q", "-b", "main")
	git(dir, "submodule", "--quiet", "add", origin, "subm")
	git(dir, "config", "-f", ".gitmodules", "submodule.subm.ignore", "none")
	git(dir, "add", "a.txt", "b.txt", "sub", "data.json", ".gitattributes", ".gitmodules")
	git(dir, "commit", "-qm", "one")
	git(dir, "checkout", "-qb", "other")
	write("b.txt", "b\nother\n")
	git(dir, "commit", "-qam", "other")
	git(dir, "checkout", "-q", "main")
	write("b.txt", "b\nmain\n")
	git(dir, "commit", "-qam", "main")
	git(dir, "-c", "merge.conflictStyle=merge", "merge", "-q", "-s", "ours", "-m", "merged", "other")
	git(dir, "tag", "v1")
	write("b.txt", "b\nfoo\n")
	git(dir, "stash")
	// The file has the same contents but another time, which git would write to its index.
	if err := os.Chtimes(filepath.Join(dir, "a.txt"), time.Unix(1_700_000_000, 0), time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	write("b.txt", "b\nchanged\n")
	programs := "[core]\n\tfsmonitor = " + dir + "/x.sh\n\tpager = " + dir + "/x.sh\n[diff]\n\texternal = " + dir + "/x.sh\n[diff \"evil\"]\n\ttextconv = " + dir + "/x.sh\n[filter \"evil\"]\n\tclean = " + dir + "/x.sh\n"
	if evil {
		config := filepath.Join(dir, ".git", "modules", "subm", "config")
		data, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		write(".git/modules/subm/config", string(data)+programs)
	}
	write("subm/a.txt", "b\n") // as long as it was: git has to read it
	if err := os.Mkdir(filepath.Join(dir, "evil"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(dir+"/evil", "init", "-q")
	write("evil/.git/config", "[core]\n\trepositoryformatversion = 0\n"+programs)
	write("evil/a.txt", "a\n")

	if w.away, err = filepath.EvalSymlinks(makeFiles(t, map[string]string{"key": "secret foo\n", "dir/key": "secret foo\n", "a.txt": "secret foo\n"})); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out": w.away + "/dir", "sub/key": w.away + "/key", "sub/back": dir} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if w.port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	return w
}

// watcher returns a function that runs programs and reports what each did. It uses strace if that
// works here, and logs which way it uses.
func (w *world) watcher(t *testing.T) func(failer, []string) []observation {
	t.Helper()
	if strace := straceWorks(t); strace != "" {
		t.Logf("watched with %s: every system call that writes, deletes, executes or connects", strace)
		return func(f failer, texts []string) []observation { return w.runTraced(f, strace, texts) }
	}
	t.Log("WATCHED LESS WELL: by comparing files and with logging programs, since strace is missing or may not trace (apt-get install strace)")
	bin, where := loggers(t)
	return func(f failer, texts []string) []observation { return w.runCompared(f, bin, where, texts) }
}
