package daemon

import (
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/contexts"
)

// newEngine wires the engine. Its dependencies read the current configuration at each use, so that
// changes take effect.
func (d *Daemon) newEngine() *chat.Engine {
	return chat.New(chat.Deps{
		Store:        d.opts.WrapStore(recordedStore{d.store, d.journal, d.exporter, d.indexer, d.spending, d.Models}),
		Models:       engineModels{d.Models, d.spending},
		ModelIDs:     d.IDs,
		Contexts:     withJobReports{withMentionedFiles{contexts.Local{Mapper: d.maps, Web: webPages{d}, Resources: d.ContextResources()}, &d.finder}, d},
		Instructions: contexts.Nested,
		AwaitTools:   d.MCP().AwaitTools,
		Files:        withRecentFiles{d.undo, &d.finder},
		Commands:     d.commands,
		Refresh:      d.refreshExtensions,
		Current:      d.chatSnapshot,
		Budget:       d.spending,
		AskUser:      d.askUser,
		Machine:      d.machine(),
		Now:          d.opts.Now,
		NewID:        d.opts.NewID,
		Log:          d.opts.Log,
	})
}

// newInline wires rewrites and completions.
func (d *Daemon) newInline() *inline.Engine {
	return inline.New(inline.Deps{
		Machine: d.machine(),
		Models:  engineModels{d.Models, d.spending},
		Config:  d.Config,
		Roots:   d.Roots,
		Now:     d.opts.Now,
	})
}
