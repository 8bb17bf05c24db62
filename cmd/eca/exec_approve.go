package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Values of --approve.
const (
	approveAsk       = "ask"
	approveAutoEdit  = "auto-edit"
	approveWorkspace = "workspace" // about commands, the policy decides
	approveAll       = "all"
	approveNone      = "none"
)

// decision is what becomes of a call that needs approval.
type decision struct {
	approve bool
	auto    bool        // the user did not see the call, so that it stays in the sandbox
	save    tools.Scope // for how long it is remembered
	unasked bool        // nobody was asked
	why     string      // it is refused
}

// unaskedMode is what --approve says of toolCall.unasked; empty if it says nothing.
func (f execFlags) unaskedMode() string {
	if f.approve == approveWorkspace {
		return config.UnaskedWorkspace
	}
	return ""
}

// decide decides about a call that needs approval.
func (c *execClient) decide(ctx context.Context, call toolRun) decision {
	switch c.flags.approve {
	case approveAll:
		// The sandbox would be of no use if a model could leave it unseen.
		if !call.leavesSandbox() {
			return decision{approve: true, auto: true}
		}
	case approveNone:
		return decision{unasked: true, why: "this run approves no calls (--approve none)"}
	case approveAutoEdit, approveWorkspace:
		if c.editsHere(call) {
			return decision{approve: true}
		}
	}
	return c.ask(ctx, call)
}

// repeats is how often a question is repeated after a key that is no answer.
const repeats = 3

// ask asks the user about a call. Only an answer counts; without one the call does not run.
func (c *execClient) ask(ctx context.Context, call toolRun) decision {
	question := call.question(c.cwd)
	for range 1 + repeats {
		line, asked := askTerminal(ctx, question)
		save, remember := map[string]tools.Scope{"s": tools.ForSession, "w": tools.ForWorkspace, "g": tools.Everywhere}[line]
		switch why := call.forgotten(c.cwd); {
		case !asked:
			c.noteUnasked(ctx, call)
			return decision{unasked: true, why: "there is no terminal to ask on"}
		case isYes(line):
			return decision{approve: true}
		case line == "" || line == "n" || line == "no":
			return decision{why: refusedByUser}
		case remember && why == "":
			return decision{approve: true, save: save}
		case remember:
			question = why
		default:
			question = fmt.Sprintf("%q is no answer", line)
		}
		question = visible.Text(question) + ": y allows this call once, n or Enter refuses it\n" + call.prompt(c.cwd)
	}
	return decision{why: refusedByUser}
}

// refusedByUser is why a call did not run that the user was asked about.
const refusedByUser = "the user refused it"

// editsHere says whether a call changes a file of the directory, and none that programs obey.
func (c *execClient) editsHere(call toolRun) bool {
	return call.Details.Type == "fileChange" && c.cwd.Contains(call.Details.Path) && call.Permission.Rule != permission.RuleProtected
}

// allowByRule stands for toolCall.approval.allow, among the modes that let calls run.
const allowByRule = "rule"

// noteUnasked keeps what would have let a call run that nobody could be asked about.
func (c *execClient) noteUnasked(ctx context.Context, call toolRun) {
	if call.leavesSandbox() {
		c.unaskedOutside = true
		return
	}
	ways := []string{approveAll}
	if c.editsHere(call) {
		ways = append(ways, approveAutoEdit, approveWorkspace)
	} else if c.runsInSandbox(ctx, call) {
		ways = append(ways, approveWorkspace)
	}
	if !permission.AsksAgain(call.Permission.Rule) && call.Permission.Rule != permission.RuleOutside { // which come before rules that allow
		ways = append(ways, allowByRule)
	}
	for _, way := range ways {
		c.ways[way] = true
	}
}

// runsInSandbox says whether a call is a command that --approve workspace lets run.
func (c *execClient) runsInSandbox(ctx context.Context, call toolRun) bool {
	var args struct{ Command string }
	if call.Server != tools.Native || call.Name != "shell_command" || json.Unmarshal(call.Args, &args) != nil {
		return false
	}
	agent := c.daemon.Config().AgentOrDefault(c.flags.agent)
	e, err := c.daemon.ExplainCommand(ctx, daemon.CommandQuestion{Command: args.Command, Agent: agent, Unasked: config.UnaskedWorkspace})
	return err == nil && e.Verdict.Decision == tools.Allow
}

