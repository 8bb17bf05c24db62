package runtime

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// run is a running evaluation.
type run struct {
	opts                 Options
	dir                  string // of the manifest
	ids                  *ids
	tools                grade.Tools
	pool                 *proc.Pool           // starts agents
	serverSlots          map[string]*servers  // by target
	total                int                  // cases
	requiredCapabilities []requiredCapability // capabilities that the graders of the manifest rely on
	requireDeclared      bool                 // agents must declare these capabilities

	id        string
	images    images
	isolation func() sandbox.Isolation // returns the namespaces that the system supports; computed once

	mu       sync.Mutex    // guards the fields below
	results  []result      // unless Options.StoreOnly
	done     int           // cases with a result
	reused   int           // attempts from an earlier run or the cache
	agent    *report.Agent // the first self-description
	tokens   int64
	cost     float64
	storeErr error // the first error of the store
	halt     context.CancelCauseFunc

	warnings     []string
	targetErrors map[string]*CallError // by target: the error because of which it cannot be evaluated at all
}

// pendingCase is a case with unfinished attempts.
type pendingCase struct {
	c         Case
	index     int        // in the plan
	reused    int        // attempts from an earlier run or the cache
	mu        sync.Mutex // guards the fields below
	attempts  []report.Attempt
	remaining int  // attempts without a result
	skipped   bool // an attempt was stopped, so the case has no result
}

func newRun(p *Plan, o Options) *run {
	m := p.manifest
	r := &run{
		opts: o, id: o.NewID(), dir: filepath.Dir(m.Path), ids: &ids{}, total: p.Total, serverSlots: map[string]*servers{}, tools: o.Tools,
		pool: proc.NewPool(o.Supervisor, spareSupervisors), requiredCapabilities: requiredCapabilities(m, o), requireDeclared: m.RequireCapabilities, targetErrors: map[string]*CallError{},
	}
	r.tools.Reference = o.Reference
	r.isolation = sync.OnceValue(r.pool.Isolation)
	for _, v := range p.variants {
		if IsURL(v.target) && r.serverSlots[v.target] == nil {
			r.serverSlots[v.target] = r.newServersFor(v.target, m.Target)
		}
	}
	return r
}

// Head returns the report of a run of the plan that begins now, without results.
func (p *Plan) Head(o Options) *report.Report {
	m := p.manifest
	out := &report.Report{
		Manifest: m.Path, Name: m.Name, Target: m.Target, Scenarios: []report.Scenario{},
		SchemaVersion: report.SchemaVersion, RunID: o.NewID(), StartedAt: o.Now().UTC().Truncate(time.Millisecond),
		Runtime: report.Runtime{Name: "eca-ecp", Version: o.Version},
	}
	if o.Reference {
		out.Runtime.Compat = "reference"
	}
	return out
}

// Run evaluates the cases of a plan and returns the report. If ctx ends earlier, the report has the
// finished cases. An error means that the store failed. The report has the results even then, unless
// only the store has them; it is nil if the store has attempts of another run, and nothing ran.
func Run(ctx context.Context, p *Plan, o Options) (*report.Report, error) {
	m := p.manifest
	r := newRun(p, o)
	defer r.pool.Close()
	start := o.Now()
	earlier := newEarlierRun(r)
	if err := earlier.match(ctx, p); err != nil {
		return nil, err
	}
	out := p.Head(o)
	out.RunID = r.id
	out.Scenarios = r.all(ctx, p, earlier)
	out.NotRun = p.Total - r.done
	out.Interrupted = out.NotRun > 0 && ctx.Err() != nil
	took := o.Now().Sub(start)
	out.DurationMS, out.Warnings, out.Agent = took.Milliseconds(), r.warnings, r.agent
	if o.StoreOnly {
		r.fail(o.Store.Sum(out, p.Total))
		if out.Omitted == nil { // the store failed
			out.Omitted = &report.Omitted{}
		}
		out.Omitted.Reused = r.reused
	} else {
		out.Sum()
	}
	if out.Interrupted && out.ExitReason == report.ReasonOK {
		out.ExitReason = report.ReasonError
	}
	if len(r.targetErrors) > 0 && out.ExitReason != report.ReasonDuration {
		out.ExitReason = report.ReasonProtocol
	}
	limits := report.Limits{RPCTimeout: callLimit(o).Seconds()}
	if o.Budget.Time > 0 {
		seconds := o.Budget.Time.Seconds()
		limits.MaxDuration = &seconds
	}
	out.SetAudit(m.Digest, limits, took)
	return out, r.storeErr
}

// result is the result of a case, with its index in the plan.
type result struct {
	index    int
	scenario report.Scenario
}

// maxNotRun limits how many cases a report lists when the budget is used up. Later cases that did not
// run are counted but not listed.
const maxNotRun = 1000

// all runs each case that has no result yet, and returns all results in the plan's order, except those
// of cases that were stopped.
func (r *run) all(ctx context.Context, p *Plan, earlier *earlierRun) []report.Scenario {
	running, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	r.halt = halt
	if t := r.opts.Budget.Time; t > 0 {
		timer := time.AfterFunc(t, func() { halt(fmt.Errorf("%w: %s", errDuration, t)) })
		defer timer.Stop()
	}
	if r.opts.Store != nil {
		r.spend(r.opts.Store.Spent())
	}
	var scheduler Scheduler = inProcess{r}
	if r.opts.Scheduler != nil {
		scheduler = r.opts.Scheduler
	}
	scheduler.Schedule(running, r.jobs(running, p, earlier), func(j Job, a *report.Attempt) { r.handleResult(running, j, a) })
	slices.SortFunc(r.results, func(a, b result) int { return a.index - b.index })
	out := make([]report.Scenario, len(r.results))
	for i := range r.results {
		out[i] = r.results[i].scenario
	}
	return out
}

