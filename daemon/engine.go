package daemon

import (
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/tools"
)

// newEngine wires the engine: what chats need is read when they need it, so that changes of
// the configuration count.
func (d *Daemon) newEngine() *chat.Engine {
	return chat.New(chat.Deps{
		Store:        d.opts.WrapStore(recordedStore{d.store, d.calls}),
		Models:       d.models,
		ModelIDs:     d.models.ids,
		Contexts:     jobNews{pointing{contexts.Local{Mapper: d.maps, Web: webPages{d}, Resources: servedResources{d}}, &d.finder}, d},
		Instructions: contexts.Nested,
		Tools:        d.Tools,
		AwaitTools:   d.mcp.AwaitTools,
		Policy:       func() tools.Policy { return d.policy.Load() },
		Files:        inUse{d.undo, &d.finder},
		Commands:     d.commands,
		Hooks:        d.hooks.Load,
		Refresh:      func() { d.refreshExtensions() },
		System:       d.systemSources(),
		Machine:      d.machine(),
		Config:       func() *config.Config { return d.config.Load().Config },
		Roots:        func() []string { return d.workspace.Load().Roots() },
		Now:          d.opts.Now,
		NewID:        d.opts.NewID,
		Log:          d.opts.Log,
	})
}

// newInline wires rewrites and completions.
func (d *Daemon) newInline() *inline.Engine {
	return inline.New(inline.Deps{
		Machine: d.machine(),
		Models:  d.models,
		Config:  d.Config,
		Roots:   func() []string { return d.workspace.Load().Roots() },
		Now:     d.opts.Now,
	})
}
