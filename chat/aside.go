package chat

import (
	"context"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// Aside is a model's answer to a request beside the conversation.
type Aside struct {
	Text  string
	Model string // full id
	Stop  llm.StopReason
}

// Aside has a model answer a request that somebody else makes while a turn of a chat runs;
// the chat pays. The request gets the model's name and headers, and no more tokens than it
// has.
func (e *Engine) Aside(ctx context.Context, chatID, model string, req llm.Request) (Aside, error) {
	s, ok := e.Lookup(chatID)
	if !ok {
		return Aside{}, ErrNoChat
	}
	m, err := e.deps.Models.Resolve(model, model)
	if err != nil {
		return Aside{}, err
	}
	req.Model, req.Headers, req.Extra, req.Context = m.Name, m.Headers, m.Extra, m.Limit.Context
	if m.Limit.Output > 0 {
		req.MaxOutput = min(req.MaxOutput, m.Limit.Output)
	}
	req.Origin = llm.Origin{Chat: s.id, Agent: s.log.Meta().Agent}
	req.CacheKey = s.id + "/" + string(req.Purpose)
	out := Aside{Model: m.ID}
	var text strings.Builder
	var usage llm.Usage
	for d, err := range m.Client.Stream(ctx, req) {
		if err != nil {
			return Aside{}, err
		}
		switch d.Kind {
		case llm.TextDelta:
			text.WriteString(d.Text)
		case llm.UsageDelta:
			usage = d.Usage
		case llm.StopDelta:
			out.Stop = d.Stop
		}
	}
	if ctx.Err() != nil {
		return Aside{}, context.Cause(ctx)
	}
	s.log.Append("", s.besides(m, req.Purpose, usage))
	out.Text = text.String()
	return out, nil
}
