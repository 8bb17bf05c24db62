package chat

import (
	"slices"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/contexts"
)

// instructions returns the instruction files of the folders that a call touches, without those that
// the model has already got (eca-features.md 11). It is called for one call after the other, so the
// first call of a response that touches a folder gets its file.
func (t *callRunner) instructions(paths []string) []event.Instructions {
	find := t.session.eng.deps.Instructions
	if find == nil || len(paths) == 0 {
		return nil
	}
	q := contexts.NestedQuery{Roots: t.Roots, Paths: paths, Claude: t.Config.ClaudeMDFallback, Known: t.instructedFiles}
	q.Known = slices.Concat(q.Known, read(t.rec, (*history.History).InstructedFiles))
	files, problems := find(t.ctx, q)
	for _, p := range problems {
		t.session.eng.deps.Log.Info("instructions of a folder are left out", "cause", p)
	}
	var out []event.Instructions
	for _, f := range files {
		t.instructedFiles = append(t.instructedFiles, f.Path)
		out = append(out, event.Instructions{Path: f.Path, Text: f.Render()})
	}
	return out
}
