package chat

import (
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// turnRecord appends the events of one turn to the log and to the history that the model is sent.
// Events have one order, and none follows the terminal event.
type turnRecord struct {
	log   *eventlog.Log
	turn  string             // its id
	watch []func(event.Body) // see each event in its order, under mu: they must not wait
	// report passes each event of a child turn to its parent. It is called without the lock: no
	// turn takes another turn's lock while it holds its own. May be nil.
	report func(event.Body)
	ended  chan struct{} // closed when the terminal event is out

	mu      sync.Mutex // guards what follows, and the order of events
	history *history.History
	phase   string              // the last progress
	scripts []event.HookStarted // that run and are shown
	end     *event.TurnFinished // once it is out; nothing may follow
}

// emit records events of the turn. After the terminal event nothing is recorded.
func (r *turnRecord) emit(bodies ...event.Body) {
	r.mu.Lock()
	bodies = r.add(bodies)
	r.mu.Unlock()
	if r.report != nil {
		for _, b := range bodies {
			r.report(b)
		}
	}
}

// say shows the user a notice.
func (r *turnRecord) say(text string) { r.emit(event.Notice{Text: text}) }

// enter shows a progress text unless it is already shown.
func (r *turnRecord) enter(phase string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase != phase {
		r.add([]event.Body{event.Progress{Text: phase}})
	}
}

// finish records what compose returns, and then the end of the turn. compose gets the history and
// the running hook scripts, which cannot change until the end is recorded.
func (r *turnRecord) finish(end event.TurnFinished, compose func(h *history.History, scripts []event.HookStarted) []event.Body) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end == nil {
		r.add(append(compose(r.history, r.scripts), end))
	}
}

// add records events and returns them as they are stored. The caller holds mu.
func (r *turnRecord) add(bodies []event.Body) []event.Body {
	if r.end != nil {
		return nil
	}
	for i, b := range bodies {
		b = event.Stored(b)
		bodies[i] = b
		r.history.Add(b)
		for _, see := range r.watch {
			see(b)
		}
		switch b := b.(type) {
		case event.Progress:
			r.phase = b.Text
		case event.HookStarted:
			r.scripts = append(r.scripts, b)
		case event.HookFinished:
			r.scripts = slices.DeleteFunc(r.scripts, func(s event.HookStarted) bool { return s.ID == b.ID })
		case event.TurnFinished:
			r.end = &b
		default:
		}
	}
	r.log.Append(r.turn, bodies...)
	if r.end != nil {
		close(r.ended)
	}
	return bodies
}

// ending returns the terminal event; the zero value before it is out.
func (r *turnRecord) ending() event.TurnFinished {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end == nil {
		return event.TurnFinished{}
	}
	return *r.end
}

// read queries the history of a turn.
func read[T any](r *turnRecord, question func(*history.History) T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return question(r.history)
}

// change alters state of the history that does not come from events.
func (r *turnRecord) change(alter func(*history.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	alter(r.history)
}
