package budget

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

// ModelUsage is the usage of the requests to a model.
type ModelUsage struct {
	Model            string
	Requests, Priced int // Priced is the number of requests with a known price
	config.Amount
}

// Report is the usage of all chats of the user, by model, the most expensive first.
type Report struct {
	LastHour, Today, Month []ModelUsage
}

// Report returns the recent usage. If it returns an error, the report includes only the usage of this
// process.
func (k *Keeper) Report(ctx context.Context) (out Report, err error) {
	today := k.today()
	month := time.Date(today.Year(), today.Month(), 1, 0, 0, 0, 0, time.Local)
	since := func(from time.Time) []ModelUsage {
		by, sinceErr := k.ledger.Since(ctx, from)
		err = cmp.Or(err, sinceErr) // all periods have the same error
		return byCost(by)
	}
	return Report{LastHour: since(k.opts.Now().Add(-time.Hour)), Today: since(today), Month: since(month)}, err
}

func byCost(by map[string]spending.Usage) (out []ModelUsage) {
	for _, model := range slices.Sorted(maps.Keys(by)) {
		if u := by[model]; model != "" {
			out = append(out, ModelUsage{model, u.Requests, u.Priced, u.Amount})
		}
	}
	slices.SortStableFunc(out, func(a, b ModelUsage) int { return cmp.Compare(b.Cost, a.Cost) })
	return out
}

// Sum adds up a list.
func Sum(list []ModelUsage) (sum ModelUsage) {
	for _, u := range list {
		sum.Requests, sum.Priced, sum.Amount = sum.Requests+u.Requests, sum.Priced+u.Priced, sum.Plus(u.Amount)
	}
	return sum
}

// Chat returns what a chat has used, including requests that were rolled back later.
func (k *Keeper) Chat(ctx context.Context, chatID string) (config.Amount, error) {
	return k.ledger.Chat(ctx, chatID)
}

// Limits returns the limits that apply to a chat, with the amounts spent. If it returns an error, the
// amounts include only the usage of this process.
func (k *Keeper) Limits(ctx context.Context, chatID string) ([]Limit, error) {
	return k.currentLimits(ctx, chatID)
}

// SetLimits replaces the configured limits of a turn, a chat or a day for one chat; an empty list
// removes them.
func (k *Keeper) SetLimits(ctx context.Context, chatID, scope string, limits []string) error {
	known, err := k.ledger.Limits(ctx, chatID)
	if err != nil {
		return err
	}
	own := spending.OwnLimits{}
	maps.Copy(own, known)
	own[scope] = limits
	return k.setOwnLimits(ctx, chatID, own)
}

// ResetLimits makes the configured limits apply to a chat again.
func (k *Keeper) ResetLimits(ctx context.Context, chatID string) error {
	return k.setOwnLimits(ctx, chatID, spending.OwnLimits{})
}

func (k *Keeper) setOwnLimits(ctx context.Context, chatID string, own spending.OwnLimits) error {
	err := k.ledger.SetLimits(ctx, chatID, own)
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.turns[chatID]; t != nil && err == nil {
		t.ownLimits = own
	}
	return err
}
