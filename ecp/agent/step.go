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
	"github.com/seed-dec29ce4/eca/internal/visible"
)

// errTime means that a step took too long.
var errTime = errors.New("the step exceeded its time limit")

// defaultStopGrace is how long a stopped step waits for its turn to end if the runtime has no time
// limit.
const defaultStopGrace = 5 * time.Second

// step executes a step. It starts a turn, or answers the question of the last one. Then it waits
// until the turn has ended, the model asks a question, or a budget is used up.
func (a *Agent) step(ctx context.Context, params json.RawMessage, arrived time.Time) (any, *ecp.Error) {
	p, err := ecp.ParseStepParams(params)
	if err != nil {
		return nil, ecp.Errorf(ecp.CodeInvalidParams, "Invalid params: %v", err)
	}
	if a.settings == nil { // calling initialize is optional (docs/contracts/ecp.md 1.1)
		if err := a.configure(ctx, ecp.Config{}); err != nil {
			return nil, ecp.Errorf(ecp.CodeFailed, "%s", a.opts.Host.Clean(err.Error()))
		}
	}
	started := a.opts.Now()
	ctx, release, stopGrace := a.withLimit(ctx, started.Sub(arrived))
	defer release()
	a.waitForTools(ctx)
	if ctx.Err() != nil { // stopped, or no time left, before the turn started
		return a.notStarted(stopOf(ctx)), nil
	}
	for _, name := range a.settings.Tools.Deny {
		if why := a.opts.Host.UnknownTool(name); why != "" {
			return nil, ecp.Errorf(ecp.CodeFailed, "%s", a.opts.Host.Clean("config.tools.deny: "+why+"; correct the name, because it denies nothing"))
		}
	}
	r, err := a.turn(ctx, p.Input)
	if err != nil {
		return nil, ecp.Errorf(ecp.CodeFailed, "%s", a.opts.Host.Clean(err.Error()))
	}
	r.update(func() { r.record.started = started })
	return a.outcome(ctx, r, stopGrace)
}

// withLimit returns a context that ends when the step must be answered. waited is how long the step
// was in the queue; stopGrace is how long it may wait for its turn to end after that.
func (a *Agent) withLimit(ctx context.Context, waited time.Duration) (limited context.Context, release func(), stopGrace time.Duration) {
	limit, stopGrace := time.Duration(a.settings.Budgets.TimeoutS*float64(time.Second)), defaultStopGrace
	if a.opts.Limit > 0 {
		margin := margin(a.opts.Limit)
		stopGrace = margin / 2
		if rest := max(a.opts.Limit-margin-waited, 1); limit == 0 || rest < limit {
			limit = rest
		}
	}
	if limit <= 0 {
		return ctx, func() {}, stopGrace
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTime)
	return ctx, cancel, stopGrace
}

// margin returns how long before a runtime's limit a step has to be answered.
func margin(limit time.Duration) time.Duration {
	const least, most = 200 * time.Millisecond, 3 * time.Second
	return min(max(limit/10, least), most, limit/2)
}

// turn passes the input of a step to the engine.
func (a *Agent) turn(ctx context.Context, input string) (*run, error) {
	if r := a.paused; r != nil {
		a.paused = nil
		r.mu.Lock()
		asked := r.question
		r.mu.Unlock()
		select {
		case <-r.over: // the turn that asked has ended, so the input becomes an ordinary prompt
		default:
			r.nextStep()
			asked.answer <- input
			return r, nil
		}
	}
	if a.session == nil {
		session, _, err := a.opts.Host.Engine().Open(a.ctx, a.opts.NewID())
		if err != nil {
			return nil, err
		}
		a.session = session
	}
	r, never := a.begin(a.session), false
	a.gate.setRun(r)
	prompt := chat.Prompt{TurnID: r.turn, Text: input, Model: a.settings.Model, Agent: a.settings.Agent, Trust: &never, MayBeEmpty: true}
	if _, err := a.session.Submit(prompt).Wait(ctx); err != nil && ctx.Err() == nil {
		r.cancel()
		<-r.over
		return nil, err
	}
	return r, nil
}

// outcome waits for the end of the step and returns its result.
func (a *Agent) outcome(ctx context.Context, r *run, stopGrace time.Duration) (any, *ecp.Error) {
	r.await(ctx, func() bool {
		return r.question != nil || r.stop != "" && (r.stopNow || len(r.running) == 0)
	})
	r.mu.Lock()
	stop, asked := r.stop, r.question
	r.mu.Unlock()
	switch {
	case isClosed(r.over):
	case asked != nil && stop == "" && ctx.Err() == nil:
		a.paused = r
		return a.reply(r, outcome{status: ecp.Paused, stop: ecp.StopQuestion, asked: asked}, "")
	default:
		if stop == "" {
			stop = stopOf(ctx)
			r.update(func() { r.stop = stop })
		}
		r.session.Cancel()
		timer := time.NewTimer(stopGrace)
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

// reply returns the answer for the runtime. The answer to a failed step is an error with the result
// in its data.
func (a *Agent) reply(r *run, o outcome, failed string) (any, *ecp.Error) {
	o.notes = a.notes()
	now := a.opts.Now()
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
	e := ecp.Errorf(ecp.CodeFailed, "%s", a.opts.Host.Clean(strings.TrimPrefix(failed, "Error: ")))
	e.Data = encoded(map[string]any{"result": result})
	return nil, e
}

// notes returns remarks for evaluators about settings without effect.
func (a *Agent) notes() (out []string) {
	if names := a.gate.unknown(); len(names) > 0 {
		out = append(out, "note: config.tools names unknown tools: "+strings.Join(names, ", "))
	}
	for _, u := range a.opts.Host.Untrusted() {
		out = append(out, fmt.Sprintf("note: %s has no effect until it is trusted (eca trust %s)", u.File, visible.Argument(u.Root)))
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
