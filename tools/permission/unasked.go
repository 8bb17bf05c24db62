package permission

import (
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

// RuleReads allows commands that only read, by toolCall.unasked. They have to run at the
// read-only level of the sandbox.
const RuleReads = "sandbox.reads"

// Sandbox says what this system can hold of the promises about commands that run unasked.
// Each field is why a level cannot be held, in words for the user; empty if it can.
type Sandbox struct {
	NoReads string // the read-only level
}

// unaskedRule judges a command by toolCall.unasked, after all rules that name it. ok is false
// where that has nothing to say.
func (p *Policy) unaskedRule(agent string, r rules, spec tools.Spec, plan tools.Plan, printed *tools.Printed) (v tools.Verdict, ok bool) {
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
	if reads, _ := p.reads(command, printed); !reads || command.Background || p.sandbox.NoReads != "" {
		return tools.Verdict{}, false
	}
	return tools.Verdict{Decision: tools.Allow, Rule: RuleReads, Reason: "the command only reads, in the workspace, and the sandbox holds it to that"}, true
}
