package daemon

import (
	"context"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat/importer"
	"github.com/seed-dec29ce4/eca/internal/doctor"
)

// ImportReference imports the chats that the reference server stored for the current workspace. If
// there are any, it may take seconds; chats can be used meanwhile.
func (d *Daemon) ImportReference(ctx context.Context) importer.Report {
	r := importer.Import(ctx, d.store, d.opts.CacheDir, d.Roots())
	for _, err := range r.Problems {
		d.opts.Log.Warn("chat of the reference server could not be imported", "err", err)
	}
	if len(r.Imported) > 0 {
		notice := fmt.Sprintf("Imported %s of this workspace from the reference server. The files of that server were not changed.", doctor.Count(len(r.Imported), "chat"))
		d.importNotice.Store(&notice)
		d.opts.Log.Info("chats of the reference server imported", "chats", len(r.Imported), "left out", r.LeftOut)
	}
	return r
}
