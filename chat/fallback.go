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

// If the model of a turn cannot be used, the turn continues with the next of its fallback models. The
// model of the chat does not change: the next prompt asks it first. Fallback models of fallback models
// are ignored, so two models may be fallbacks for each other.

// fallbackPatience is how long a request is retried while another model can take over.
const fallbackPatience = 3 * time.Second

// fallbacks are the models that can still take over a turn.
type fallbacks struct {
	models     []Model
	problems   []string // errors of fallback models that cannot be used, until they are reported
	firstModel string   // the model that the turn began with
}

// chooseFallbacks resolves the fallback models of the turn and skips those that cannot be used.
func (t *turn) chooseFallbacks() {
	t.fallbacks.firstModel = t.model.displayName()
	ids := []string{t.model.ID}
	for _, name := range t.Config.Fallbacks(t.agent, t.model.ID) {
		if name == "" { // the name of the default model; config check reports it
			continue
		}
		if !strings.Contains(name, "/") {
			t.fallbacks.problems = append(t.fallbacks.problems, name+" does not name its provider")
			continue
		}
		m, err := t.Models.Resolve(name, "")
		switch {
		case err != nil:
			t.fallbacks.problems = append(t.fallbacks.problems, err.Error())
		case m.Impossible != "":
			t.fallbacks.problems = append(t.fallbacks.problems, m.Impossible)
		case !slices.Contains(ids, m.ID):
			t.fallbacks.models, ids = append(t.fallbacks.models, m), append(ids, m.ID)
		}
	}
}

// patience returns how long a request is retried; 0 means that only the model's retry policy applies.
func (f *fallbacks) patience() time.Duration {
	if len(f.models) == 0 {
		return 0
	}
	return fallbackPatience
}

// fallBack switches the turn to the next fallback model and notifies the user. It returns false if
// another model would not help, or if no model is left.
func (t *turn) fallBack(err error) bool {
	var e *llm.Error
	if t.ctx.Err() != nil || !errors.As(err, &e) || !e.Replaceable() {
		return false
	}
	f := &t.fallbacks
	for _, problem := range f.problems {
		t.rec.showNotice(fmt.Sprintf("\n\nA fallback model is skipped: %s. Correct fallbackModels in the configuration.\n", strings.TrimRight(problem, ". ")))
	}
	f.problems = nil
	if len(f.models) == 0 {
		return false
	}
	failed := t.model.displayName()
	t.model, f.models = f.models[0], f.models[1:]
	text := fmt.Sprintf("\n\n%s cannot be used: %s %s continues this turn; the next prompt asks %s first.", failed, sentence(err), t.model.displayName(), f.firstModel)
	if withheld := t.model.describeWithheld(read(t.rec, (*history.History).Messages)); withheld != "" {
		text += fmt.Sprintf(" %s %s.", t.model.displayName(), withheld)
	}
	t.rec.emit(event.Notice{Text: text + "\n\n"})
	t.rec.showProgress(progressWaiting)
	return true
}
