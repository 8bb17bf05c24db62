package permission

import (
	"cmp"
	"slices"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// RuleReads allows commands that only read, by toolCall.unasked. They must run at the read-only level
// of the sandbox.
const RuleReads = "sandbox.reads"

// RuleFiles allows file tools to change files of the workspace, by toolCall.unasked.
const RuleFiles = "workspace.files"

// RuleProtected asks about calls that may write to a protected place, in every mode.
const RuleProtected = "protected"

// RuleOutside asks about a file outside the workspace.
const RuleOutside = "outside the workspace"

// RuleIrreversible asks about a command that loses work irreversibly, even with auto-approve.
const RuleIrreversible = "irreversible"

// Rules that ask about every call: a command is to run outside the sandbox, or a server has changed its
// tool.
const (
	ruleLeaves  = "outside the sandbox"
	ruleChanged = "changed tool"
)

// Sandbox describes which restrictions this system can enforce on commands that run unasked.
type Sandbox struct {
	// NoReads is the reason, shown to the user, why the read-only level cannot be enforced; empty if it
	// can.
	NoReads string
	// ReadsHeld is true if commands at the read-only level cannot read files outside the workspace.
	// Then their arguments need not be known before they run (xargs, find -exec).
	ReadsHeld bool
	// NoWorkspace returns the reason why the workspace level cannot be enforced completely: protected
	// places, private processes and loopback, undo, a trusted workspace. The reason is empty if it can.
	// If the function is nil, it cannot.
	NoWorkspace func() (why string)
	// Unsearched reports whether a command may have created protected places that the pending search has
	// not found yet. Nil: never.
	Unsearched func() bool
	// Writable are the folders outside the workspace that commands may write to at the workspace level.
	Writable []string
	// Hosts is true if commands at the workspace level reach hosts that the user listed.
	Hosts bool
}

// unaskedRule judges a call by toolCall.unasked, after all rules that name it. irreversible describes
// the work that the call loses. If the call still asks, the reason of the verdict says why; it is empty
// if toolCall.unasked does not apply.
func (j *judgment) unaskedRule(call tools.Call, r rules, spec named, plan tools.Plan, printed *tools.Printed, irreversible string) (v tools.Verdict, ok bool) {
	value := j.unaskedOf(call)
	// Calls that byDefault allows keep the sandbox level of the configuration. Agents that are readOnly
	// are judged by onlyReads.
	if spec.Server != tools.Native || j.readOnly[call.Agent] || r.byDefault != tools.Ask || value == config.UnaskedOff {
		return tools.Verdict{}, false
	}
	if j.sandbox.Unsearched != nil && j.sandbox.Unsearched() {
		return tools.Verdict{Reason: "an earlier command may have left files in the workspace that programs obey or run, such as git hooks, and eca has not found or moved all of them"}, false
	}
	command := plan.Command
	if command == nil {
		// File tools need no sandbox, but a trusted workspace and undo. Their paths are in the workspace.
		if value == config.UnaskedWorkspace && len(plan.Paths) > 0 && !spec.ReadOnly && j.noWorkspace() == "" {
			return tools.Verdict{Decision: tools.Allow, Rule: RuleFiles, Reason: "it changes files of the workspace, and a rollback undoes it"}, true
		}
		return tools.Verdict{}, false
	}
	reads, why := j.reads(r, spec, command, printed)
	switch {
	case !reads:
		why = "it may do more than read in the workspace: " + why
	case command.Background:
		why = "it continues in the background"
	case j.sandbox.NoReads != "":
		why = j.sandbox.NoReads
	default:
		return tools.Verdict{Decision: tools.Allow, Rule: RuleReads, Reason: "the command only reads files in the workspace, and the sandbox enforces this"}, true
	}
	if value == config.UnaskedWorkspace {
		if irreversible != "" {
			return tools.Verdict{}, false
		}
		if why = j.needsQuestion(r, spec, command); why == "" {
			return tools.Verdict{Decision: tools.Allow, Rule: tools.RuleWorkspace, Reason: "the command stays in the sandbox of the workspace, without network"}, true
		}
	}
	return tools.Verdict{Reason: why}, false
}

// WithUnasked returns the policy with another toolCall.unasked for all agents.
func (p *Policy) WithUnasked(value string) *Policy {
	other := *p
	other.unasked = map[string]string{"": value}
	return &other
}

// unaskedOf returns the value of toolCall.unasked for a call. It is "workspace" instead of "reads" if the
// user chose the sandbox for this workspace.
func (j *judgment) unaskedOf(call tools.Call) string {
	value, known := j.unasked[call.Agent]
	if !known {
		value = j.unasked[""]
	}
	if value == config.UnaskedReads && j.memory.inSandbox(j, call) {
		return config.UnaskedWorkspace
	}
	return value
}

// offers reports whether a question about a command offers to run commands in the sandbox of the
// workspace without a question. It is offered once, after the user approved some commands that could
// have run there.
func (j *judgment) offers(call tools.Call, spec named, plan tools.Plan) bool {
	return j.memory.offer(j, call) && j.couldBeUnasked(call, spec, plan)
}

// couldBeUnasked reports whether a command would run without a question if toolCall.unasked were
// workspace.
func (j *judgment) couldBeUnasked(call tools.Call, spec named, plan tools.Plan) bool {
	r := j.rulesFor(call.Agent)
	return plan.Command != nil && spec.Server == tools.Native && !j.readOnly[call.Agent] && r.byDefault == tools.Ask &&
		j.unaskedOf(call) == config.UnaskedReads && j.needsQuestion(r, spec, plan.Command) == ""
}

// noWorkspace returns why the workspace level cannot be enforced completely; empty if it can.
func (p *Policy) noWorkspace() string {
	if p.sandbox.NoWorkspace == nil {
		return "the sandbox of the workspace cannot be held here"
	}
	return p.sandbox.NoWorkspace()
}

// needsQuestion returns why a command cannot run unasked at the workspace level; empty if it can.
func (j *judgment) needsQuestion(r rules, spec named, c *tools.Command) (why string) {
	switch {
	case c.TemplateArguments != nil:
		return "it is a tool of your own, which may need more than the sandbox gives"
	case len(c.Program.Commands) == 0:
		return cmp.Or(c.Program.Unresolved, "it runs nothing")
	case c.Program.Unresolved != "" && r.restrict(spec):
		return "one of your rules may apply to commands that its text does not show: " + c.Program.Unresolved
	case c.Program.Data && r.restrict(spec):
		return namesUnknown
	}
	places := j.newPlaces(c.Dir)
	for _, cmd := range c.Program.Commands {
		// Files whose names xargs reads are left to the sandbox, like those of an unknown program.
		cmd = withoutAnywhere(cmd)
		switch {
		case cmd.NeedsNetwork(j.sandbox.Hosts):
			return cmd.Name + " needs the network"
		case !j.enter(places, cmd):
			return "eca does not know its working directory"
		case cmd.Effect == cmdline.Reads:
			if c.Program.Expands { // words may contain paths that another word assigns
				if name := j.nameOutside(cmd, places, j.writable); name != "" {
					return "it names a file outside the workspace: " + name
				}
			}
			if why := j.pathsWithin(cmd, places, j.writable); why != "" {
				return why
			}
		case cmd.Name != "cd":
			if name := j.nameOutside(cmd, places, j.writable); name != "" {
				return "it names a file outside the workspace: " + name
			}
		}
	}
	if c.Program.Expands {
		if name := j.nameOutside(cmdline.Command{Args: c.Program.Values}, places, j.writable); name != "" {
			return "it names a file outside the workspace: " + name
		}
	}
	for _, path := range c.Program.Writes {
		if j.nameOutside(cmdline.Command{Args: []string{path}}, places, j.writable) != "" {
			return "it writes outside the workspace: " + path
		}
	}
	return j.noWorkspace()
}

// writable reports whether commands may write to a path at the workspace level, after its symlinks are
// resolved.
func (j *judgment) writable(path string) bool {
	real := j.links.Resolve(path)
	return j.contains(real) || slices.ContainsFunc(j.sandbox.Writable, func(dir string) bool { return within(real, j.links.Resolve(dir)) })
}
