package chat

import (
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/contexts"
)

// instructionsIntroduction stands in front of what comes with a result.
const instructionsIntroduction = "What the project wants you to follow in the folders that this call is about, from files in them. Where it disagrees with what you know, the file nearer to what you work on counts.\n"

// instructions returns what the folders that a call touches want the model to know, as far
// as the model does not know it (eca-features 11). Calls ask one after the other, so that
// of several the first one gets it.
func (t *turn) instructions(paths []string) []event.Instructions {
	find := t.s.eng.deps.Instructions
	if find == nil || len(paths) == 0 {
		return nil
	}
	q := contexts.NestedQuery{Roots: t.roots, Paths: paths, Claude: t.cfg.ClaudeMDFallback, Known: t.instructed}
	t.mu.Lock()
	for _, known := range t.history.instructed {
		q.Known = append(q.Known[:len(q.Known):len(q.Known)], known...)
	}
	t.mu.Unlock()
	files, problems := find(t.ctx, q)
	for _, p := range problems {
		t.s.eng.deps.Log.Info("instructions of a folder are left out", "cause", p)
	}
	var out []event.Instructions
	for _, f := range files {
		t.instructed = append(t.instructed, f.Path)
		out = append(out, event.Instructions{Path: f.Path, Text: f.Render()})
	}
	return out
}

// joinInstructions adds instructions to a result.
func joinInstructions(text string, list []event.Instructions) string {
	if len(list) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString("\n" + instructionsIntroduction)
	for _, i := range list {
		b.WriteString(strings.TrimRight(i.Text, "\n") + "\n")
	}
	return b.String()
}
