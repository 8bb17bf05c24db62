package permission

import (
	"cmp"
	"slices"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// RuleReads allows commands that only read, by toolCall.unasked. They have to run at the
// read-only level of the sandbox.
const RuleReads = "sandbox.reads"

// RuleFiles allows file tools to change files of the workspace, by toolCall.unasked.
const RuleFiles = "workspace.files"

// RuleProtected asks about what may write to a protected place, in every mode.
const RuleProtected = "protected"

// RuleOutside asks about a file outside of the workspace.
const RuleOutside = "outside the workspace"

// RuleIrreversible asks about a command that ends something for good, also in auto-approve.
const RuleIrreversible = "irreversible"

// Rules of questions that come with each call: a command wants to leave the sandbox, a server
// has changed its tool.
const (
	ruleLeaves  = "outside the sandbox"
	ruleChanged = "changed tool"
)

// Sandbox says what this system can hold of the promises about commands that run unasked.
type Sandbox struct {
	// NoReads is why the read-only level cannot be held, in words for the user; empty if it can.
	NoReads string
	// ReadsHeld says that the system also holds commands that only read to reading the workspace. Then
	// they may be given names that are not known before they run (xargs, find -exec).
	ReadsHeld bool
	// NoWorkspace says the same of the workspace level in full: protected places, processes and
	// loopback of its own, undo, a workspace without anything that is not trusted. Nil: it
	// cannot be held.
	NoWorkspace func() (why string)
	// Unsearched reports whether there may be protected places that a command made, since the search
	// for them is due. Nil: never.
	Unsearched func() bool
	// Writable are the folders that commands may write to at that level besides the workspace.
	Writable []string
	// Hosts says that they reach some hosts, which the user listed.
	Hosts bool
}

// unaskedRule judges a call by toolCall.unasked, after all rules that name it; gone is what it
// ends for good. Where the call still asks, the reason says why; it is empty where
// toolCall.unasked has nothing to say.
func (j *judgment) unaskedRule(call tools.Call, r rules, spec named, plan tools.Plan, printed *tools.Printed, gone string) (v tools.Verdict, ok bool) {
	value := j.unaskedOf(call)
	// Calls that byDefault allows keep the level of the user's own configuration, and agents that
	// change nothing have a row of their own.
	if spec.Server != tools.Native || j.readOnly[call.Agent] || r.byDefault != tools.Ask || value == config.UnaskedOff {
		return tools.Verdict{}, false
	}
	if j.sandbox.Unsearched != nil && j.sandbox.Unsearched() {
		return tools.Verdict{Reason: "an earlier command may have left files in the workspace that programs obey or run, such as git hooks, and eca has not found or moved all of them"}, false
	}
	command := plan.Command
	if command == nil {
		// File tools need no sandbox, but the same trust and undo. Their paths are inside.
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
		why = "it goes on in the background"
	case j.sandbox.NoReads != "":
		why = j.sandbox.NoReads
	default:
		return tools.Verdict{Decision: tools.Allow, Rule: RuleReads, Reason: "the command only reads, in the workspace, and the sandbox holds it to that"}, true
	}
	if value == config.UnaskedWorkspace {
		if gone != "" {
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

// unaskedOf returns the value of toolCall.unasked for a call. The user's choice for the
// workspace turns reads into workspace.
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

// offers reports whether a question about a command offers to let commands run in the sandbox of
// the workspace from now on: where the command could, and the user approved some of that kind.
// It is offered once.
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

// noWorkspace says why the workspace level cannot be held in full; empty if it can.
func (p *Policy) noWorkspace() string {
	if p.sandbox.NoWorkspace == nil {
		return "the sandbox of the workspace cannot be held here"
	}
	return p.sandbox.NoWorkspace()
}

// needsQuestion says why a command cannot run unasked at the workspace level; empty if it can.
func (j *judgment) needsQuestion(r rules, spec named, c *tools.Command) (why string) {
	switch {
	case c.TemplateArguments != nil:
		return "it is a tool of your own, which may need more than the sandbox gives"
	case len(c.Program.Commands) == 0:
		return cmp.Or(c.Program.Unresolved, "it runs nothing")
	case c.Program.Unresolved != "" && r.restrict(spec):
		return "a rule may be meant for commands that its text does not show: " + c.Program.Unresolved
	case c.Program.Data && r.restrict(spec):
		return namesUnknown
	}
	places := j.newPlaces(c.Dir)
	for _, cmd := range c.Program.Commands {
		// Names that xargs reads may be anywhere, like those in a program that is not known.
		cmd = withoutAnywhere(cmd)
		switch {
		case cmd.NeedsNetwork(j.sandbox.Hosts):
			return cmd.Name + " needs the network"
		case !j.enter(places, cmd):
			return "where it runs is not known"
		case cmd.Effect == cmdline.Reads:
			if c.Program.Expands { // any word may become a path of another
				if name := j.nameOutside(cmd, places, j.writable); name != "" {
					return "it names a file outside of the workspace: " + name
				}
			}
			if why := j.pathsWithin(cmd, places, j.writable); why != "" {
				return why
			}
		case cmd.Name != "cd":
			if name := j.nameOutside(cmd, places, j.writable); name != "" {
				return "it names a file outside of the workspace: " + name
			}
		}
	}
	if c.Program.Expands {
		if name := j.nameOutside(cmdline.Command{Args: c.Program.Values}, places, j.writable); name != "" {
			return "it names a file outside of the workspace: " + name
		}
	}
	for _, path := range c.Program.Writes {
		if j.nameOutside(cmdline.Command{Args: []string{path}}, places, j.writable) != "" {
			return "it writes outside of the workspace: " + path
		}
	}
	return j.noWorkspace()
}

// writable reports whether a path, which may be a link, leads to where commands may write at the
// workspace level.
func (j *judgment) writable(path string) bool {
	real := j.links.Resolve(path)
	return j.contains(real) || slices.ContainsFunc(j.sandbox.Writable, func(dir string) bool { return within(real, j.links.Resolve(dir)) })
}
