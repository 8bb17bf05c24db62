package chat

import (
	"context"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// SideAnswer is a model's answer to a side request.
type SideAnswer struct {
	Text  string
	Model string // full id
	Stop  llm.StopReason
}

// SideRequest sends a request of an MCP server to a model, and adds its cost to an open chat. It fills
// in the request's model, headers, limits and origin.
func (e *Engine) SideRequest(ctx context.Context, chatID, model string, req llm.Request) (SideAnswer, error) {
	s, ok := e.Lookup(chatID)
	if !ok {
		return SideAnswer{}, ErrNoChat
	}
	m, err := e.deps.Models.Resolve(model, model)
	if err != nil {
		return SideAnswer{}, err
	}
	req.Model, req.Headers, req.Extra, req.Context = m.Name, m.Headers, m.Extra, m.Limit.Context
	if m.Limit.Output > 0 {
		req.MaxOutput = min(req.MaxOutput, m.Limit.Output)
	}
	meta := s.log.Meta()
	req.Origin = llm.Origin{Chat: s.id, Parent: meta.Parent, Agent: meta.Agent}
	req.CacheKey = s.id + "/" + string(req.Purpose)
	text, usage, stop, err := collect(ctx, m.Client, req)
	if err != nil {
		return SideAnswer{}, err
	}
	s.log.Append("", s.cost.sideUsage(m, req.Purpose, usage))
	return SideAnswer{Text: text, Model: m.ID, Stop: stop}, nil
}

// collect makes a request and returns the whole text of its answer.
func collect(ctx context.Context, client llm.Model, req llm.Request) (string, llm.Usage, llm.StopReason, error) {
	var text strings.Builder
	var usage llm.Usage
	var stop llm.StopReason
	for d, err := range client.Stream(ctx, req) {
		if err != nil {
			return "", usage, stop, err
		}
		switch d.Kind {
		case llm.TextDelta:
			text.WriteString(d.Text)
		case llm.UsageDelta:
			usage = d.Usage
		case llm.StopDelta:
			stop = d.Stop
		}
	}
	return text.String(), usage, stop, context.Cause(ctx)
}
