package daemon

import (
	"github.com/seed-dec29ce4/eca/chat/importer"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
)

// newHooks returns the hooks of a configuration, and adds what is wrong with them to its
// problems.
func (d *Daemon) newHooks(cfg *config.Loaded) *hooks.Set {
	set, problems := hooks.New(hooks.FromConfig(cfg), hooks.Options{
		Executable: d.opts.Executable, Supervisor: d.opts.Supervisor,
		Store:   d.store.Path,
		Session: importer.Folder,
		NewID:   d.opts.NewID, Log: d.opts.Log,
	})
	for _, p := range problems {
		origin, _ := cfg.Origin("hooks", p.Name)
		if origin.Source == "" {
			origin.Source = p.Source
		}
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: origin, Cause: "hooks." + p.Name + ": " + p.Cause})
	}
	return set
}
