package permission

import (
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// RuleReads allows commands that only read, by toolCall.unasked. They have to run at the
// read-only level of the sandbox.
const RuleReads = "sandbox.reads"

// RuleProtected asks about what may write to a protected place, in every mode.
const RuleProtected = "protected"

// RuleIrreversible asks about a command that ends something for good, also in auto-approve.
const RuleIrreversible = "irreversible"

// Sandbox says what this system can hold of the promises about commands that run unasked.
type Sandbox struct {
	// NoReads is why the read-only level cannot be held, in words for the user; empty if it can.
	NoReads string
	// NoWorkspace says the same of the workspace level in full: protected places, processes and
	// loopback of its own, undo, a workspace without anything that is not trusted. Nil: it
	// cannot be held.
	NoWorkspace func() (why string)
}

// unaskedRule judges a command by toolCall.unasked, after all rules that name it; gone is what
// it ends for good. ok is false where that has nothing to say.
func (p *Policy) unaskedRule(agent string, r rules, spec tools.Spec, plan tools.Plan, printed *tools.Printed, gone string) (v tools.Verdict, ok bool) {
	value, known := p.unasked[agent]
	if !known {
		value = p.unasked[""]
	}
	command := plan.Command
	// What byDefault allows keeps the level of the user's own configuration, and agents that
	// change nothing have a row of their own.
	if command == nil || spec.Server != tools.Native || p.readOnly[agent] || r.byDefault != tools.Ask || value == config.UnaskedOff {
		return tools.Verdict{}, false
	}
	if reads, _ := p.reads(command, printed); reads && !command.Background && p.sandbox.NoReads == "" {
		return tools.Verdict{Decision: tools.Allow, Rule: RuleReads, Reason: "the command only reads, in the workspace, and the sandbox holds it to that"}, true
	}
	if value != config.UnaskedWorkspace || gone != "" || p.leavesSandbox(r, spec, command) != "" {
		return tools.Verdict{}, false
	}
	return tools.Verdict{Decision: tools.Allow, Rule: tools.RuleWorkspace, Reason: "the command stays in the sandbox of the workspace, without network"}, true
}

// leavesSandbox says why a command cannot run unasked at the workspace level; empty if it can.
func (p *Policy) leavesSandbox(r rules, spec tools.Spec, c *tools.Command) (why string) {
	switch {
	case c.Given != nil:
		return "it is a tool of the user's own" // which may need what the sandbox does not give
	case c.Background:
		return "it goes on in the background"
	case len(c.Program.Commands) == 0:
		return "nothing is known about it"
	case c.Program.Unresolved != "" && (r.deny.names(spec) || r.ask.names(spec)):
		return "a rule may be meant for commands that its text does not show"
	}
	places := newPlaces(c.Dir)
	for _, cmd := range c.Program.Commands {
		switch {
		case cmd.NeedsNetwork():
			return cmd.Name + " needs the network"
		case !p.enter(places, cmd):
			return "where it runs is not known"
		case cmd.Name != "cd" && cmd.Effect != cmdline.Reads && p.namesOutside(cmd, places), cmd.Effect == cmdline.Reads && p.pathsInside(cmd, places) != "":
			return "it names a file outside of the workspace"
		}
	}
	for _, path := range c.Program.Writes {
		if p.namesOutside(cmdline.Command{Args: []string{path}}, places) {
			return "it writes outside of the workspace"
		}
	}
	if p.sandbox.NoWorkspace == nil {
		return "the sandbox of the workspace cannot be held here"
	}
	return p.sandbox.NoWorkspace()
}
