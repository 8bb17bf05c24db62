package config

import (
	"fmt"
	"slices"
	"strings"
)

// Rights says what an agent may do without asking the user. A larger number means more rights. Chats
// store the numbers, so they must not change.
type Rights int

// Rights of agents.
const (
	RightsReadOnly    Rights = iota // calls that change something are denied
	RightsAllowedOnly               // calls that no rule allows are denied
	RightsAsk                       // eca asks the user about calls that no rule allows
	RightsUnasked                   // calls that no rule denies run
)

// String returns a predicate for a sentence about the agent.
func (r Rights) String() string {
	return [...]string{
		RightsReadOnly:    "can only read",
		RightsAllowedOnly: "can only do what the configuration allows",
		RightsAsk:         "can change files and run commands, and asks first unless a rule allows it",
		RightsUnasked:     "can change files and run commands without asking",
	}[r]
}

// Rights returns the rights of an agent.
func (c *Config) Rights(agent string) Rights {
	a := c.Agents[agent]
	byDefault := ""
	for _, approval := range []*Approval{c.ToolCall.Approval, a.ToolCall.Approval} {
		if approval != nil && approval.ByDefault != "" {
			byDefault = approval.ByDefault
		}
	}
	switch {
	case a.ReadOnly:
		return RightsReadOnly
	case byDefault == "deny":
		return RightsAllowedOnly
	case byDefault == "allow":
		return RightsUnasked
	}
	return RightsAsk
}

// Substitution returns a message for a chat whose agent cannot be used: another agent, the
// substitute, takes its place. The message says so if the substitute has more rights. storedRights
// are the rights that the chat recorded for its agent, for the case that the agent is no longer
// configured; nil means unknown.
func (c *Config) Substitution(agent, substitute string, storedRights *Rights) string {
	now := c.Rights(substitute)
	text := fmt.Sprintf("There is no agent %q that chats can use. This chat continues with %q, which %s.", agent, substitute, now)
	missing, configured := c.Agents[agent]
	if configured {
		rights := c.Rights(agent)
		storedRights = &rights
	}
	if storedRights != nil && *storedRights < now {
		return text + fmt.Sprintf(" This agent has more rights: %q %s.", agent, *storedRights)
	}
	var more []string
	for _, tool := range missing.DisabledTools {
		if now != RightsReadOnly && !slices.Contains(c.Agents[substitute].DisabledTools, tool) && !slices.Contains(c.DisabledTools, tool) {
			more = append(more, tool)
		}
	}
	if len(more) > 0 {
		return text + fmt.Sprintf(" This agent has more rights: %q cannot use %s.", agent, strings.Join(more, ", "))
	}
	return text
}
