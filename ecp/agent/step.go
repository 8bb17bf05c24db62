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
		return a.notStartedResult(contextStopReason(ctx)), nil
	}
	for _, name := range a.settings.Tools.Deny {
		if why := a.opts.Host.UnknownTool(name); why != "" {
			return nil, ecp.Errorf(ecp.CodeFailed, "%s", a.opts.Host.Clean("config.tools.deny: "+why+"; correct the name, because it denies nothing"))
		}
	}
	r, err := a.startOrResumeTurn(ctx, p.Input)
	if err != nil {
		return nil, ecp.Errorf(ecp.CodeFailed, "%s", a.opts.Host.Clean(err.Error()))
	}
	r.update(func() { r.record.started = started })
	return a.awaitOutcome(ctx, r, stopGrace)
}

// withLimit returns a context that ends when the step must be answered. waited is how long the step
// was in the queue; stopGrace is how long it may wait for its turn to end after that.
func (a *Agent) withLimit(ctx context.Context, waited time.Duration) (limited context.Context, release func(), stopGrace time.Duration) {
	limit, stopGrace := time.Duration(a.settings.Budgets.TimeoutS*float64(time.Second)), defaultStopGrace
	if a.opts.Limit > 0 {
		margin := answerMargin(a.opts.Limit)
		stopGrace = margin / 2
		if remaining := max(a.opts.Limit-margin-waited, 1); limit == 0 || remaining < limit {
			limit = remaining
		}
	}
	if limit <= 0 {
		return ctx, func() {}, stopGrace
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTime)
	return ctx, cancel, stopGrace
}

// answerMargin returns how long before a runtime's limit a step has to be answered.
func answerMargin(limit time.Duration) time.Duration {
	const minMargin, maxMargin = 200 * time.Millisecond, 3 * time.Second
	return min(max(limit/10, minMargin), maxMargin, limit/2)
}

// startOrResumeTurn passes the input of a step to the engine.
func (a *Agent) startOrResumeTurn(ctx context.Context, input string) (*run, error) {
	if r := a.paused; r != nil {
		a.paused = nil
		r.mu.Lock()
		waiting := r.question
		r.mu.Unlock()
		select {
		case <-r.done: // the turn that asked has ended, so the input becomes an ordinary prompt
		default:
			r.nextStep()
			waiting.answer <- input
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
	r, trust := a.startRun(a.session), false
	a.gate.setRun(r)
	prompt := chat.Prompt{TurnID: r.turnID, Text: input, Model: a.settings.Model, Agent: a.settings.Agent, Trust: &trust, MayBeEmpty: true}
	if _, err := a.session.Submit(prompt).Wait(ctx); err != nil && ctx.Err() == nil {
		r.cancel()
		<-r.done
		return nil, err
	}
	return r, nil
}

// awaitOutcome waits for the end of the step and returns its result.
func (a *Agent) awaitOutcome(ctx context.Context, r *run, stopGrace time.Duration) (any, *ecp.Error) {
	r.await(ctx, func() bool {
		return r.question != nil || r.stopReason != "" && (r.stopNow || len(r.runningCalls) == 0)
	})
	r.mu.Lock()
	stopReason, waiting := r.stopReason, r.question
	r.mu.Unlock()
	switch {
	case isClosed(r.done):
	case waiting != nil && stopReason == "" && ctx.Err() == nil:
		a.paused = r
		return a.reply(r, outcome{status: ecp.Paused, stopReason: ecp.StopQuestion, question: waiting}, "")
	default:
		if stopReason == "" {
			stopReason = contextStopReason(ctx)
			r.update(func() { r.stopReason = stopReason })
		}
		r.session.Cancel()
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-r.done:
		case <-timer.C:
			return a.reply(r, outcome{status: ecp.Paused, stopReason: stopReason}, "")
		}
	}
	r.mu.Lock()
	end, failure := r.record.end, r.readErr
	r.mu.Unlock()
	o, failed := turnOutcome(end, stopReason)
	if failure != nil {
		failed = failure.Error()
	}
	return a.reply(r, o, failed)
}

// contextStopReason returns the stop reason for a ctx that has ended.
func contextStopReason(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errTime) {
		return ecp.StopTime
	}
	return ecp.StopCancelled
}

// reply returns the answer for the runtime. The answer to a failed step is an error with the result
// in its data.
func (a *Agent) reply(r *run, o outcome, failed string) (any, *ecp.Error) {
	o.notes = a.ineffectiveSettings()
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
	e.Data = rawJSON(map[string]any{"result": result})
	return nil, e
}

// ineffectiveSettings returns remarks for evaluators about settings without effect.
func (a *Agent) ineffectiveSettings() (out []string) {
	if names := a.gate.unknownNames(); len(names) > 0 {
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
