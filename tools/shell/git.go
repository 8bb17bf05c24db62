package shell

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed git.md
var gitDoc string

const gitTimeout = 120 * time.Second

type gitArgs struct {
	Command   string `json:"command" jsonschema:"The git or gh command to execute."`
	Operation string `json:"operation" jsonschema:"The git operation being performed."`
	Summary   string `json:"summary,omitempty" jsonschema:"A few words for the user: what this does."`
}

// git returns the tool git (eca-features.md 17).
func (o Options) git() tools.Tool {
	return tools.Definition[gitArgs]{
		Name: "git", Description: gitDoc, Preparing: "Preparing git", PrimaryOnly: true,
		Enums: map[string][]string{"operation": {
			"status", "diff", "log", "add", "commit", "push", "branch", "checkout", "merge", "rebase", "stash", "pr_create", "pr_view", "pr_comment", "gh",
		}},
		Plan: func(_ context.Context, call tools.Call, a gitArgs) (tools.Plan, error) {
			program := o.parse(a.Command)
			if err := onlyGit(cmdline.Parse(a.Command)); err != nil {
				return tools.Plan{}, err
			}
			dir, err := workingDir(call.Roots, "")
			if err != nil {
				return tools.Plan{}, err
			}
			plan := tools.Plan{Summary: o.summary(a.Command, call.Roots), Paths: []string{dir}, Command: o.command(a.Command, dir, program)}
			if s := strings.Join(strings.Fields(a.Summary), " "); s != "" {
				plan.Summary = s + ": " + plan.Summary // the model's text never replaces the command
			}
			if commands := describeCommands(program); len(commands) > 0 {
				plan.Details = &event.Details{ShellCommand: &event.ShellCommand{Commands: commands}}
			}
			return plan, nil
		},
		Run: func(ctx context.Context, call tools.Call, a gitArgs, out tools.Sink) (tools.Result, error) {
			if err := onlyGit(cmdline.Parse(a.Command)); err != nil {
				return tools.Result{}, err
			}
			dir, err := workingDir(call.Roots, "")
			if err != nil {
				return tools.Result{}, err
			}
			return o.execute(ctx, call, execution{program: o.parse(a.Command), dir: dir, timeout: gitTimeout, prepare: func(call tools.Call) (proc.Spec, error) {
				spec, err := o.prepare(call, a.Command, dir)
				// No user can answer a prompt: programs must fail or continue immediately.
				spec.Env = append(spec.Env, "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_PAGER=cat", "GH_PROMPT_DISABLED=1", "GH_PAGER=cat")
				return spec, err
			}}, out)
		},
	}.Build()
}

// onlyGit returns an error for a line that runs programs other than git, gh and those of allowedWithGit,
// because a rule that allows this tool is meant to allow only git. The policy judges the programs that
// git itself runs.
func onlyGit(p cmdline.Program) error {
	switch {
	case p.Unresolved != "":
		return errors.New("INVALID_ARGS: the tool git runs git and gh only; use shell_command for other shell code: " + p.Unresolved)
	case len(p.Writes) > 0:
		return errors.New("INVALID_ARGS: the tool git reads and writes no files by redirection; use shell_command")
	}
	git := false
	for _, c := range p.Commands {
		switch {
		case slices.ContainsFunc(c.Demands, func(d string) bool { return strings.HasSuffix(d, "=") }):
			return errors.New("INVALID_ARGS: the tool git sets no variables; use shell_command")
		case c.Name == "<":
			return errors.New("INVALID_ARGS: the tool git reads and writes no files by redirection; use shell_command")
		case c.Name == "git", c.Name == "gh":
			git = true
		case !slices.Contains(allowedWithGit(), c.Name):
			return fmt.Errorf("INVALID_ARGS: the tool git runs git and gh only, not %q; use shell_command", c.Name)
		}
	}
	if !git {
		return errors.New("INVALID_ARGS: command must be a git or gh command")
	}
	return nil
}

// allowedWithGit returns other programs that a line may run: to change the folder, to shorten output, and to
// write messages. None of them writes files or runs programs.
func allowedWithGit() []string {
	return []string{"cd", "cat", "head", "tail", "wc", "grep", "cut", "echo", "printf", "true"}
}
