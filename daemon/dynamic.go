package daemon

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/settings"
)

// configCommands runs the ${cmd:...} of the configuration.
func (s *services) configCommands() settings.Commands {
	return settings.Commands{Children: s.children, Getenv: s.opts.Getenv, Mark: s.opts.NoCommands}
}

// toolText returns the description of a native tool, for ${classpath:prompts/tools/...}.
// A tool that needs what the client cannot do is not known.
func (b *toolbox) toolText(name string) (string, bool) {
	cfg := &config.Loaded{Config: &config.Config{}}
	cfg.ToolCall.EditorNav.Enabled = true
	for _, t := range b.builtIn(bare(cfg, b.current().client)) {
		if spec := t.Spec(); spec.Name == name {
			return spec.Description, true
		}
	}
	return "", false
}

// patience is how long a load waits for commands of the configuration: a client waits for
// the answer to initialize. Prompts wait until they are done.
const patience = 2 * time.Second

// settle waits for commands of the configuration that still run, and takes their results.
func (d *Daemon) settle(ctx context.Context) {
	if cfg := d.Config(); cfg == nil || !cfg.Pending {
		return
	}
	d.dynamic.Wait(ctx)
	d.reload()
}
