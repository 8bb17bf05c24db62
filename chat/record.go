package chat

import (
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// turnRecord appends the events of one turn to the log and to the history, in the same order. No event
// follows the terminal event.
type turnRecord struct {
	log   *eventlog.Log
	turn  string             // id of the turn
	watch []func(event.Body) // called with each event in order while mu is locked, so they must not wait
	// report passes each event of a child turn to its parent; it may be nil. emit calls it after
	// releasing mu, so that no turn locks another turn's record while it holds its own lock.
	report func(event.Body)
	ended  chan struct{} // closed when the terminal event has been appended

	mu           sync.Mutex // guards the fields below, and the order of events
	history      *history.History
	phase        string              // text of the last progress
	runningHooks []event.HookStarted // running actions of hooks
	end          *event.TurnFinished // the terminal event; nil until it is appended
}

// emit appends events of the turn. It does nothing after the terminal event.
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

// showNotice shows the user a notice.
func (r *turnRecord) showNotice(text string) { r.emit(event.Notice{Text: text}) }

// showProgress shows a progress text unless it is already shown.
func (r *turnRecord) showProgress(phase string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase != phase {
		r.add([]event.Body{event.Progress{Text: phase}})
	}
}

// finish appends the events that compose returns, and then the terminal event. It does nothing if the
// turn has already ended. compose gets the history and the running actions of hooks. No other event
// is appended between its events and the terminal event.
func (r *turnRecord) finish(end event.TurnFinished, compose func(h *history.History, runningHooks []event.HookStarted) []event.Body) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end == nil {
		r.add(append(compose(r.history, r.runningHooks), end))
	}
}

// add appends events and returns them as they are stored (event.Stored). The caller holds mu.
func (r *turnRecord) add(bodies []event.Body) []event.Body {
	if r.end != nil {
		return nil
	}
	for i, b := range bodies {
		b = event.StoredForm(b)
		bodies[i] = b
		r.history.Add(b)
		for _, watcher := range r.watch {
			watcher(b)
		}
		switch b := b.(type) {
		case event.Progress:
			r.phase = b.Text
		case event.HookStarted:
			r.runningHooks = append(r.runningHooks, b)
		case event.HookFinished:
			r.runningHooks = slices.DeleteFunc(r.runningHooks, func(s event.HookStarted) bool { return s.ID == b.ID })
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

// terminalEvent returns the terminal event, or the zero value if the turn has not ended.
func (r *turnRecord) terminalEvent() event.TurnFinished {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end == nil {
		return event.TurnFinished{}
	}
	return *r.end
}

// read returns the result of query for the history of a turn.
func read[T any](r *turnRecord, query func(*history.History) T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return query(r.history)
}

// withHistory calls fn with the history of the turn.
func (r *turnRecord) withHistory(fn func(*history.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn(r.history)
}
