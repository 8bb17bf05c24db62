package daemon

import (
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/tools"
)

// Unattended judges a call that is made outside of a chat, where nobody can be asked. What
// a chat would ask about must be taken for denied; so is everything where hooks want to
// look at calls first, since they are told of chats.
func (d *Daemon) Unattended(call tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	policy := d.policy.Load()
	switch {
	case d.hooks.Load().Any(hooks.PreToolCall):
		return tools.Verdict{Decision: tools.Deny, Rule: "hooks", Reason: "hooks look at calls, and they are asked in chats only"}
	case policy.Hidden(call.Agent, spec):
		return tools.Verdict{Decision: tools.Deny, Reason: "agent " + call.Agent + " does not have the tool"}
	}
	return policy.Judge(call, spec, plan)
}
