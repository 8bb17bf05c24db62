package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
)

// judgedTool runs calls of a tool as the policy decided about them.
type judgedTool struct {
	d    *Daemon
	tool tools.Tool
	root string
}

// run runs a command as the policy decided or, with approved, as a user who approved it. allowed reports
// whether the command ran.
func (j judgedTool) run(t *testing.T, command string, approved bool) (out string, allowed bool) {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	call := tools.Call{ID: "c", ChatID: "chat", Agent: "code", Roots: []string{j.root}, Arguments: raw}
	plan, err := j.tool.Plan(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	v := j.d.current().policy.Judge(call, j.tool.Spec(), plan)
	if v.Decision != tools.Allow && !approved {
		return "", false
	}
	call.Printed, call.Authorization = v.Printed, tools.Authorization{Rule: v.Rule, Approved: approved}
	res, err := j.tool.Run(t.Context(), call, nil)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.Join(res.Outputs, "\n"), true
}

func newJudgedTool(t *testing.T) judgedTool {
	t.Helper()
	_, dir := newIsolated(t)
	root := repositories(t, dir)["clone"]
	home := filepath.Join(dir, "home")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{
		Getenv: func(name string) string { return map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}[name] },
		Environ: func() []string {
			return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "PWD=" + root}
		},
		StateDir: t.TempDir(), CacheDir: t.TempDir(), Supervisor: self,
	})
	t.Cleanup(d.Close)
	d.Configure(json.RawMessage(`{}`), []string{root})
	tool, ok := d.Tools().Lookup("shell_command")
	if !ok {
		t.Fatal("there is no shell_command")
	}
	return judgedTool{d, tool, root}
}

// A reading command that runs without asking prints the same as with the user's rights, although only the
// checked programs can start and only the workspace can be read.
func TestUnaskedReadsPrintTheSame(t *testing.T) {
	needs.Long(t)
	j := newJudgedTool(t)
	write(t, filepath.Join(j.root, "b.txt"), "one\ntwo\n")
	write(t, filepath.Join(j.root, "b.gz"), "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\xe0\x02\x00\x1f\x08\xea\x46\x02\x00\x00\x00")
	for _, command := range []string{
		"cat a.txt b.txt", "ls -la a.txt b.txt", "git log --oneline", "git status --short", "git diff HEAD", "git stash list", "git branch -a", "git blame a.txt", "git show HEAD --stat", "git ls-files | sort", "git grep -n text",
		"grep -rn two b.txt", "egrep 'o|w' b.txt", "rg -n two b.txt", "find . -name 'b.txt' -exec cat {} +", "printf 'b.txt' | xargs cat", "find . -name b.txt -exec grep -n two {} \\; -print", "rg -l two b.txt | xargs wc -l", "zcat b.gz", "hexdump -C b.txt", "set -euo pipefail; cat b.txt | head -1", "git config --get remote.origin.url", "env cat b.txt", "timeout 20 cat b.txt", "nice cat b.txt", "head -1 b.txt | tr a-z A-Z",
		"sort -r b.txt", "wc -l b.txt", "sed -n 1p b.txt", "awk '{print $1}' b.txt", "diff a.txt b.txt", "file b.txt", "stat -c %s b.txt", "od -c b.txt", "jq -n 1", "pwd", "echo hi", "which cat", "cat nothere; ls nothere", "cd sub && ls", "for f in *.txt; do cat \"$f\"; done",
	} {
		mine, _ := j.run(t, command, true)
		got, allowed := j.run(t, command, false)
		if !allowed {
			t.Logf("%s: asks", command)
			continue
		}
		if got != mine {
			t.Errorf("%s: unasked:\n%s\nwith the user's rights:\n%s", command, got, mine)
		}
	}
}

// File names that a reading command gets from another command do not make it read outside the workspace.
func TestNamesFromOthersReadNothingElse(t *testing.T) {
	j := newJudgedTool(t)
	secret := filepath.Join(j.root, "..", "home", "secret")
	write(t, secret, "hidden\n")
	if err := os.Symlink(secret, filepath.Join(j.root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"find . -name link -exec cat {} +", `find . -exec grep -s hidden {} \;`, "echo ../home/secret | xargs cat", "echo -R hidden .. | xargs grep", "echo --files0-from=../home/secret | xargs wc"} {
		out, allowed := j.run(t, command, false)
		if !allowed {
			t.Errorf("%s: needs approval", command)
		}
		if strings.Contains(out, "hidden\n") {
			t.Errorf("%s: %s", command, out)
		}
	}
}

// If a reading command runs without asking, the sandbox lets only the checked programs start, and only
// the workspace be read, even if the check of the text had been wrong.
func TestUnaskedReadsStartNothingElse(t *testing.T) {
	j := newJudgedTool(t)
	call := tools.Call{Roots: []string{j.root}, Authorization: tools.Authorization{Rule: "sandbox.reads"}}
	if p := j.d.bounds.Call(j.d.Config(), call); p.Read == nil || slices.Contains(p.Read, "/") || slices.Contains(p.Read, filepath.Dir(j.root)) {
		t.Errorf("reads %v", p.Read)
	}
	// The texts below were not checked, as if the check had missed these programs.
	raw, _ := json.Marshal(map[string]string{"command": "cat a.txt; tac a.txt"})
	for _, text := range []string{"tac a.txt", "/usr/bin/tac a.txt", "/bin/sh -c 'echo text'", "python3 -c 'print(\"text\")'", "cat ../home/secret"} {
		write(t, filepath.Join(j.root, "..", "home", "secret"), "text\n")
		call := tools.Call{ID: "c", ChatID: "chat", Roots: []string{j.root}, Arguments: raw, Authorization: tools.Authorization{Rule: "sandbox.reads"}, Printed: &tools.Printed{Text: text, Programs: []tools.NamedProgram{}, Execute: []string{"/usr/bin/cat"}}}
		res, err := j.tool.Run(t.Context(), call, nil)
		if err != nil {
			t.Fatal(err)
		}
		if out := strings.Join(res.Outputs, "\n"); strings.Contains(out, "Stdout:") {
			t.Errorf("%s: %s", text, out)
		}
	}
}
