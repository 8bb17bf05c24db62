package daemon

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/settings"
)

// configCommands returns the runner for ${cmd:...} in the configuration.
func (s *services) configCommands() settings.Commands {
	return settings.Commands{Children: s.children, Getenv: s.opts.Getenv, Mark: s.opts.CommandTime < 0}
}

// toolText returns the description of a native tool, for ${classpath:prompts/tools/...}. ok is
// false for tools that the client does not support.
func (b *toolbox) toolText(name string) (text string, ok bool) {
	cfg := &config.Loaded{Config: &config.Config{}}
	cfg.ToolCall.EditorNav.Enabled = true
	for _, t := range b.builtIn(bareSnapshot(cfg, b.current().client)) {
		if spec := t.Spec(); spec.Name == name {
			return spec.Description, true
		}
	}
	return "", false
}

// maxCommandWait is how long loading the configuration waits for its commands, because a client is
// waiting for the answer to initialize. Prompts wait until the commands are done.
const maxCommandWait = 2 * time.Second

// awaitCommands waits for commands of the configuration that are still running, and applies their
// results.
func (d *Daemon) awaitCommands(ctx context.Context) {
	if cfg := d.Config(); cfg == nil || !cfg.Pending {
		return
	}
	d.dynamic.Wait(ctx)
	d.reload()
}
