package daemon

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/workspace"
)

// FindFiles answers a query for files and folders.
func (d *Daemon) FindFiles(ctx context.Context, roots []string, query string) ([]workspace.Found, error) {
	return d.finder.Find(ctx, roots, query)
}

// Tasks lists the work that is done once, after the start.
func (d *Daemon) Tasks() []chat.Task {
	return append([]chat.Task{
		{ID: "models", Title: "Syncing models", Run: d.SyncModels},
		{ID: "mcp-servers", Title: "Initializing MCP servers", Run: d.StartMCPServers},
		{ID: "plugins", Title: "Resolving plugins", Run: d.SyncPlugins},
		{ID: "cleanup", Title: "Cleaning up", Run: func(ctx context.Context) {
			d.cleanUp(ctx)
			d.daily.begin(func(ctx context.Context) { daily(ctx, d.cleanUp) })
		}},
		{ID: "import", Title: "Looking for earlier chats", Run: func(ctx context.Context) { d.ImportReference(ctx) }},
	}, d.remote.tasks(d.Config().Remote.Enabled)...)
}

// maxUndoAge is how long a change of a file can be undone.
const maxUndoAge = 30 * 24 * time.Hour

func (d *Daemon) cleanUp(ctx context.Context) {
	d.indexer.begin()
	if age := d.retention(); age > 0 {
		d.expire(ctx, age)
	}
	undoAge := d.undoAge()
	if _, _, err := d.current().storage.artifacts.Collect(ctx, nil, undoAge); err != nil && ctx.Err() == nil {
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
	d.ListModels(ctx)
}
