package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/ecp"
)

// errTime means that a step took too long.
var errTime = errors.New("the time for the step is over")

// unwinding is how long a stopped step waits for its turn to end.
const unwinding = 5 * time.Second

// step carries out a step. It begins a turn, or answers the question of the last one. Then it waits
// for the end of the turn, for a question, or until a budget is used up.
func (a *Agent) step(ctx context.Context, params json.RawMessage, arrived time.Time) (any, *ecp.Error) {
	p, err := ecp.ParseStepParams(params)
	if err != nil {
		return nil, ecp.Errorf(ecp.CodeInvalidParams, "Invalid params: %v", err)
	}
	if a.settings == nil { // calling initialize is optional (1.1)
		if err := a.configure(ctx, ecp.Config{}); err != nil {
			return nil, ecp.Errorf(ecp.CodeFailed, "%s", a.host.Clean(err.Error()))
		}
	}
	started := a.now()
	ctx, release, patience := a.limited(ctx, started.Sub(arrived))
	defer release()
	a.getReady(ctx)
	if ctx.Err() != nil { // it waited too long in the queue
		return a.nothing(stopOf(ctx)), nil
	}
	r, err := a.turn(ctx, p.Input)
	if err != nil {
		return nil, ecp.Errorf(ecp.CodeFailed, "%s", a.host.Clean(err.Error()))
	}
	r.update(func() { r.record.started = started })
	return a.outcome(ctx, r, patience)
}

// limited returns a context that ends when the step has to be answered. patience is how long the
// step may then wait for the turn to end.
func (a *Agent) limited(ctx context.Context, waited time.Duration) (limited context.Context, release func(), patience time.Duration) {
	limit, patience := time.Duration(a.settings.Budgets.TimeoutS*float64(time.Second)), unwinding
	if a.limit > 0 {
		margin := margin(a.limit)
		patience = margin / 2
		if rest := max(a.limit-margin-waited, 1); limit == 0 || rest < limit {
			limit = rest
		}
	}
	if limit <= 0 {
		return ctx, func() {}, patience
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTime)
	return ctx, cancel, patience
}

// margin is how much time before a runtime's limit a step is answered.
func margin(limit time.Duration) time.Duration {
	const least, most = 200 * time.Millisecond, 3 * time.Second
	return min(max(limit/10, least), most, limit/2)
}

// turn passes the input of a step to the engine.
func (a *Agent) turn(ctx context.Context, input string) (*run, error) {
	if r := a.asking; r != nil {
		a.asking = nil
		r.mu.Lock()
		asked := r.question
		r.mu.Unlock()
		select {
		case <-r.over: // the question is void: the input becomes an ordinary message
		default:
			r.nextStep()
			asked.answer <- input
			return r, nil
		}
	}
	if a.session == nil {
		session, _, err := a.host.Engine().Open(a.ctx, a.newID())
		if err != nil {
			return nil, err
		}
		a.session = session
	}
	r, never := a.begin(a.session), false
	a.gate.admit(r)
	prompt := chat.Prompt{TurnID: r.turn, Text: input, Model: a.settings.Model, Agent: a.settings.Agent, Trust: &never}
	if _, err := a.session.Submit(prompt).Wait(ctx); err != nil && ctx.Err() == nil {
		r.cancel()
		<-r.over
		return nil, err
	}
	return r, nil
}

// outcome waits for the end of the step and returns its result.
func (a *Agent) outcome(ctx context.Context, r *run, patience time.Duration) (any, *ecp.Error) {
	r.await(ctx, func() bool {
		return r.question != nil || r.stop != "" && (r.hurry || len(r.running) == 0)
	})
	r.mu.Lock()
	stop, asked := r.stop, r.question
	r.mu.Unlock()
	switch {
	case isClosed(r.over):
	case asked != nil && stop == "" && ctx.Err() == nil:
		a.asking = r
		return a.reply(r, outcome{status: ecp.Paused, stop: ecp.StopQuestion, asked: asked}, "")
	default:
		if stop == "" {
			stop = stopOf(ctx)
			r.update(func() { r.stop = stop })
		}
		r.session.Cancel()
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-r.over:
		case <-timer.C:
			return a.reply(r, outcome{status: ecp.Paused, stop: stop}, "")
		}
	}
	r.mu.Lock()
	end, failure := r.record.end, r.failed
	r.mu.Unlock()
	o, failed := outcomeOf(end, stop)
	if failure != nil {
		failed = failure.Error()
	}
	return a.reply(r, o, failed)
}

// stopOf returns the stop reason for a ctx that has ended.
func stopOf(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errTime) {
		return ecp.StopTime
	}
	return ecp.StopCancelled
}

// reply returns the answer for the runtime. A failed step gives an error that includes its result.
func (a *Agent) reply(r *run, o outcome, failed string) (any, *ecp.Error) {
	o.notes = a.notes()
	now := a.now()
	r.mu.Lock()
	result := r.result(o, now)
	unpriced := r.record.unpriced && r.settings.Budgets.MaxCostUSD > 0
	r.mu.Unlock()
	if unpriced {
		text := *result.Logs + "note: max_cost_usd has no effect, because the price of " + result.Model + " is unknown\n"
		result.Logs = &text
	}
	if failed == "" {
		return result, nil
	}
	e := ecp.Errorf(ecp.CodeFailed, "%s", a.host.Clean(strings.TrimPrefix(failed, "Error: ")))
	e.Data = encoded(map[string]any{"result": result})
	return nil, e
}

// notes are remarks about the settings for evaluators.
func (a *Agent) notes() (out []string) {
	if names := a.gate.unknown(); len(names) > 0 {
		out = append(out, "note: config.tools names unknown tools: "+strings.Join(names, ", "))
	}
	for _, u := range a.host.Untrusted() {
		out = append(out, fmt.Sprintf("note: %s is without effect until trusted (eca trust %q)", u.File, u.Root))
	}
	return out
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
