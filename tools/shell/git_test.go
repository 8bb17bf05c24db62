package shell

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// gitTool returns the tool git.
func gitTool(t *testing.T) tools.Tool {
	t.Helper()
	tool, ok := tools.NewRegistry(Tools(Options{Children: pool(t), SummaryMax: 35})...).Lookup("git")
	if !ok {
		t.Fatal("no tool git")
	}
	return tool
}

// The tool accepts git and gh commands, also with pipes to programs that only read. It refuses
// commands that start other programs, write files or set variables.
func TestOnlyGit(t *testing.T) {
	tool := gitTool(t)
	for command, ok := range map[string]bool{
		"git status": true, "gh pr view 1 --json body": true, "cd sub && git log --oneline | head -5": true, "git add -A && git commit -m 'a; b'": true,
		"git commit -m \"$(cat <<'EOF'\nA `message` > x\nEOF\n)\"": true, "git status 2>&1 | grep -c x 2>/dev/null": true, "git stash; git checkout main; git stash pop": true,
		"": false, "ls": false, "cd x": false, "echo git": false, "git status; rm x": false, "git status && (rm x)": false, "git log | sh": false,
		"git log $(rm x)": false, "git log `rm x`": false, "git log > x": false, "git log | tee x": false, "GIT_SSH_COMMAND='rm x' git fetch": false,
		"git() { rm x; }; git": false, "alias git=rm; git x": false, "git log <(rm x)": false, "eval git log": false, "sudo git log": false,
		"if git diff; then rm x; fi": false, "$GIT log; git log": false, "export X=1; git log": false, "git 'unclosed": false, "./git log": false, "git log & rm x": false,
	} {
		raw, err := json.Marshal(map[string]any{"command": command, "operation": "log"})
		if err != nil {
			t.Fatal(err)
		}
		call := tools.Call{Roots: []string{t.TempDir()}, Arguments: raw}
		if _, err := tool.Plan(t.Context(), call); (err == nil) != ok {
			t.Errorf("%s: %v", command, err)
		}
		if ok {
			continue
		}
		if _, err := tool.Run(t.Context(), call, nil); err == nil {
			t.Errorf("%s: ran without a plan", command)
		}
	}
}

// reads says whether a plan's command only reads.
func reads(p tools.Plan) bool {
	ok, _ := p.Command.Program.Reads()
	return ok
}

func TestGit(t *testing.T) {
	posix(t)
	tool, root := gitTool(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(command, operation string) (tools.Plan, string, bool) {
		t.Helper()
		raw, _ := json.Marshal(map[string]any{"command": command, "operation": operation, "summary": "Look\nround"})
		call := tools.Call{Roots: []string{root}, Arguments: raw}
		plan, err := tool.Plan(context.Background(), call)
		if err != nil {
			return plan, err.Error(), true
		}
		res, err := tool.Run(context.Background(), call, nil)
		if err != nil {
			return plan, err.Error(), true
		}
		return plan, strings.Join(res.Outputs, "|"), res.Failed
	}
	if plan, got, failed := run("cd "+root+" && git init -q && git add .", "add"); failed || reads(plan) {
		t.Errorf("init: %s, %+v", got, plan)
	}
	plan, got, failed := run("git status --short", "status")
	if failed || got != "Exit code: 0|Stdout:\nA  a.txt" || !reads(plan) || plan.Summary != "Look round: $ git status --short" || plan.Details.ShellCommand.Commands[0].Key != "git status" {
		t.Errorf("status: %s, %+v", got, plan)
	}
	// Without a message git would open an editor; it must not wait for one.
	if _, got, failed := run("git -c user.name=n -c user.email=e commit", "commit"); !failed || !strings.Contains(got, "empty commit message") {
		t.Errorf("commit: %s", got)
	}
	if _, got, failed := run("git status", "look"); !failed || !strings.HasPrefix(got, "INVALID_ARGS") {
		t.Errorf("an operation that does not exist: %s", got)
	}
}

// A git command that only reads does not run the file system monitor that the repository configures.
func TestGitStartsNothing(t *testing.T) {
	posix(t)
	tool, root := gitTool(t), t.TempDir()
	mark := filepath.Join(t.TempDir(), "ran")
	run := func(command string) bool {
		t.Helper()
		raw, _ := json.Marshal(map[string]any{"command": command, "operation": "status", "summary": "Look"})
		res, err := tool.Run(t.Context(), tools.Call{Roots: []string{root}, Arguments: raw}, nil)
		return err == nil && !res.Failed
	}
	for name, text := range map[string]string{"a.txt": "a\n", "evil": "#!/bin/sh\ntouch " + mark + "\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil { //nolint:gosec // it has to be executable
			t.Fatal(err)
		}
	}
	if !run("git init -q && git config core.fsmonitor ./evil") || !run("git status") {
		t.Fatal("git does not run")
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the repository's monitor ran")
	}
	// A git command that may write runs the monitor, so the check above would detect it.
	if !run("git add a.txt") {
		t.Fatal("git add failed")
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error("the monitor cannot run at all")
	}
}
