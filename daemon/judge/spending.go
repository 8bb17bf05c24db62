package judge

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

// countedModel is a model whose requests are added to what the user's models have spent.
type countedModel struct {
	llm.Model
	ledger *spending.Ledger
	id     string
	cost   config.Cost
}

// Stream implements llm.Model.
func (c countedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var used llm.Usage
		defer func() {
			if used.Total() > 0 { // not for failed requests, and servers that report no usage
				c.ledger.Add("", c.id, spending.UsageOf(used, c.cost))
			}
		}()
		for d, err := range c.Model.Stream(ctx, req) {
			if d.Kind == llm.UsageDelta {
				used = d.Usage
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// checkBudget returns an error if the budget of the day is used up. If the file cannot be read, only
// the requests of this process count.
func (s *setup) checkBudget(ctx context.Context) error {
	limit, err := config.ParseBudget(s.current.Load().config.Budget.Day)
	if err != nil || limit == (config.Amount{}) {
		return nil //nolint:nilerr // eca config check reports an invalid limit, which does not apply
	}
	y, m, d := time.Now().Date()
	today, err := s.ledger.Since(ctx, time.Date(y, m, d, 0, 0, 0, 0, time.Local))
	if err != nil {
		s.opts.Log.Warn("cannot read what was spent today", "err", err)
	}
	var spent config.Amount
	for _, u := range today {
		spent = spent.Plus(u.Amount)
	}
	used := limit.Cost > 0 && spent.Cost >= limit.Cost || limit.Tokens > 0 && spent.Tokens >= limit.Tokens || limit.Time > 0 && spent.Time >= limit.Time
	if used {
		return fmt.Errorf("today's budget is used up: $%.4f, %d tokens; budget.day in eca's configuration sets this limit", spent.Cost, spent.Tokens)
	}
	return nil
}
