// Package shell has the native tools shell_command, git, and bg_job with its background
// jobs, and makes the tools that users configure (eca-features.md, section 17).
//
// A command runs in bash (or sh, or PowerShell on Windows, or the configured shell), in its own process
// group. When it ends, times out or is stopped, no process of its group is left. Output is captured up
// to a limit: the end of it, or the beginning for a background command. If a command times out, its
// output is part of the result.
//
// The package parses commands for the policy and to describe them (parse.go). The policy decides
// whether they may run.
package shell

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/heldback"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed shell_command.md
var shellCommandDoc string

const (
	defaultTimeout = 60 * time.Second
	maxTimeout     = 600 * time.Second
	maxOutput      = 1 << 20 // bytes kept of each of stdout and stderr
)

// Options configure the tools of this package.
type Options struct {
	Path       string          // shell to run; empty: bash -c, else sh -c, or PowerShell on Windows
	Args       []string        // arguments of the shell before the command
	SummaryMax int             // length of the label; toolCall.shellCommand.summaryMaxLength
	Executable string          // path of eca, for ECA_EXECUTABLE in the environment of commands
	Children   *proc.Pool      // starts commands; nil: without a supervisor
	Jobs       *Jobs           // background commands
	Parser     *cmdline.Parser // parses commands; nil: a new one for each

	Getenv func(string) string // reads eca's environment, for git settings that must be made harmless

	// Sandbox returns the restrictions for the command of a call; nil means none.
	Sandbox func(tools.Call) sandbox.Policy

	// Bash is the copy of bash that runs commands without the user's approval.
	Bash *Bash

	// Network makes spec run the command of a call in the network of its chat, and lets it connect to
	// addresses through a proxy. If Network is nil or returns nil, spec stays as it is.
	Network func(call tools.Call, spec *proc.Spec, addresses []string) *Connection
	// HeldBack moves away protected places that a sandboxed command has created; nil leaves them.
	HeldBack *heldback.Store
	// Ask asks the user and returns the label of the answer; empty if there is no answer. If it is nil,
	// the user is not asked.
	Ask func(ctx context.Context, call tools.Call, question string, choices []Choice) string
	// Memory keeps the user's answers about the sandbox; nil keeps nothing.
	Memory Memory

	// Environ returns the environment for the command of a call. If it is nil or returns nil, the
	// command gets the environment of eca.
	Environ func(tools.Call) []string
}

// setSandbox sets the sandbox and the environment for the command of a call.
func (o Options) setSandbox(spec *proc.Spec, call tools.Call) {
	if o.Sandbox != nil {
		spec.Sandbox = o.Sandbox(call)
	}
	if o.Environ != nil {
		spec.Environ = o.Environ(call)
	}
}

type shellArgs struct {
	Command    string `json:"command" jsonschema:"The shell command to execute."`
	WorkingDir string `json:"working_directory,omitempty" jsonschema:"The absolute path of the directory to run it in (default: the first workspace folder)."`
	Timeout    int    `json:"timeout,omitempty" jsonschema:"Milliseconds until the command is killed (default: 60000, at most 600000)."`
	Background string `json:"background,omitempty" jsonschema:"Set to a short label to run the command in the background, for servers and watchers. It returns at once."`
	Outside    string `json:"outside,omitempty" jsonschema:"Only after the sandbox stopped this command: why it has to run outside the sandbox. The user is asked each time."`
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	return []tools.Tool{o.shellCommand(), o.git(), o.Jobs.bgJob()}
}

func (o Options) shellCommand() tools.Tool {
	return tools.Definition[shellArgs]{
		Name: "shell_command", Description: shellCommandDoc, Preparing: "Preparing shell command",
		Plan: func(_ context.Context, call tools.Call, a shellArgs) (tools.Plan, error) {
			dir, err := workingDir(call.Roots, a.WorkingDir)
			if err != nil {
				return tools.Plan{}, err
			}
			plan := tools.Plan{Summary: o.summary(a.Command, call.Roots), Paths: []string{dir}}
			program := o.parse(a.Command)
			plan.Command = o.command(a.Command, dir, program)
			plan.Command.Background, plan.Command.Outside = a.Background != "", strings.TrimSpace(a.Outside)
			if plan.Command.Outside != "" {
				plan.Summary += " (outside the sandbox)"
			}
			if commands := describeCommands(program); len(commands) > 0 || a.Background != "" {
				if commands == nil {
					commands = []event.Command{}
				}
				plan.Details = &event.Details{ShellCommand: &event.ShellCommand{Commands: commands, Background: a.Background != ""}}
			}
			return plan, nil
		},
		Run: o.run,
	}.Build()
}

