package config

import (
	"fmt"
	"slices"
	"strings"
)

// Rights is what an agent may do without asking the user, in increasing order. Chats store the
// numbers.
type Rights int

// Rights of agents.
const (
	ReadsOnly   Rights = iota // calls that change something are denied
	AllowedOnly               // calls that no rule allows are denied
	Asks                      // eca asks the user about calls that no rule allows
	Unasked                   // calls that no rule denies run
)

// String returns a predicate for a sentence about the agent.
func (r Rights) String() string {
	return [...]string{
		ReadsOnly:   "can only read",
		AllowedOnly: "can only do what the configuration allows",
		Asks:        "can change files and run commands, and asks first unless a rule allows it",
		Unasked:     "can change files and run commands without asking",
	}[r]
}

// Rights returns the rights of an agent.
func (c *Config) Rights(agent string) Rights {
	a := c.Agents[agent]
	approval := c.ToolCall.Approval
	if a.ToolCall.Approval != nil {
		approval = a.ToolCall.Approval
	}
	switch {
	case a.ReadOnly:
		return ReadsOnly
	case approval == nil:
		return Asks
	case approval.ByDefault == "deny":
		return AllowedOnly
	case approval.ByDefault == "allow":
		return Unasked
	}
	return Asks
}

// Substitution returns a message that the agent used replaces the agent asked, and whether used has
// more rights. before has the earlier rights of asked if asked is no longer configured; nil means
// unknown.
func (c *Config) Substitution(asked, used string, before *Rights) string {
	now := c.Rights(used)
	text := fmt.Sprintf("There is no agent %q that chats can use. This chat continues with %q, which %s.", asked, used, now)
	missing, there := c.Agents[asked]
	if there {
		rights := c.Rights(asked)
		before = &rights
	}
	if before != nil && *before < now {
		return text + fmt.Sprintf(" This agent has more rights: %q %s.", asked, *before)
	}
	var more []string
	for _, tool := range missing.DisabledTools {
		if now != ReadsOnly && !slices.Contains(c.Agents[used].DisabledTools, tool) && !slices.Contains(c.DisabledTools, tool) {
			more = append(more, tool)
		}
	}
	if len(more) > 0 {
		return text + fmt.Sprintf(" This agent has more rights: %q cannot use %s.", asked, strings.Join(more, ", "))
	}
	return text
}
