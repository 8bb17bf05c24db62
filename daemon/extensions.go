package daemon

import (
	"context"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions"
)

// Extensions returns what users added in files, as of the last turn or change. The first
// call reads them; nothing before the answer to initialize makes one.
func (d *Daemon) Extensions() *extensions.Set {
	if set := d.set.Load(); set != nil {
		return set
	}
	return d.refreshExtensions()
}

// refreshExtensions takes over what changed in the files of extensions. Each turn begins
// with it, so that a change counts from the next turn on, whatever the system says about
// it and when.
func (d *Daemon) refreshExtensions() *extensions.Set {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.extendLocked()
	return d.set.Load()
}

// extendLocked reads what has changed and puts it into effect.
func (d *Daemon) extendLocked() {
	plugged := d.plugLocked()
	cfg := d.config.Load()
	paths := func(entries []config.PathEntry) (out []string) {
		for _, e := range entries {
			out = append(out, e.Path)
		}
		return out
	}
	before := d.set.Load()
	set, changed := d.loader.Load(extensions.Inputs{
		ConfigHome: config.Home(d.opts.Getenv),
		Roots:      d.workspace.Load().Roots(),
		Rules:      paths(cfg.Rules),
		Commands:   paths(cfg.Commands),
		Skills:     paths(cfg.Skills),
		Pure:       cfg.PureConfig,
		Trusts:     d.trustsLocked,
		Gone:       d.absent.gone,
		Claude:     cfg.ClaudeFiles,
		ClaudeHome: d.claudeHome(),
		Plugins:    d.pluginFolders(),
		Expand: func(text, dir, plugin string) (string, []string, error) {
			return cfg.Expand(context.Background(), text, config.Place{Dir: dir, Plugin: plugin}) // commands have a time limit
		},
	})
	d.set.Store(set)
	switch {
	case changed && (before != nil || !set.Empty()):
		d.loadLocked(true) // with other agents and tools
	case !plugged:
		return // everything is as it was
	}
	select {
	case d.extended <- struct{}{}:
	default:
	}
}
