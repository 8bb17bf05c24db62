package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// A turn whose model cannot be used goes on with the next of its fallback models. The chat keeps its
// model: the next prompt asks that one first. The lists of fallback models are not followed, so two
// models may stand in for each other.

// fallbackPatience bounds the repetitions of a request while another model can take over.
const fallbackPatience = 3 * time.Second

// fallbacks are the models that can still take over a turn.
type fallbacks struct {
	models   []Model
	problems []string // of those that cannot be used, until they are reported
	first    string   // the model that the prompt asked
}

// chooseFallbacks resolves the fallback models of the turn. Those that cannot be used are skipped.
func (t *turn) chooseFallbacks() {
	t.fallbacks.first = t.model.shown()
	seen := []string{t.model.ID}
	for _, name := range t.Config.Fallbacks(t.agent, t.model.ID) {
		if name == "" { // the name of the default model; config check reports it
			continue
		}
		current := t.model.ID
		if strings.Contains(name, "/") { // it names its provider; another's model with that name is not meant
			current = ""
		}
		m, err := t.Models.Resolve(name, current)
		switch {
		case err != nil:
			t.fallbacks.problems = append(t.fallbacks.problems, err.Error())
		case !slices.Contains(seen, m.ID):
			t.fallbacks.models, seen = append(t.fallbacks.models, m), append(seen, m.ID)
		}
	}
}

// patience is how long repetitions of a request may take; 0 means that the model's policy says so.
func (f *fallbacks) patience() time.Duration {
	if len(f.models) == 0 {
		return 0
	}
	return fallbackPatience
}

// fallBack makes the next fallback model that of the turn, and says so in the chat. It returns false
// if another model would not help, or if no model is left.
func (t *turn) fallBack(err error) bool {
	var e *llm.Error
	if t.ctx.Err() != nil || !errors.As(err, &e) || !e.Replaceable() {
		return false
	}
	f := &t.fallbacks
	for _, problem := range f.problems {
		t.rec.say(fmt.Sprintf("\n\nA fallback model is skipped: %s. Correct fallbackModels in the configuration.\n", strings.TrimRight(problem, ". ")))
	}
	f.problems = nil
	if len(f.models) == 0 {
		return false
	}
	failed := t.model.shown()
	t.model, f.models = f.models[0], f.models[1:]
	text := fmt.Sprintf("\n\n%s cannot be used: %s %s continues this turn; the next prompt asks %s first.", failed, sentence(err), t.model.shown(), f.first)
	if lost := t.model.withheld(read(t.rec, (*history.History).Messages)); lost != "" {
		text += fmt.Sprintf(" %s %s.", t.model.shown(), lost)
	}
	t.rec.emit(event.Notice{Text: text + "\n\n"})
	t.rec.enter(progressWaiting)
	return true
}