// notRunAttempt returns the result of an attempt that was not started.
func (r *run) notRunAttempt(ctx context.Context, c Case, why *CallError, message string) report.Attempt {
	a := &attempt{run: r, c: c, out: report.Attempt{
		Status: report.Error, ExitReason: why.exitReason(ctx), Steps: []report.Step{},
		Errors: []report.Problem{{Scenario: c.Scenario.Name, Kind: why.Kind, Message: message}},
	}}
	a.skipRemainingSteps(message)
	return a.out
}

// blockTarget ends the evaluation of a target, because every scenario would fail with the same error.
func (r *run) blockTarget(target string, why *CallError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.targetErrors[target] == nil {
		r.targetErrors[target] = why
	}
}

func (r *run) targetError(target string) *CallError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.targetErrors[target]
}

// warn adds a warning about agents to the report, once for all scenarios.
func (r *run) warn(text string) {
	r.mu.Lock()
	known := slices.Contains(r.warnings, text)
	if !known {
		r.warnings = append(r.warnings, text)
	}
	r.mu.Unlock()
	if !known && r.opts.Warn != nil {
		r.opts.Warn(text)
	}
}

// wasStopped reports whether an attempt was cut short because the whole run ended.
func wasStopped(a report.Attempt) bool {
	for _, e := range a.Errors {
		if e.Kind == kindInterrupted || e.Kind == kindBudget {
			return true
		}
	}
	return false
}

// spendAttempt adds an attempt's usage to that of the run.
func (r *run) spendAttempt(a report.Attempt) {
	tokens, cost := a.Spent()
	r.spend(tokens, deref(cost), cost == nil && len(a.Steps) > 0)
}

// spend adds to the usage of the run, and stops the run if its budget is used up. unpriced means that
// an agent reported no cost.
func (r *run) spend(tokens int64, cost float64, unpriced bool) {
	if r.opts.Budget.CostUSD > 0 && unpriced {
		r.warn("the agent reports no cost, so the limit in US dollars cannot be checked")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens = ecp.AddTokens(r.tokens, tokens)
	r.cost += cost
	b := r.opts.Budget
	switch {
	case b.Tokens > 0 && r.tokens >= b.Tokens:
		r.halt(fmt.Errorf("%w of %d tokens is used up", errBudget, b.Tokens))
	case b.CostUSD > 0 && r.cost >= b.CostUSD:
		r.halt(fmt.Errorf("%w of %g US dollars is used up", errBudget, b.CostUSD))
	}
}

// result combines the attempts of the case.
func (p *pendingCase) result() report.Scenario {
	c, attempts := p.c, p.attempts
	s := report.Scenario{
		Name: c.Scenario.Name, ID: c.ID, Aliases: c.Aliases, Group: c.scenario, VariantKey: c.VariantKey, Reused: p.reused, Line: c.Scenario.Line, Variant: c.Labels, Record: c.Record,
		Status: report.Passed, Outcome: report.StatusOK, ExitReason: report.ReasonOK, Errors: []report.Problem{},
	}
	shown := &attempts[0]
	for i := range attempts {
		a := &attempts[i]
		if a.Cached {
			s.Cached++
		}
		s.DurationMS += a.DurationMS
		s.Errors = append(s.Errors, a.Errors...)
		if shown.Status == report.Passed && a.Status != report.Passed {
			shown = a
		}
		if a.Status == report.Error || a.Status == report.Failed && s.Status == report.Passed {
			s.Status = a.Status
		}
		if a.ExitReason != report.ReasonOK && s.ExitReason == report.ReasonOK {
			s.Outcome, s.ExitReason = report.StatusFailed, a.ExitReason
		}
		if s.Agent == nil {
			s.Agent = a.Agent
		}
	}
	s.Steps, s.Notes, s.Workspace, s.Diff, s.DiffFile = shown.Steps, shown.Notes, shown.Workspace, shown.Diff, shown.DiffFile
	if c.Repeat > 1 {
		s.Attempts = attempts
		s.Repeat, s.PassAtK = report.Statistics(attempts)
	}
	return s
}

func (r *run) notifyWatcher(e Event) {
	if r.opts.Watch == nil {
		return
	}
	r.mu.Lock()
	e.Done, e.Total = r.done, r.total
	r.mu.Unlock()
	r.opts.Watch(e)
}

// finish takes the result of a case, and reports it as progress unless it is from an earlier run.
func (r *run) finish(index int, s report.Scenario, reused bool) {
	r.mu.Lock()
	r.done++
	r.reused += s.Reused
	if r.agent == nil {
		r.agent = s.Agent
	}
	if !r.opts.StoreOnly {
		r.results = append(r.results, result{index, s})
	}
	r.mu.Unlock()
	if !reused {
		r.notifyWatcher(Event{Scenario: &s})
	}
}

// store adds the result of a case to the store.
func (r *run) store(c Case, index int, s *report.Scenario) {
	if r.opts.Store != nil {
		r.fail(r.opts.Store.Result(c.key(c.ID), index, s))
	}
}

// storeAttempt adds an attempt to the store.
func (r *run) storeAttempt(c Case, n int, a report.Attempt) {
	if r.opts.Store != nil {
		r.fail(r.opts.Store.Attempt(c.key(c.ID), n, agentHash(a.Agent), a, wasStopped(a)))
	}
}

// fail keeps the first error of the store, and stops the run if only the store has its results. It
// accepts nil.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || r.storeErr != nil {
		return
	}
	if r.storeErr = err; r.opts.StoreOnly {
		r.halt(err)
	}
}
