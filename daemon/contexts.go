package daemon

import (
	"context"

	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/workspace"
)

// pointing tells the finder which files the user points at: those are what is worked on,
// and come first where several answer a query equally well.
type pointing struct {
	contexts.Source
	finder *workspace.Finder
}

// Resolve implements contexts.Source.
func (p pointing) Resolve(ctx context.Context, q contexts.Query) ([]contexts.Block, []string) {
	var paths []string
	for _, r := range q.Refs {
		if (r.Type == "file" || r.Type == "cursor") && r.Path != "" {
			paths = append(paths, workspace.Abs(q.Roots, r.Path))
		}
	}
	p.finder.Touch(paths...)
	return p.Source.Resolve(ctx, q)
}
