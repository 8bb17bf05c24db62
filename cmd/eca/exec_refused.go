package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/tools"
)

// refusal is a call that was not allowed to run, as the last line of --json reports it.
type refusal struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// recordRefusal records that a call was not allowed to run; c.mu is held.
func (c *execClient) recordRefusal(call string, v execContent) {
	reason := c.refusalReason(call, v.Reason)
	v.Summary = strings.TrimSuffix(v.Summary, ": "+c.permissions[call].Reason) // the reason follows the label
	tool, label := tools.FullName(v.Server, v.Name), v.label(c.root())
	if v.Server == "unknown" { // the tool was not offered to the model, so only its name is known
		tool, label = v.Name, v.Name
	}
	c.refused = append(c.refused, refusal{tool, reason})
	c.noteLocked("· refused: " + label + ": " + reason)
}

// refusalReason returns why a call was not allowed to run.
func (c *execClient) refusalReason(call, rejected string) string {
	p, own := c.permissions[call], c.clientReasons[call]
	agent, readOnly := strings.CutSuffix(strings.TrimPrefix(p.Rule, "agent."), ".readOnly")
	switch {
	case rejected == "hookRejected":
		return "denied by " + cmp.Or(c.hookReasons[call], "a hook")
	case own != "":
		return "not approved: " + own
	case p.Rule == tools.RuleDisabled:
		return "denied: " + p.Reason
	case readOnly && p.Verdict == "deny":
		return "denied: the agent " + agent + " is read-only"
	case p.Verdict == "deny":
		return "denied by " + p.Rule
	}
	return "not approved: a subagent cannot ask" // subagents run without the user
}

// sandboxStops collects the accesses that the sandbox denied to commands: their descriptions, and the
// values for the settings that would allow them.
type sandboxStops struct {
	descriptions          []string
	hosts, ports, folders []string
}

func (s *sandboxStops) add(stop sandboxStop) {
	insert := func(list *[]string, items ...string) {
		for _, item := range items {
			if item != "" && !slices.Contains(*list, item) {
				*list = append(*list, item)
			}
		}
	}
	insert(&s.descriptions, stop.Text)
	insert(&s.hosts, stop.Hosts...)
	insert(&s.ports, stop.Port)
	insert(&s.folders, stop.Folder)
}

// remedy explains how to allow the denied accesses.
func (s *sandboxStops) remedy() string {
	out := fmt.Sprintf("The sandbox stopped a command: %s. On a terminal, eca exec asks whether to allow that, once or always (not with --approve none).", printable(strings.Join(s.descriptions, "; ")))
	for _, setting := range []struct {
		format string
		values []string
	}{
		{" To allow it without a question, list %s in toolCall.sandboxHosts.", s.hosts},
		{" To allow it without a question, list %s in toolCall.sandboxPorts.", s.ports},
		{" Commands write in %s only if you allow it there, or work in that folder (-C).", s.folders},
	} {
		if len(setting.values) > 0 {
			out += fmt.Sprintf(setting.format, printable(strings.Join(setting.values, ", ")))
		}
	}
	return out
}
