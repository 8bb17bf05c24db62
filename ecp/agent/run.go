package agent

import (
	"context"
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// run is one turn of the engine: a step, or several if the model asks questions. Its own goroutine
// (follow) reads the events, and steps wait for the state that they need.
type run struct {
	agent    *Agent
	settings *settings
	session  *chat.Session
	turn     string // id
	cancel   context.CancelFunc
	over     chan struct{} // closed when the turn has ended and all its events were read

	children map[string]*child // by call; owned by follow

	mu       sync.Mutex // guards the fields below
	changed  chan struct{}
	record   *record
	seen     event.Seq        // the last event that was read
	started  []string         // calls of the turn itself that were about to run, in their order
	passed   map[callKey]bool // calls that were allowed to run, including those of subagents
	held     map[callKey]bool // calls that were not
	ran      int              // calls that were allowed to run in this step
	running  map[string]bool  // those of the turn itself that have not ended
	stop     string           // why to stop the turn (ecp.Stop...); empty: do not stop it
	hurry    bool             // stop without waiting for running calls
	question *question        // that waits for its answer
	failed   error            // the error of reading the log
}

// callKey names a call: ids are unique only within their chat.
type callKey struct{ chat, id string }

// begin starts to read a turn that is about to be submitted.
func (a *Agent) begin(session *chat.Session) *run {
	ctx, cancel := context.WithCancel(a.ctx)
	r := &run{
		agent: a, settings: a.settings, session: session, turn: a.newID(), cancel: cancel, over: make(chan struct{}), changed: make(chan struct{}),
		passed: map[callKey]bool{}, held: map[callKey]bool{}, running: map[string]bool{}, children: map[string]*child{},
		record: newRecord([]string{a.settings.Workspace, workspace.Resolve(a.settings.Workspace)}, a.now()),
	}
	from := session.Next()
	a.work.Go(func() {
		defer close(r.over)
		defer cancel()
		r.follow(ctx, from)
	})
	return r
}

// follow reads the turn to its end, and decides about its calls.
func (r *run) follow(ctx context.Context, from event.Seq) {
	defer r.leaveChildren()
	for e, err := range r.session.Events(ctx, from) {
		if err != nil {
			r.update(func() { r.failed = err })
			return
		}
		if e.Turn == r.turn {
			r.decide(r.session, e.Body)
			r.beforeChild(e.Body)
			r.recordEvent(e)
			r.behindChild(ctx, e.Body)
		}
		r.update(func() { r.seen = e.Seq })
		if _, ended := e.Body.(event.TurnFinished); ended && e.Turn == r.turn {
			return
		}
	}
}

// recordEvent records an event of the turn itself.
func (r *run) recordEvent(e event.Event) {
	_, budgets := r.agent.gate.current()
	r.update(func() {
		r.record.add(e, r.session.ID(), "")
		switch b := e.Body.(type) {
		case event.ToolStarted:
			r.started = append(r.started, b.CallID)
		case event.ToolFinished:
			delete(r.running, b.CallID)
		case event.ToolRejected:
			delete(r.running, b.CallID)
		case event.UsageReported:
			if budgets.MaxCostUSD > 0 && r.record.cost >= budgets.MaxCostUSD && r.stop == "" {
				r.stop = ecp.StopCost
			}
		default:
		}
	})
}

// update changes the run and notifies the waiting goroutines.
func (r *run) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits until a condition holds, the turn is over, or ctx has ended. ok reports whether the
// condition holds.
func (r *run) await(ctx context.Context, holds func() bool) (ok bool) {
	for {
		r.mu.Lock()
		ok, changed := holds(), r.changed
		r.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-r.over:
			r.mu.Lock()
			defer r.mu.Unlock()
			return holds()
		case <-ctx.Done():
			return false
		}
	}
}

// caughtUp waits until all events so far were read.
func (r *run) caughtUp(ctx context.Context) {
	next := r.session.Next()
	r.await(ctx, func() bool { return r.seen+1 >= next })
}

// decide decides in place of the user, according to the approval policy. A refusal is an error for
// the model, which continues.
func (r *run) decide(session *chat.Session, body event.Body) {
	b, ok := body.(event.ToolJudged)
	if !ok || !b.Manual {
		return
	}
	session.Decide(b.CallID, chat.Decision{Approve: r.settings.approves(b), Auto: true, GoOn: true})
}

// pass reports whether a call may run within the budget. If not, the turn is stopped as soon as the
// running calls have ended.
func (r *run) pass(ctx context.Context, call tools.Call, budgets ecp.Budgets) bool {
	if budgets.MaxToolCalls > 0 || budgets.MaxCostUSD > 0 {
		r.caughtUp(ctx)
		r.await(ctx, func() bool { return r.isNext(call.ID) })
	}
	passed, key := false, callKey{call.ChatID, call.ID}
	r.update(func() {
		if r.stop == "" && budgets.MaxToolCalls > 0 && r.ran >= budgets.MaxToolCalls {
			r.stop = ecp.StopToolCalls
		}
		if r.stop != "" {
			r.held[key] = true
			// The call that started its subagent cannot end while this one waits.
			r.hurry = r.hurry || call.Subagent()
			return
		}
		passed, r.passed[key] = true, true
		r.ran++
		if !call.Subagent() {
			r.running[call.ID] = true
		}
	})
	return passed
}

// isNext reports whether all calls that were started before a call were decided about: of
// concurrent calls, the first ones get the budget.
func (r *run) isNext(id string) bool {
	for _, before := range r.started {
		if before == id {
			break
		}
		if key := (callKey{r.session.ID(), before}); !r.passed[key] && !r.held[key] {
			return false
		}
	}
	return true
}

// ranAtAll reports whether a call ran, or had begun to run when it was stopped.
func (r *run) ranAtAll(c *call) bool {
	key := callKey{c.chat, c.id}
	return !r.held[key] && (c.state != stopped || r.passed[key])
}

// nextStep begins the record of another step of the turn. It is called while the turn waits for an
// answer.
func (r *run) nextStep() {
	r.update(func() {
		r.record = r.record.next(r.agent.now())
		r.ran, r.question = 0, nil
	})
}
