package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/budget"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Spending reports what chats have spent, and manages their limits.
type Spending interface {
	Report(ctx context.Context) (budget.Report, error)
	Chat(ctx context.Context, chatID string) (config.Amount, error)
	Limits(ctx context.Context, chatID string) ([]budget.Limit, error)
	SetLimits(ctx context.Context, chatID, scope string, limits []string) error
	ResetLimits(ctx context.Context, chatID string) error
}

// budget shows the limits of the chat, or changes them.
func (c *Commands) budget(ctx context.Context, in input) (string, error) {
	if len(in.args) == 0 {
		return c.showBudget(ctx, in.session), nil
	}
	scope, rest := in.args[0], strings.TrimSpace(strings.Join(in.args[1:], " "))
	scopes := []string{"turn", "chat", "day"}
	switch {
	case scope == "reset" && rest == "":
		if err := c.deps.Spending.ResetLimits(ctx, in.session.ID()); err != nil {
			return "", fmt.Errorf("the budget could not be changed: %w", err)
		}
		return c.showBudget(ctx, in.session), nil
	case !slices.Contains(scopes, scope):
		return "", fmt.Errorf("/budget %s: it must be turn, chat, day or reset%s", scope, suggest.DidYouMean(scope, append(scopes, "reset")))
	case rest == "":
		return "", fmt.Errorf("/budget %s needs limits, separated by commas, or off: %s", scope, config.BudgetForm)
	}
	limits := []string{}
	if rest != "off" {
		for text := range strings.SplitSeq(rest, ",") {
			limits = append(limits, strings.TrimSpace(text))
		}
	}
	if _, err := config.ParseBudget(limits); err != nil {
		return "", fmt.Errorf("/budget %s: %w", scope, err)
	}
	if err := c.deps.Spending.SetLimits(ctx, in.session.ID(), scope, limits); err != nil {
		return "", fmt.Errorf("the budget could not be changed: %w", err)
	}
	return c.showBudget(ctx, in.session), nil
}

// showBudget lists the limits that apply to a chat, and says if its model has no price.
func (c *Commands) showBudget(ctx context.Context, session *chat.Session) string {
	limits, err := c.deps.Spending.Limits(ctx, session.ID())
	var b strings.Builder
	if len(limits) == 0 {
		b.WriteString("This chat has no budget: `/budget chat $5` sets one, `budget` in the configuration one for all chats.\n")
	} else {
		b.WriteString("| budget of | spent | from |\n|---|---|---|\n")
	}
	for _, l := range limits {
		from := "configuration"
		if l.Own {
			from = "/budget"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.Scope, l.Text(), from)
	}
	if slices.ContainsFunc(limits, budget.Limit.IsMoney) {
		b.WriteString(c.unpricedNote(session))
	}
	b.WriteString(uncountedNote(err))
	return b.String()
}

// unpricedNote returns a note that the price of a chat's model is not known; empty if it is.
func (c *Commands) unpricedNote(session *chat.Session) string {
	m, err := c.deps.Models.Resolve(session.Meta().Model, "")
	if err != nil || m.Cost.Input != nil && m.Cost.Output != nil {
		return "" // the next prompt reports the error
	}
	return fmt.Sprintf("\n"+budget.PriceUnknown+"\n", escape(m.ID))
}

// uncountedNote returns a note that the spending of other processes is not included, if err is not nil.
func uncountedNote(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("\nOnly this process is counted, because the record of spending cannot be read: %s\n", escape(err.Error()))
}

// recentSpending shows the recent spending of all chats.
func (c *Commands) recentSpending(ctx context.Context) string {
	r, err := c.deps.Spending.Report(ctx)
	var b strings.Builder
	if len(r.Month) > 0 {
		b.WriteString("\nAll your chats on this machine:\n\n| period | model | requests | tokens | cost |\n|---|---|---|---|---|\n")
		for _, p := range []struct {
			name string
			list []budget.ModelUsage
		}{{"today", r.Today}, {"this month", r.Month}} {
			writeUsed(&b, p.name, "all", budget.Sum(p.list))
			for _, u := range p.list {
				writeUsed(&b, p.name, u.Model, u)
			}
		}
		if rate := costText(budget.Sum(r.LastHour)); rate == unknownCost {
			b.WriteString("\nThe rate is not known: the models of the last 60 minutes have no prices.\n")
		} else {
			fmt.Fprintf(&b, "\nThe rate is **%s per hour**: what the last 60 minutes cost.\n", rate)
		}
	}
	return b.String() + uncountedNote(err)
}

func writeUsed(b *strings.Builder, period, model string, u budget.ModelUsage) {
	fmt.Fprintf(b, "| %s | %s | %d | %s | %s |\n", period, model, u.Requests, thousands(u.Tokens), costText(u))
}

const unknownCost = "unknown"

// costText returns the cost of usage, or unknownCost if no request had a price.
func costText(u budget.ModelUsage) string {
	if u.Priced == 0 && u.Requests > 0 {
		return unknownCost
	}
	return budget.Dollars(u.Cost)
}
