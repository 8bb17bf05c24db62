package budget

import (
	"context"
	"iter"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

// Model wraps a model so that its requests are counted, under its full id and with its prices.
func (k *Keeper) Model(client llm.Model, id string, cost config.Cost) llm.Model {
	return model{client, k, id, cost}
}

// model counts the requests of a model.
type model struct {
	llm.Model
	keeper *Keeper
	id     string
	cost   config.Cost
}

// Stream implements llm.Model. Turns check their budget themselves, because they can ask the user.
func (m model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if req.Purpose != llm.PurposeTurn {
			if err := m.keeper.admit(ctx, req.Origin); err != nil {
				yield(llm.Delta{}, err)
				return
			}
		}
		var used llm.Usage
		answered, output := false, 0
		defer func() {
			if used.Total() == 0 && answered { // some servers never report usage, and no server does for an answer that was stopped
				used = chat.EstimateUsage(req, output)
			}
			if used.Total() > 0 {
				m.keeper.charge(req.Origin, m.id, spending.UsageOf(used, m.cost))
			}
		}()
		for d, err := range m.Model.Stream(ctx, req) {
			switch d.Kind {
			case llm.UsageDelta:
				used = d.Usage
			case llm.TextDelta, llm.ReasoningDelta, llm.ToolArgs, llm.ToolStart:
				answered = true
				output += len(d.Text)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
