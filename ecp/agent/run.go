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
// (followTurn) reads the events of the turn, and steps wait for conditions on the state that it updates.
type run struct {
	agent    *Agent
	settings *settings
	session  *chat.Session
	turnID   string // id
	cancel   context.CancelFunc
	done     chan struct{} // closed when the turn has ended and all its events have been read

	children map[string]*child // subagents by the id of their call; owned by followTurn

	mu            sync.Mutex    // guards the fields below
	changed       chan struct{} // closed and replaced at each update
	record        *record
	lastRead      event.Seq        // the last event that was read
	startedCalls  []string         // ids of the turn's own calls that were started, in order
	admitted      map[callKey]bool // calls that the budget allowed to run, including those of subagents
	refused       map[callKey]bool // calls that the budget did not allow to run
	admittedCount int              // calls that were allowed to run in this step
	runningCalls  map[string]bool  // the turn's own calls that were allowed to run and have not ended
	stopReason    string           // why the turn must stop (ecp.Stop...); empty if it need not
	stopNow       bool             // stop without waiting for running calls
	question      *question        // the question that waits for an answer, or nil
	readErr       error            // the error of reading the events
}

// callKey identifies a call, because ids are unique only within their chat.
type callKey struct{ chat, id string }

// startRun starts to follow a turn that is about to be submitted.
func (a *Agent) startRun(session *chat.Session) *run {
	ctx, cancel := context.WithCancel(a.ctx)
	r := &run{
		agent: a, settings: a.settings, session: session, turnID: a.opts.NewID(), cancel: cancel, done: make(chan struct{}), changed: make(chan struct{}),
		admitted: map[callKey]bool{}, refused: map[callKey]bool{}, runningCalls: map[string]bool{}, children: map[string]*child{},
		record: newRecord([]string{a.settings.Workspace, workspace.Resolve(a.settings.Workspace)}, a.opts.Now()),
	}
	from := session.Next()
	a.work.Go(func() {
		defer close(r.done)
		defer cancel()
		r.followTurn(ctx, from)
	})
	return r
}

// followTurn reads the events of the turn until it ends, and decides about its calls.
func (r *run) followTurn(ctx context.Context, from event.Seq) {
	defer r.drainChildren()
	for e, err := range r.session.Events(ctx, from) {
		if err != nil {
			r.update(func() { r.readErr = err })
			return
		}
		if e.Turn == r.turnID {
			r.decideApproval(r.session, e.Body)
			r.drainChild(e.Body)
			r.recordEvent(e)
			r.startChild(ctx, e.Body)
		}
		r.update(func() { r.lastRead = e.Seq })
		if _, ended := e.Body.(event.TurnFinished); ended && e.Turn == r.turnID {
			return
		}
	}
}

// recordEvent records an event of the turn itself.
func (r *run) recordEvent(e event.Event) {
	_, budgets := r.agent.gate.currentRun()
	r.update(func() {
		r.record.add(e, r.session.ID(), "")
		switch b := e.Body.(type) {
		case event.ToolStarted:
			r.startedCalls = append(r.startedCalls, b.CallID)
		case event.ToolFinished:
			delete(r.runningCalls, b.CallID)
		case event.ToolRejected:
			delete(r.runningCalls, b.CallID)
		case event.UsageReported:
			if budgets.MaxCostUSD > 0 && r.record.cost >= budgets.MaxCostUSD && r.stopReason == "" {
				r.stopReason = ecp.StopCost
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
		case <-r.done:
			r.mu.Lock()
			defer r.mu.Unlock()
			return holds()
		case <-ctx.Done():
			return false
		}
	}
}

// waitForReader waits until followTurn has read all events that exist now.
func (r *run) waitForReader(ctx context.Context) {
	next := r.session.Next()
	r.await(ctx, func() bool { return r.lastRead+1 >= next })
}

// decideApproval approves or refuses a call that needs approval, according to the approval policy. The model
// gets a refusal as an error, and continues.
func (r *run) decideApproval(session *chat.Session, body event.Body) {
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
	admitted, key := false, callKey{call.ChatID, call.ID}
	r.update(func() {
		if r.stopReason == "" && budgets.MaxToolCalls > 0 && r.admittedCount >= budgets.MaxToolCalls {
			r.stopReason = ecp.StopToolCalls
		}
		if r.stopReason != "" {
			r.refused[key] = true
			// While a subagent's call waits, the call that started the subagent cannot end.
			r.stopNow = r.stopNow || call.Subagent()
			return
		}
		admitted, r.admitted[key] = true, true
		r.admittedCount++
		if !call.Subagent() {
			r.runningCalls[call.ID] = true
		}
	})
	return admitted
}

// isNext reports whether the budget has been checked for all calls that were started before this
// one, so that of concurrent calls the first ones get the budget.
func (r *run) isNext(id string) bool {
	for _, earlier := range r.startedCalls {
		if earlier == id {
			break
		}
		if key := (callKey{r.session.ID(), earlier}); !r.admitted[key] && !r.refused[key] {
			return false
		}
	}
	return true
}

// hasRun reports whether a call has run, or was running when it was stopped.
func (r *run) hasRun(c *call) bool {
	key := callKey{c.chat, c.id}
	return !r.refused[key] && (c.state != callStopped || r.admitted[key])
}

// nextStep begins the record of another step of the turn. It is called while the turn waits for an
// answer.
func (r *run) nextStep() {
	r.update(func() {
		r.record = r.record.forNextStep(r.agent.opts.Now())
		r.admittedCount, r.question = 0, nil
	})
}
