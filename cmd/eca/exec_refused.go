package main

import (
	"cmp"
	"strings"

	"github.com/seed-dec29ce4/eca/tools"
)

// refusal is a call that was not allowed to run, for scripts.
type refusal struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// ruleDisabled is the rule for calls of tools that the agent does not have.
const ruleDisabled = "disabledTools"

// refuse notes that a call was not allowed to run; c.mu is held.
func (c *execClient) refuse(call string, v execContent) {
	reason := c.refusalReason(v.Reason, c.permissions[call], c.why[call])
	tool, label := tools.FullName(v.Server, v.Name), v.label(c.root())
	if c.permissions[call].Rule == ruleDisabled { // the tool was not offered to the model, so only its name is known
		tool, label = v.Name, v.Name
	}
	c.refused = append(c.refused, refusal{tool, reason})
	c.noteLocked("· refused: " + label + ": " + reason)
}

// refusalReason says why a call was not allowed to run; own is the reason decided here.
func (c *execClient) refusalReason(rejected string, p callPermission, own string) string {
	agent, readOnly := strings.CutSuffix(strings.TrimPrefix(p.Rule, "agent."), ".readOnly")
	switch {
	case rejected == "hookRejected":
		return "denied by " + cmp.Or(own, "a hook")
	case own != "":
		return "not approved: " + own
	case p.Rule == ruleDisabled:
		return "denied: " + p.Reason
	case readOnly && p.Verdict == "deny":
		return "denied: the agent " + agent + " is read-only"
	case p.Verdict == "deny":
		return "denied by " + p.Rule
	}
	return "not approved: a subagent cannot ask" // subagents run without the user
}
