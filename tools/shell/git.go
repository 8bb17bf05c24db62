package shell

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-dec29ce4/eca/chat/event"
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

// git returns the tool git (eca-features 17).
func (o Options) git() tools.Tool {
	return tools.Definition[gitArgs]{
		Name: "git", Description: gitDoc, Preparing: "Preparing git", PrimaryOnly: true,
		Enums: map[string][]string{"operation": {
			"status", "diff", "log", "add", "commit", "push", "branch", "checkout", "merge", "rebase", "stash", "pr_create", "pr_view", "pr_comment", "gh",
		}},
		Plan: func(_ context.Context, call tools.Call, a gitArgs) (tools.Plan, error) {
			if err := onlyGit(a.Command); err != nil {
				return tools.Plan{}, err
			}
			dir, err := workingDir(call.Roots, "")
			if err != nil {
				return tools.Plan{}, err
			}
			plan := tools.Plan{Summary: o.summary(a.Command, call.Roots), Paths: []string{dir}}
			if s := strings.Join(strings.Fields(a.Summary), " "); s != "" {
				plan.Summary = s + ": " + plan.Summary // the model's words never stand for the command
			}
			if commands, ok := Parse(a.Command); ok {
				plan.ReadOnly = reads(commands)
				plan.Details = &event.Details{ShellCommand: &event.ShellCommand{Commands: commands}}
			}
			return plan, nil
		},
		Run: func(ctx context.Context, call tools.Call, a gitArgs, out tools.Sink) (tools.Result, error) {
			if err := onlyGit(a.Command); err != nil {
				return tools.Result{}, err
			}
			dir, err := workingDir(call.Roots, "")
			if err != nil {
				return tools.Result{}, err
			}
			spec := o.line(a.Command, dir)
			// Nobody is there to answer: what would ask has to fail, or go on, at once.
			spec.Env = append(spec.Env, "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_PAGER=cat", "GH_PROMPT_DISABLED=1", "GH_PAGER=cat")
			return execute(ctx, spec, gitTimeout, out)
		},
	}.Build()
}

// onlyGit refuses lines that do more than call git and gh: who allows this tool allows
// those. What git itself runs is the policy's business.
func onlyGit(line string) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return fmt.Errorf("INVALID_ARGS: command: %w", err)
	}
	var wrong error
	git := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if wrong != nil {
			return false
		}
		switch n := n.(type) {
		case *syntax.CallExpr:
			var called bool
			called, wrong = gitCall(n)
			git = git || called
		case *syntax.Redirect:
			if n.Hdoc == nil && !harmless(n) {
				wrong = errors.New("INVALID_ARGS: the tool git reads and writes no files by redirection; use shell_command")
			}
		case *syntax.FuncDecl, *syntax.DeclClause, *syntax.LetClause, *syntax.ProcSubst, *syntax.CoprocClause:
			wrong = errors.New("INVALID_ARGS: the tool git runs git and gh only; use shell_command for other shell code")
		}
		return wrong == nil
	})
	if wrong == nil && !git {
		wrong = errors.New("INVALID_ARGS: command must be a git or gh command")
	}
	return wrong
}

// gitCall looks at one simple command of a line.
func gitCall(c *syntax.CallExpr) (git bool, err error) {
	if len(c.Assigns) > 0 {
		return false, errors.New("INVALID_ARGS: the tool git sets no variables; use shell_command")
	}
	if len(c.Args) == 0 {
		return false, nil
	}
	name, _ := literal(c.Args[0])
	switch {
	case name == "git", name == "gh":
		return true, nil
	case slices.Contains(besideGit(), name):
		return false, nil
	}
	return false, fmt.Errorf("INVALID_ARGS: the tool git runs git and gh only, not %q; use shell_command", name)
}

// besideGit may stand in a line of git: where to go, and what shortens output or makes
// messages. None of them writes or runs anything.
func besideGit() []string {
	return []string{"cd", "cat", "head", "tail", "wc", "grep", "cut", "echo", "printf", "true"}
}
