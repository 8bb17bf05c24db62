package daemon

import (
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/workspace"
)

// FindFiles answers a query for files and folders.
func (s *services) FindFiles(ctx context.Context, roots []string, query string) ([]workspace.Found, error) {
	return s.finder.Find(ctx, roots, query)
}

// StartupTasks lists the tasks that run once after the start.
func (d *Daemon) StartupTasks() []chat.StartupTask {
	return append([]chat.StartupTask{
		{ID: "models", Title: "Syncing models", Run: d.SyncModels},
		{ID: "mcp-servers", Title: "Initializing MCP servers", Run: d.StartMCPServers},
		{ID: "plugins", Title: "Resolving plugins", Run: d.SyncPlugins},
		{ID: "cleanup", Title: "Cleaning up", Run: func(ctx context.Context) {
			d.cleanUp(ctx)
			d.daily.begin(d.cleanDaily)
		}},
		{ID: "import", Title: "Looking for earlier chats", Run: func(ctx context.Context) { d.ImportReference(ctx) }},
	}, d.remote.tasks(d.Config().Remote.Enabled)...)
}

// SyncModels asks providers for their models. It may take seconds.
func (d *Daemon) SyncModels(ctx context.Context) {
	d.awaitCommands(ctx) // without their keys, providers do not answer
	d.ListModels(ctx)
}