// Check runs a command that only exits, to find out whether commands can start. path is the shell.
func (o Options) Check(ctx context.Context) (path string, err error) {
	path, args := o.shell()
	const code = 7
	exit, err := o.Children.Run(ctx, proc.Spec{Path: path, Args: append(args, fmt.Sprintf("exit %d", code))})
	if err == nil && exit.Code != code {
		err = fmt.Errorf("a command ended with %d instead of %d", exit.Code, code)
	}
	return path, err
}

func (o Options) run(ctx context.Context, call tools.Call, a shellArgs, out tools.Sink) (tools.Result, error) {
	dir, err := workingDir(call.Roots, a.WorkingDir)
	if err != nil {
		return tools.Result{}, err
	}
	prepare := func(call tools.Call) (proc.Spec, error) { return o.prepare(call, a.Command, dir) }
	if a.Background != "" {
		return o.inBackground(ctx, call, a, prepare)
	}
	res, err := o.execute(ctx, call, execution{program: o.parse(a.Command), dir: dir, timeout: a.timeLimit(), prepare: prepare, canAskOutside: true}, out)
	if len(res.Outputs) > 0 && res.Outputs[0] == timeoutMessage(a.timeLimit()) {
		res.Outputs[0] += longerLimitHint(a.timeLimit())
	}
	return res, err
}

// inBackground starts a command that continues after the end of the call.
func (o Options) inBackground(ctx context.Context, call tools.Call, a shellArgs, prepare func(tools.Call) (proc.Spec, error)) (tools.Result, error) {
	spec, err := prepare(call)
	if err != nil {
		return tools.Result{}, err
	}
	resumed := notes(o.HeldBack.Resume(call.Roots)...)
	if err := spec.Sandbox.Prepare(); err != nil {
		return tools.Result{}, err
	}
	search, err := o.recordSearch(spec)
	if err != nil {
		return tools.Result{}, err
	}
	connection := &Connection{Children: o.Children, Refused: func() (unlisted, private []string) { return nil, nil }, Close: func() {}}
	if o.Network != nil {
		connection = cmp.Or(o.Network(call, &spec, nil), connection)
	}
	res, err := o.Jobs.start(ctx, connection.Children, tools.Job{
		Label: strings.Join(strings.Fields(a.Background), " "), Summary: o.summary(a.Command, call.Roots),
		Command: strings.Join(strings.Fields(a.Command), " "), ChatID: call.ChatID, CallID: call.ID,
	}, spec, func() string {
		defer connection.Close()
		note := notes(search.Finish())
		if unlisted, private := connection.Refused(); len(unlisted)+len(private) > 0 {
			note = strings.TrimPrefix(note+"\n[sandbox: connection to "+strings.Join(append(unlisted, private...), ", ")+" refused (toolCall.sandboxHosts)]", "\n")
		}
		return note
	})
	if err != nil {
		search.Cancel() // has no effect after Finish
		connection.Close()
	} else if resumed != "" {
		res.Outputs = append(res.Outputs, resumed)
	}
	return res, err
}

// timeLimit returns the time limit of the command.
func (a shellArgs) timeLimit() time.Duration {
	if a.Timeout <= 0 {
		return defaultTimeout
	}
	return time.Duration(min(a.Timeout, int(maxTimeout.Milliseconds()))) * time.Millisecond
}

// processFor returns the process that runs a command line in a folder.
func (o Options) processFor(command, dir string) proc.Spec {
	path, args := o.shell()
	spec := proc.Spec{Path: path, Args: append(args, command), Dir: dir, Env: []string{"ECA_EXECUTABLE=" + o.Executable}}
	if reads, _ := o.parse(command).Reads(); reads { // it may run without asking the user
		spec.Env = append(spec.Env, harmlessGit(o.Getenv)...)
	}
	return spec
}

