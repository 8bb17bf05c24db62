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

// run is one turn of the engine: a step, or several steps if the model asks questions. A goroutine
// (follow) reads the events of the turn, and steps wait for conditions on the state that it updates.
type run struct {
	agent    *Agent
	settings *settings
	session  *chat.Session
	turn     string // id
	cancel   context.CancelFunc
	over     chan struct{} // closed when the turn has ended and all its events have been read

	children map[string]*child // subagents by the id of their call; owned by follow

	mu       sync.Mutex    // guards the fields below
	changed  chan struct{} // closed and replaced at each update
	record   *record
	seen     event.Seq        // the last event that was read
	started  []string         // ids of the turn's own calls that were started, in order
	passed   map[callKey]bool // calls that the budget allowed to run, including those of subagents
	refused  map[callKey]bool // calls that the budget did not allow to run
	ran      int              // calls that were allowed to run in this step
	running  map[string]bool  // the turn's own calls that were allowed to run and have not ended
	stop     string           // why the turn must stop (ecp.Stop...); empty if it need not
	stopNow  bool             // stop without waiting for running calls
	question *question        // the question that waits for an answer, or nil
	failed   error            // the error of reading the events
}

// callKey identifies a call, because ids are unique only within their chat.
type callKey struct{ chat, id string }

// begin starts to follow a turn that is about to be submitted.
func (a *Agent) begin(session *chat.Session) *run {
	ctx, cancel := context.WithCancel(a.ctx)
	r := &run{
		agent: a, settings: a.settings, session: session, turn: a.opts.NewID(), cancel: cancel, over: make(chan struct{}), changed: make(chan struct{}),
		passed: map[callKey]bool{}, refused: map[callKey]bool{}, running: map[string]bool{}, children: map[string]*child{},
		record: newRecord([]string{a.settings.Workspace, workspace.Resolve(a.settings.Workspace)}, a.opts.Now()),
	}
	from := session.Next()
	a.work.Go(func() {
		defer close(r.over)
		defer cancel()
		r.follow(ctx, from)
	})
	return r
}

// follow reads the events of the turn until it ends, and decides about its calls.
func (r *run) follow(ctx context.Context, from event.Seq) {
	defer r.drainChildren()
	for e, err := range r.session.Events(ctx, from) {
		if err != nil {
			r.update(func() { r.failed = err })
			return
		}
		if e.Turn == r.turn {
			r.decide(r.session, e.Body)
			r.drainChild(e.Body)
			r.recordEvent(e)
			r.startChild(ctx, e.Body)
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

// update runs change under the lock, and wakes the goroutines in await.
func (r *run) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits until a condition holds, the turn has ended, or ctx has ended. It reports whether the
// condition holds. It calls holds under the lock.
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

// waitForReader waits until follow has read all events that exist now.
func (r *run) waitForReader(ctx context.Context) {
	next := r.session.Next()
	r.await(ctx, func() bool { return r.seen+1 >= next })
}

// decide approves or refuses a call that needs approval, according to the approval policy. The model
// gets a refusal as an error, and continues.
func (r *run) decide(session *chat.Session, body event.Body) {
	b, ok := body.(event.ToolJudged)
	if !ok || !b.Manual {
		return
	}
	session.Decide(b.CallID, chat.Decision{Approve: r.settings.approves(b), Auto: true, GoOn: true})
}

// admitCall reports whether a call may run within the budget. If not, the turn is stopped as soon as the
// running calls have ended.
func (r *run) admitCall(ctx context.Context, call tools.Call, budgets ecp.Budgets) bool {
	if budgets.MaxToolCalls > 0 || budgets.MaxCostUSD > 0 {
		r.waitForReader(ctx)
		r.await(ctx, func() bool { return r.isNext(call.ID) })
	}
	passed, key := false, callKey{call.ChatID, call.ID}
	r.update(func() {
		if r.stop == "" && budgets.MaxToolCalls > 0 && r.ran >= budgets.MaxToolCalls {
			r.stop = ecp.StopToolCalls
		}
		if r.stop != "" {
			r.refused[key] = true
			// While a subagent's call waits, the call that started the subagent cannot end.
			r.stopNow = r.stopNow || call.Subagent()
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

// isNext reports whether the budget has been checked for all calls that were started before this
// one, so that of concurrent calls the first ones get the budget.
func (r *run) isNext(id string) bool {
	for _, before := range r.started {
		if before == id {
			break
		}
		if key := (callKey{r.session.ID(), before}); !r.passed[key] && !r.refused[key] {
			return false
		}
	}
	return true
}

// wasRun reports whether a call has run, or was running when it was stopped.
func (r *run) wasRun(c *call) bool {
	key := callKey{c.chat, c.id}
	return !r.refused[key] && (c.state != stopped || r.passed[key])
}

// nextStep begins the record of another step of the turn. It is called while the turn waits for an
// answer.
func (r *run) nextStep() {
	r.update(func() {
		r.record = r.record.next(r.agent.opts.Now())
		r.ran, r.question = 0, nil
	})
}
