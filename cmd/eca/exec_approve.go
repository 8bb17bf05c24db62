package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/fs"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

// Values of --approve.
const (
	approveAsk       = "ask"
	approveAutoEdit  = "auto-edit"
	approveWorkspace = "workspace" // commands are decided by the policy; see unaskedMode
	approveAll       = "all"
	approveNone      = "none"
)

// decision is the outcome for a call that needs approval.
type decision struct {
	approve bool
	auto    bool        // the user did not see the call, so it stays in the sandbox
	save    tools.Scope // how long the approval is remembered
	unasked bool        // no user was asked
	why     string      // why the call is refused
}

// unaskedMode returns the value for toolCall.unasked that --approve implies, or "" if it implies none.
func (f execFlags) unaskedMode() string {
	if f.approve == approveWorkspace {
		return config.UnaskedWorkspace
	}
	return ""
}

// decide applies --approve to a call that needs approval, and asks the user if necessary.
func (c *execClient) decide(ctx context.Context, call pendingCall) decision {
	switch c.flags.approve {
	case approveAll:
		// The sandbox would be useless if a model could leave it without a question.
		if !call.leavesSandbox() {
			return decision{approve: true, auto: true}
		}
	case approveNone:
		return decision{unasked: true, why: "--approve none refuses all calls that need approval"}
	case approveAutoEdit, approveWorkspace:
		if c.editsHere(call) {
			return decision{approve: true}
		}
	}
	return c.ask(ctx, call)
}

// maxRepeats is how often a question is repeated after an invalid answer.
const maxRepeats = 3

// ask asks the user about a call. Without an answer, the call does not run.
func (c *execClient) ask(ctx context.Context, call pendingCall) decision {
	question := call.question()
	for range 1 + maxRepeats {
		line, asked := askTerminal(ctx, question)
		save, remember := map[string]tools.Scope{"s": tools.ForSession, "w": tools.ForWorkspace, "g": tools.Everywhere}[line]
		switch why := call.Permission.NotRemembered; {
		case !asked:
			c.recordRemedies(ctx, call)
			return decision{unasked: true, why: "there is no terminal for the question" + call.approvalReason()}
		case isYes(line):
			return decision{approve: true}
		case line == "" || line == "n" || line == "no":
			return decision{why: refusedByUser}
		case remember && why == "":
			return decision{approve: true, save: save}
		case remember:
			question = why
		default:
			question = fmt.Sprintf("%q is not one of the answers", line)
		}
		question = visible.Text(question) + ": y allows this call once, n or Enter refuses it\n" + call.prompt()
	}
	return decision{why: refusedByUser}
}

// refusedByUser is the reason for a call that the user refused.
const refusedByUser = "the user refused it"

// editsHere reports whether a call changes or moves an unprotected file in the working directory, and no
// hook requires approval.
func (c *execClient) editsHere(call pendingCall) bool {
	if rule := call.Permission.Rule; rule == permission.RuleProtected || rule == tools.RuleHook {
		return false
	}
	if paths, ok := fs.MovedPaths(call.Server, call.Name, call.Args, c.cwd.Roots()); ok {
		return c.cwd.Contains(paths[0]) && c.cwd.Contains(paths[1])
	}
	return call.Details.Type == "fileChange" && c.cwd.Contains(call.Details.Path)
}

// Other entries of execNeeds.options.
const (
	allowByRule = "rule" // toolCall.approval.allow
	changeRule  = "ask"  // toolCall.approval.ask
	changeHook  = "hook"
)

// recordRemedies records the options that would have allowed a call that was refused for lack of a
// terminal.
func (c *execClient) recordRemedies(ctx context.Context, call pendingCall) {
	if call.leavesSandbox() {
		c.needed.outside = true
		return
	}
	options := []string{approveAll}
	byHook := call.Permission.Rule == tools.RuleHook // neither a rule nor the policy of --approve workspace overrules a hook
	if c.editsHere(call) {
		options = append(options, approveAutoEdit, approveWorkspace)
	} else if !byHook && c.runsInSandbox(ctx, call) {
		options = append(options, approveWorkspace)
	}
	switch rule := call.Permission.Rule; {
	case byHook:
		options = append(options, changeHook)
	case permission.IsAskRule(rule):
		options = append(options, changeRule)
	case !permission.AsksAgain(rule) && rule != permission.RuleOutside: // these rules take precedence over rules that allow
		options = append(options, allowByRule)
	}
	for _, option := range options {
		c.needed.options[option] = true
	}
	c.needed.commands = c.needed.commands || call.isCommand() && !byHook
}

// runsInSandbox reports whether a call is a command that --approve workspace lets run.
func (c *execClient) runsInSandbox(ctx context.Context, call pendingCall) bool {
	var args struct{ Command string }
	if !call.isCommand() || json.Unmarshal(call.Args, &args) != nil {
		return false
	}
	agent := c.daemon.Config().AgentOrDefault(c.flags.agent)
	e, err := c.daemon.ExplainCommand(ctx, daemon.CommandQuestion{Command: args.Command, Agent: agent, Unasked: config.UnaskedWorkspace})
	return err == nil && e.Verdict.Decision == tools.Allow
}