// runToEnd runs a command to its end. It returns the result with its output, its exit, and its messages
// (messages): stderr, or stdout if stderr is empty.
func runToEnd(ctx context.Context, children *proc.Pool, spec proc.Spec, timeout time.Duration, out tools.Sink) (res tools.Result, exit proc.Exit, messages string, err error) {
	var stdout, stderr capture
	stdout.sink, stderr.sink = out, out
	spec.Stdout, spec.Stderr = &stdout, &stderr
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if exit, err = children.Run(limited, spec); err != nil {
		return tools.Result{}, exit, "", err
	}
	res = tools.Result{Failed: exit.Code != 0}
	switch {
	case ctx.Err() != nil:
		return tools.Result{}, exit, "", errors.New("the command was stopped")
	case exit.MemoryCause() != "":
		res.Outputs = append(res.Outputs, outOfMemoryMessage(exit))
	case exit.Killed:
		res.Outputs = append(res.Outputs, timeoutMessage(timeout))
	case exit.Code < 0:
		res.Outputs = append(res.Outputs, "The command was killed by a signal, which eca did not send.")
	default:
		res.Outputs = append(res.Outputs, fmt.Sprintf("Exit code: %d", exit.Code))
	}
	if s := stderr.String(); s != "" {
		res.Outputs = append(res.Outputs, "Stderr:\n"+s)
	}
	if s := stdout.String(); s != "" {
		res.Outputs = append(res.Outputs, "Stdout:\n"+s)
	}
	messages = stderr.String()
	if messages == "" { // 2>&1
		messages = stdout.String()
	}
	return res, exit, messages, nil
}

// outOfMemoryMessage returns the message about a command that was killed for lack of memory.
func outOfMemoryMessage(exit proc.Exit) string {
	return "The command ended early: " + exit.MemoryCause() + ". Run fewer jobs at a time (make -j1, go test -p 1), or split the work."
}

func timeoutMessage(timeout time.Duration) string {
	return fmt.Sprintf("The command did not finish within %s and was killed.", timeout)
}

// longerLimitHint tells the model how to give a command more time.
func longerLimitHint(timeout time.Duration) string {
	if timeout >= maxTimeout {
		return " This is the longest limit; set background for a command that takes longer."
	}
	return fmt.Sprintf(" For a longer limit set timeout (milliseconds, at most %d), or set background for a server.", maxTimeout.Milliseconds())
}

func (o Options) shell() (path string, args []string) {
	switch {
	case o.Path != "":
		args = o.Args
		if len(args) == 0 {
			args = []string{"-c"}
		}
		return o.Path, append([]string(nil), args...)
	case runtime.GOOS == "windows":
		return "powershell.exe", []string{"-NoProfile", "-Command"}
	}
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash", []string{"-c"}
	}
	return "sh", []string{"-c"}
}

func workingDir(roots []string, dir string) (string, error) {
	if dir == "" {
		if len(roots) == 0 {
			return os.Getwd()
		}
		return roots[0], nil
	}
	dir = workspace.Abs(roots, dir)
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("working_directory %s does not exist", dir)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("working_directory %s is not a directory", dir)
	}
	return dir, nil
}

// summary returns the label of a command: one line, without the cd to the workspace folder with which
// many models begin.
func (o Options) summary(command string, roots []string) string {
	command = strings.TrimSpace(command)
	for _, root := range roots {
		for _, quoted := range []string{root, `"` + root + `"`, "'" + root + "'"} {
			if rest, ok := strings.CutPrefix(command, "cd "+quoted+" && "); ok {
				command = rest
			}
		}
	}
	command = strings.Join(strings.Fields(command), " ")
	if limit := o.SummaryMax; limit > 0 && utf8.RuneCountInString(command) > limit {
		command = string([]rune(command)[:limit]) + "..."
	}
	return "$ " + command
}

// capture keeps the end of the output of a command.
type capture struct {
	sink tools.Sink

	mu        sync.Mutex // guards the fields below
	buf       []byte
	truncated bool
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.buf = append(c.buf, p...)
	if over := len(c.buf) - 2*maxOutput; over > 0 {
		c.buf = append(c.buf[:0], c.buf[len(c.buf)-maxOutput:]...)
		c.truncated = true
	}
	c.mu.Unlock()
	if c.sink != nil {
		c.sink(string(p))
	}
	return len(p), nil
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.buf
	lost := c.truncated
	if len(b) > maxOutput {
		b, lost = b[len(b)-maxOutput:], true
	}
	s := strings.TrimRight(strings.ToValidUTF8(string(b), "�"), "\n")
	if lost {
		s = tools.BeginningLost + "\n" + s
	}
	return s
}
