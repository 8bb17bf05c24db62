package chat

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// usage reports what a response cost and how full the context is.
func (t *turn) usage(req llm.Request, a answer) event.UsageReported {
	est := estimate(req)
	u := a.usage
	if u.Total() == 0 {
		// Some compatible servers report nothing; a rough figure beats zero.
		u = llm.Usage{Input: est.total(), Output: tokens(a.output)}
	}
	rep := event.UsageReported{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		ContextLimit: t.model.Limit.Context, OutputLimit: t.model.Limit.Output,
		Share: est.scaled(u.Total()),
	}
	if c, ok := t.price(u); ok {
		rep.Cost = &c
		t.s.cost += c
		total := t.s.cost
		rep.TotalCost = &total
	}
	return rep
}

// price returns the cost in dollars, if both prices are known.
func (t *turn) price(u llm.Usage) (float64, bool) {
	c := t.model.Cost
	if c.Input == nil || c.Output == nil {
		return 0, false
	}
	read, write := *c.Input, *c.Input
	if c.CacheRead != nil {
		read = *c.CacheRead
	}
	if c.CacheWrite != nil {
		write = *c.CacheWrite
	}
	const million = 1e6
	return (float64(u.Input)**c.Input + float64(u.Output)**c.Output + float64(u.CacheRead)*read + float64(u.CacheWrite)*write) / million, true
}

// Categories of the context (eca-protocol 7.2).
const (
	shareSystem       = "System prompt"
	shareTools        = "Tool definitions"
	shareCalls        = "Tool calls"
	shareConversation = "Conversation"
)

// shares are estimated tokens by category.
type shares []event.Share

func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

// estimate guesses the tokens of a request: four bytes each.
func estimate(req llm.Request) shares {
	var defs, calls, talk int
	for _, s := range req.Tools {
		defs += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				talk += len(p.Text)
			case llm.Reasoning:
				talk += len(p.Text)
			case llm.ToolCall:
				calls += len(p.Name) + len(p.Arguments)
			case llm.ToolResult:
				calls += len(p.Text)
			}
		}
	}
	return shares{
		{Category: shareSystem, Tokens: tokens(len(req.System))},
		{Category: shareTools, Tokens: tokens(defs)},
		{Category: shareCalls, Tokens: tokens(calls)},
		{Category: shareConversation, Tokens: tokens(talk)},
	}
}

func (s shares) total() int64 {
	var n int64
	for _, c := range s {
		n += c.Tokens
	}
	return n
}

// scaled fits the estimate to what the provider counted. Empty categories are left
// out.
func (s shares) scaled(total int64) []event.Share {
	sum := s.total()
	var out []event.Share
	for _, c := range s {
		if c.Tokens == 0 || sum == 0 {
			continue
		}
		c.Tokens = c.Tokens * total / sum
		out = append(out, c)
	}
	return out
}
