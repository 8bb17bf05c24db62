package daemon

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Roots returns the workspace folders.
func (d *Daemon) Roots() []string { return d.workspace.Load().Roots() }

// FindFiles answers a query for files and folders.
func (d *Daemon) FindFiles(ctx context.Context, roots []string, query string) ([]workspace.Found, error) {
	return d.finder.Find(ctx, roots, query)
}

// ModelChoice returns the choice of models, as far as it is known without the
// network.
func (d *Daemon) ModelChoice() chat.ModelChoice {
	return chat.ModelChoice{IDs: d.models.ids(), Default: d.models.defaultID()}
}

// Variants lists the variants of a model; ok is false if the model can not be used.
func (d *Daemon) Variants(model string) (variants []string, ok bool) {
	if model == "" {
		return []string{}, false
	}
	_, err := d.models.resolve(model, "")
	return d.models.variants(model), err == nil
}

// Tasks lists the work that is done once, after the start.
func (d *Daemon) Tasks() []chat.Task {
	return []chat.Task{
		{ID: "models", Title: "Syncing models", Run: d.SyncModels},
		{ID: "mcp-servers", Title: "Initializing MCP servers", Run: d.StartMCPServers},
		{ID: "plugins", Title: "Resolving plugins", Run: d.SyncPlugins},
		{ID: "cleanup", Title: "Cleaning up", Run: d.cleanUp},
		{ID: "import", Title: "Looking for earlier chats", Run: func(ctx context.Context) { d.ImportReference(ctx) }},
	}
}

// undoAge is how long a change of a file can be undone.
const undoAge = 30 * 24 * time.Hour

func (d *Daemon) cleanUp(ctx context.Context) {
	if _, _, err := d.artifacts.Load().Collect(ctx, nil, undoAge); err != nil && ctx.Err() == nil {
		d.opts.Log.Warn("old artifacts could not be removed", "err", err)
	}
	if err := d.undo.Clean(ctx, undoAge); err != nil && ctx.Err() == nil {
		d.opts.Log.Warn("what was kept to undo commands could not be cleaned up", "err", err)
	}
	if err := d.calls.Trim(ctx); err != nil && ctx.Err() == nil {
		d.opts.Log.Warn("the journal could not be trimmed", "err", err)
	}
}

// KeepClean removes what is kept no longer, now and each day until ctx ends: for processes
// that stay and have no start of which tasks are part.
func (d *Daemon) KeepClean(ctx context.Context) {
	tick := time.NewTicker(24 * time.Hour)
	defer tick.Stop()
	for {
		d.cleanUp(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// SyncModels asks providers what they offer. It may take seconds.
func (d *Daemon) SyncModels(ctx context.Context) {
	d.settle(ctx) // without their keys, providers do not answer
	d.models.sync(ctx)
}

// ToolChoices lists the native tools for an agent.
func (d *Daemon) ToolChoices(agent string) []tools.Choice {
	policy := d.policy.Load()
	var out []tools.Choice
	for _, t := range d.Tools().All() {
		spec := t.Spec()
		if spec.Server == tools.Native {
			disabled := policy.Hidden(agent, spec)
			if spec.For != nil {
				_, offered := spec.For(agent)
				disabled = disabled || !offered
			}
			out = append(out, tools.Choice{Spec: spec, Disabled: disabled})
		}
	}
	return out
}
