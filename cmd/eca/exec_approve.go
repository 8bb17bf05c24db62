package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
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
	unasked bool        // the user should have been asked and could not be
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
		return decision{}
	case approveAutoEdit, approveWorkspace:
		if call.Details.Type == "fileChange" && c.cwd.Contains(call.Details.Path) && call.Permission.Rule != permission.RuleProtected {
			return decision{approve: true}
		}
	}
	line, asked := askTerminal(ctx, call.question())
	if !asked {
		return decision{unasked: true}
	}
	save, remember := map[string]tools.Scope{"s": tools.ForSession, "w": tools.ForWorkspace, "g": tools.Everywhere}[line]
	if remember && call.memorable() {
		return decision{approve: true, save: save}
	}
	return decision{approve: isYes(line)}
}

// remedies says what the user can do about calls that did not run, or not as they should; c.mu
// is held.
func (c *execClient) remedies() []string {
	var out []string
	if c.unasked {
		allow := map[string]string{
			approveAsk:       "--approve auto-edit (changes of files in this directory), --approve workspace (also commands, in its sandbox) or --approve all",
			approveAutoEdit:  "--approve workspace (also commands, in the sandbox of this directory) or --approve all",
			approveWorkspace: "--approve all (everything, still in the sandbox)",
		}[c.flags.approve]
		out = append(out, "Tool calls were not run, since there is no terminal to ask on. Allow them with "+allow+".")
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

// memorable says whether the answer to the question can be remembered: what always asks is not,
// nor is a command that eca does not know.
func (r toolRun) memorable() bool {
	if r.leavesSandbox() || r.Permission.Rule == permission.RuleProtected || r.Permission.Rule == permission.RuleIrreversible {
		return false
	}
	return r.Details.Type != "shellCommand" || r.keys() != nil
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
func (r toolRun) question() string {
	text := fmt.Sprintf("\n%s wants to run:\n  %s\n", r.Name, r.Summary)
	if r.Details.Diff != "" {
		text += r.Details.Diff + "\n"
	} else {
		text += r.arguments()
	}
	if r.Permission.Reason != "" {
		text += "Asked because: " + r.Permission.Reason + "\n"
	}
	if !r.memorable() {
		return visible.Text(text) + "Allow? [y/N] "
	}
	if keys := r.keys(); keys != nil {
		text += "To be remembered with s, w or g: " + strings.Join(keys, ", ") + "\n"
	}
	return visible.Text(text) + "y: once  s: until eca ends  w: always in this workspace  g: always, everywhere\nAllow? [y/s/w/g/N] "
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
