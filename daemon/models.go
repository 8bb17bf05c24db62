package daemon

import (
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/budget"
	"github.com/seed-dec29ce4/eca/daemon/providers"
)

// engineModels implements chat.Models with the providers, and counts usage.
type engineModels struct {
	providers.Resolver
	spending *budget.Keeper
}

// Resolve implements chat.Models.
func (m engineModels) Resolve(name, current string) (chat.Model, error) {
	found, err := m.Resolver.Resolve(name, current)
	if err == nil {
		found.Client = m.spending.Model(found.Client, found.ID, found.Cost)
	}
	return chat.Model(found), err
}

// ModelChoice returns the choice of models, without using the network.
func (d *Daemon) ModelChoice() chat.ModelChoice {
	ids, defaultID := d.Choice()
	return chat.ModelChoice{IDs: ids, Default: defaultID}
}

// Cost returns what the requests of a chat have cost, in dollars.
func (d *Daemon) Cost(ctx context.Context, chatID string) (float64, error) {
	used, err := d.spending.Chat(ctx, chatID)
	return used.Cost, err
}
