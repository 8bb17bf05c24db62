package daemon

import (
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/tools"
)

// ModelChoice returns the choice of models, as far as it is known without the
// network.
func (d *Daemon) ModelChoice() chat.ModelChoice {
	def := d.models.defaultID()
	return chat.ModelChoice{IDs: d.models.ids(), Default: def, Variants: d.models.variants(def)}
}

// SyncModels asks providers what they offer. It may take seconds.
func (d *Daemon) SyncModels(ctx context.Context) { d.models.sync(ctx) }

// ToolChoices lists the native tools for an agent.
func (d *Daemon) ToolChoices(agent string) []tools.Choice {
	policy := d.policy.Load()
	var out []tools.Choice
	for _, t := range d.Tools().All() {
		spec := t.Spec()
		if spec.Server == tools.Native {
			out = append(out, tools.Choice{Spec: spec, Disabled: policy.Hidden(agent, spec)})
		}
	}
	return out
}
