package chat

import (
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// usage returns the event for the usage of a response, with its cost and the use of the context.
func (t *turn) usage(req llm.Request, a answer) event.UsageReported {
	est := t.requests.estimate(req)
	u := a.usage
	if u.Total() == 0 {
		// Some compatible servers do not report usage; a rough estimate is better than zero.
		u = llm.Usage{Input: est.total(), Output: history.Tokens(a.outputBytes)}
	}
	rep := event.UsageReported{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		ContextLimit: t.model.Limit.Context, OutputLimit: t.model.Limit.Output,
		Share: est.scaled(u.Total()),
	}
	t.session.cost.charge(&rep, t.model, u)
	return rep
}

// cost is the total cost of a chat. It is locked because title requests run concurrently with turns.
type cost struct {
	mu    sync.Mutex // guards total
	total float64    // dollars
}

func (c *cost) add(d float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += d
	return c.total
}

func (c *cost) set(total float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total = total
}

// sideUsage returns the event for the usage of a side request.
func (c *cost) sideUsage(model Model, purpose llm.Purpose, u llm.Usage) event.UsageReported {
	rep := event.UsageReported{
		Purpose: string(purpose), InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
	}
	c.charge(&rep, model, u)
	return rep
}

// charge adds the cost of a response to the total, and sets both in rep, if the price is known.
func (c *cost) charge(rep *event.UsageReported, model Model, u llm.Usage) {
	price, ok := llm.Price(model.Cost, u)
	if !ok {
		return
	}
	total := c.add(price)
	rep.Cost, rep.TotalCost = &price, &total
}

// Categories of the context (eca-protocol.md 7.2).
const (
	shareSystem       = "System prompt"
	shareRules        = "Rules"
	shareSkills       = "Skills"
	ShareAgents       = "AGENTS.md" // exported for sources of system prompt blocks
	shareTools        = "Tool definitions"
	shareCalls        = "Tool calls"
	shareConversation = "Conversation"
)

// shares are estimated tokens by category.
type shares []event.Share

// Tokens estimates the number of tokens in a text.
func Tokens(text string) int64 { return history.Tokens(len(text)) }

// estimate estimates the tokens of a request of the turn, with each part of its system prompt in its
// category.
func (r *requestBuilder) estimate(req llm.Request) shares {
	whole := estimate(req)
	if r.sys == nil {
		return whole
	}
	bytes := map[string]int{}
	for _, p := range r.sys.Parts {
		bytes[p.Category] += len(p.Text)
	}
	var out shares
	for _, category := range []string{shareRules, shareSkills, ShareAgents} {
		n := history.Tokens(bytes[category])
		whole[0].Tokens -= n
		out = append(out, event.Share{Category: category, Tokens: n})
	}
	whole[0].Tokens = max(whole[0].Tokens, 0)
	return slices.Concat(whole[:1], out, whole[1:])
}

// EstimateUsage estimates the usage of a request with an answer of the given number of bytes.
func EstimateUsage(req llm.Request, answer int) llm.Usage {
	return llm.Usage{Input: estimate(req).total(), Output: history.Tokens(answer)}
}

// estimate estimates the tokens of a request: one per four bytes.
func estimate(req llm.Request) shares {
	var defs, calls, conversation int
	for _, s := range req.Tools {
		defs += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				conversation += len(p.Text)
			case llm.Image:
				conversation += history.ImageBytes
			case llm.Reasoning:
				conversation += len(p.Text)
			case llm.ToolCall:
				calls += len(p.Name) + len(p.Arguments)
			case llm.ToolResult:
				calls += history.ResultBytes(p)
			case llm.ServerCall:
				calls += history.ServerCallBytes(p)
			}
		}
	}
	return shares{
		{Category: shareSystem, Tokens: history.Tokens(len(req.System) + len(req.SystemTail))},
		{Category: shareTools, Tokens: history.Tokens(defs)},
		{Category: shareCalls, Tokens: history.Tokens(calls)},
		{Category: shareConversation, Tokens: history.Tokens(conversation)},
	}
}

func (s shares) total() int64 {
	var n int64
	for _, c := range s {
		n += c.Tokens
	}
	return n
}

// scaled scales the estimates so that they add up to total, the provider's count. It omits empty
// categories.
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