// remedies says what the user can do about calls that did not run, or not as they should; c.mu
// is held.
func (c *execClient) remedies() []string {
	var out []string
	var ways []string
	for _, way := range []struct{ name, text string }{
		{approveAutoEdit, "--approve auto-edit (changes of files in this directory)"},
		{approveWorkspace, "--approve workspace (also commands, in the sandbox of this directory)"},
		{approveAll, "--approve all (everything, still in the sandbox)"},
		{allowByRule, "a rule in toolCall.approval.allow of the configuration (calls like these)"},
	} {
		if c.ways[way.name] {
			ways = append(ways, way.text)
		}
	}
	if ways != nil {
		out = append(out, "Tool calls were not run, since there is no terminal to ask on. Allow them with "+strings.Join(ways, ", or ")+".")
	}
	if c.unaskedOutside {
		out = append(out, "A command that wants to leave the sandbox was not run, since there is no terminal to ask on.")
	}
	if c.stopped || c.unaskedOutside {
		out = append(out, `To run commands outside of the sandbox, approve them on a terminal, or set "toolCall": {"sandbox": "off"} in the configuration.`)
	}
	return out
}

// leavesSandbox says whether the call is a command that wants to run outside of the sandbox.
func (r toolRun) leavesSandbox() bool {
	var args struct{ Outside string }
	return r.Server == tools.Native && json.Unmarshal(r.Args, &args) == nil && strings.TrimSpace(args.Outside) != ""
}

// forgotten says why the answer to the question cannot be remembered; empty if remembering it
// covers the whole call.
func (r toolRun) forgotten(in *workspace.Workspace) string {
	switch {
	case r.leavesSandbox(), permission.AsksAgain(r.Permission.Rule):
		return "eca asks about each call of this kind"
	case r.Details.Type != "shellCommand":
		return ""
	}
	for _, c := range r.Details.Commands {
		if c.ApprovalKey == "" || slices.ContainsFunc(c.Args, func(arg string) bool { return namesOutside(in, arg) }) {
			return cannotBeRemembered(c.Name + " " + strings.Join(c.Args, " "))
		}
	}
	switch {
	case r.keys() != nil:
		return ""
	case len(r.Details.Commands) > 0:
		return "eca asks although all commands of this line are remembered"
	}
	for _, e := range r.Details.Effects {
		if e.Effect != event.EffectReads {
			return cannotBeRemembered(e.Command)
		}
	}
	return cannotBeRemembered("")
}

func cannotBeRemembered(command string) string {
	return cmp.Or(strings.Join(strings.Fields(command), " "), "this command") + " cannot be remembered"
}

// namesOutside says whether a word of a command names something outside of the workspace.
func namesOutside(in *workspace.Workspace, word string) bool {
	if option, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(option, "-") {
		word = value
	}
	switch {
	case word == os.DevNull:
		return false
	case strings.HasPrefix(word, "~"):
		return true
	case filepath.IsAbs(word):
		return !in.Contains(word)
	}
	return slices.Contains(strings.Split(word, "/"), "..") && !in.Contains(filepath.Join(in.Roots()[0], word))
}

// keys are the commands of a shell line that can be remembered, and are not yet.
func (r toolRun) keys() []string {
	var out []string
	for _, c := range r.Details.Commands {
		if c.ApprovalKey != "" && !c.Remembered && !slices.Contains(out, c.ApprovalKey) {
			out = append(out, c.ApprovalKey)
		}
	}
	return out
}

// question is what the user is asked about a call.
func (r toolRun) question(in *workspace.Workspace) string {
	text := fmt.Sprintf("\n%s wants to run:\n  %s\n", r.Name, r.Summary)
	if r.Details.Diff != "" {
		text += r.Details.Diff + "\n"
	} else {
		text += r.arguments()
	}
	if r.Permission.Reason != "" {
		text += "Asked because: " + r.Permission.Reason + "\n"
	}
	why := r.forgotten(in)
	if keys := r.keys(); why == "" && keys != nil {
		text += "To be remembered with s, w or g: " + strings.Join(keys, ", ") + "\n"
	} else if why != "" {
		text += "Not to be remembered: " + why + "\n"
	}
	return visible.Text(text) + r.prompt(in)
}

// prompt names the keys that answer the question.
func (r toolRun) prompt(in *workspace.Workspace) string {
	if r.forgotten(in) != "" {
		return "Allow? [y/N] "
	}
	return "y: once  s: until eca ends  w: always in this workspace  g: always, everywhere\nAllow? [y/s/w/g/N] "
}

// arguments lists what the summary does not show.
func (r toolRun) arguments() string {
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