// remedies lists what the user can do about calls that did not run, or were restricted. c.mu is
// held.
func (c *execClient) remedies() []string {
	var out []string
	var options []string
	everything := "everything; commands stay in the sandbox"
	if why := c.daemon.SandboxUnavailable(); why != "" {
		everything = "everything; commands run with all your rights, since " + why
	}
	for _, option := range []struct{ name, text string }{
		{approveAutoEdit, "--approve auto-edit (changes of files in this directory)"},
		{approveWorkspace, "--approve workspace (also commands, in the sandbox of this directory)"},
		{approveAll, "--approve all (" + everything + ")"},
		{allowByRule, "a rule in toolCall.approval.allow of the configuration (calls like these)"},
		{changeRule, "a change of the rule in toolCall.approval.ask, which comes before rules that allow"},
		{changeHook, "a change of the hook that requires approval"},
	} {
		if c.needed.options[option.name] {
			options = append(options, option.text)
		}
	}
	if options != nil {
		text := "Tool calls were not run, since there is no terminal for the question. Allow them with " + strings.Join(options, ", or ") + "."
		if c.needed.commands {
			text += " `" + c.explainCommandLine() + " COMMAND` explains why a command needs approval."
		}
		out = append(out, text)
	}
	if c.needed.outside {
		out = append(out, "A command that needs to run outside the sandbox was not run, because there is no terminal for the question.")
	}
	stopped := len(c.sandboxStops.descriptions) > 0
	if stopped && !c.flags.takesQuestions() {
		out = append(out, c.sandboxStops.remedy())
	}
	if stopped || c.needed.outside {
		out = append(out, `To run commands outside the sandbox, approve them on a terminal, or set "toolCall": {"sandbox": "off"} in the configuration.`)
	}
	return out
}

// explainCommandLine returns the command line that explains decisions as this run made them.
func (c *execClient) explainCommandLine() string {
	line := "eca permission explain"
	if c.configFile != "" {
		line += " --config-file " + visible.Argument(c.configFile)
	}
	if c.flags.agent != "" {
		line += " --agent " + visible.Argument(c.flags.agent)
	}
	if mode := c.flags.unaskedMode(); mode != "" {
		line += " --unasked " + mode
	}
	return line
}

// isCommand reports whether the call is a shell command.
func (r pendingCall) isCommand() bool { return r.Server == tools.Native && r.Name == "shell_command" }

// approvalReason returns the reason why the call needs approval, or "" if it is unknown.
func (r pendingCall) approvalReason() string {
	if r.Permission.Reason == "" {
		return ""
	}
	return " (asked because: " + printable(r.Permission.Reason) + ")"
}

// leavesSandbox reports whether the call is a command that wants to run outside the sandbox.
func (r pendingCall) leavesSandbox() bool {
	var args struct{ Outside string }
	return r.Server == tools.Native && json.Unmarshal(r.Args, &args) == nil && strings.TrimSpace(args.Outside) != ""
}

// keys returns the approval keys of the commands in a shell line that are not remembered yet.
func (r pendingCall) keys() []string {
	var out []string
	for _, c := range r.Details.Commands {
		if c.ApprovalKey != "" && !c.Remembered && !slices.Contains(out, c.ApprovalKey) {
			out = append(out, c.ApprovalKey)
		}
	}
	return out
}

// question returns the question to the user about a call.
func (r pendingCall) question() string {
	text := fmt.Sprintf("\n%s wants to run:\n  %s\n", r.Name, r.Summary)
	if r.Details.Diff == "" {
		text += r.arguments()
	}
	text = strings.ReplaceAll(text, "\r", `\u000d`) // a part of the command, and not the end of a line
	if r.Details.Diff != "" {
		text += r.Details.Diff + "\n"
	}
	if r.Permission.Reason != "" {
		text += "Asked because: " + r.Permission.Reason + "\n"
	}
	if keys := r.keys(); r.Permission.NotRemembered != "" {
		text += r.Permission.NotRemembered + ".\n"
	} else if keys != nil {
		text += "To be remembered with s, w or g: " + strings.Join(keys, ", ") + "\n"
	}
	return visible.Text(text) + r.prompt()
}

// prompt returns the prompt with the possible answers.
func (r pendingCall) prompt() string {
	if r.Permission.NotRemembered != "" {
		return "Allow? [y/N] "
	}
	return "y: once  s: until eca ends  w: always in this workspace  g: always, everywhere\nAllow? [y/s/w/g/N] "
}

// arguments lists the arguments that the summary does not show.
func (r pendingCall) arguments() string {
	var args map[string]json.RawMessage
	if json.Unmarshal(r.Args, &args) != nil {
		return "  " + string(r.Args) + "\n"
	}
	out := ""
	for _, name := range slices.Sorted(maps.Keys(args)) {
		value, text := string(args[name]), ""
		if json.Unmarshal(args[name], &text) == nil {
			value = text
		}
		if shown := strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n    "); !strings.Contains(r.Summary, shown) {
			out += "  " + name + ": " + shown + "\n"
		}
	}
	return out
}
