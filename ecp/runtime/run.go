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

// run is one evaluation under way.
type run struct {
	opts  Options
	dir   string // of the manifest
	ids   *ids
	tools grade.Tools
	pool  *proc.Pool          // starts agents
	lanes map[string]*servers // by target
	total int                 // cases
	needs []need              // of all cases
	must  bool                // agents must declare what is needed

	id        string
	images    images
	isolation func() sandbox.Isolation // finds out, once, what bounded programs can have of their own

	mu      sync.Mutex // guards what follows
	results []result
	tokens  int64
	cost    float64
	broken  error // why the journal could not be written
	halt    context.CancelCauseFunc

	warnings []string
	stops    map[string]*CallError // why targets can not be evaluated at all
}

// pending is a case whose attempts are not all done.
type pending struct {
	c        Case
	place    int        // in the plan
	reused   int        // attempts that an earlier run made
	mu       sync.Mutex // guards what follows
	attempts []report.Attempt
	left     int
	skipped  bool
}

// Run evaluates the cases of a plan and returns the report, also when ctx ends before
// all are done: then it has those that are. The error says that the journal could not be
// written; the report is whole.
func Run(ctx context.Context, p *Plan, o Options) (*report.Report, error) {
	m := p.manifest
	r := &run{opts: o, id: o.NewID(), dir: filepath.Dir(m.Path), ids: &ids{}, total: p.Total, lanes: map[string]*servers{}, tools: o.Tools, pool: proc.NewPool(o.Supervisor, spareSupervisors), needs: needsOf(m, o), must: m.RequireCapabilities, stops: map[string]*CallError{}}
	defer r.pool.Close()
	start := o.Now()
	out := &report.Report{
		Manifest: m.Path, Name: m.Name, Target: m.Target, Scenarios: []report.Scenario{},
		SchemaVersion: report.SchemaVersion, RunID: r.id, StartedAt: start.UTC().Truncate(time.Millisecond),
		Runtime: report.Runtime{Name: "eca-ecp", Version: o.Version},
	}
	if o.Reference {
		out.Runtime.Compat = "reference"
	}
	r.tools.Reference = o.Reference
	r.isolation = sync.OnceValue(r.pool.Isolation)
	for _, v := range p.variants {
		if IsURL(v.target) && r.lanes[v.target] == nil {
			r.lanes[v.target] = r.serversOf(v.target, m.Target)
		}
	}
	out.Scenarios = r.all(ctx, p)
	out.NotRun = p.Total - len(out.Scenarios)
	out.Interrupted = out.NotRun > 0 && ctx.Err() != nil
	took := o.Now().Sub(start)
	out.DurationMS, out.Warnings = took.Milliseconds(), r.warnings
	out.Sum()
	if len(r.stops) > 0 && out.ExitReason != report.ReasonDuration {
		out.ExitReason = report.ReasonProtocol
	}
	limits := report.Limits{RPCTimeout: callLimit(o).Seconds()}
	if o.Budget.Time > 0 {
		seconds := o.Budget.Time.Seconds()
		limits.MaxDuration = &seconds
	}
	out.SetAudit(m.Digest, limits, took)
	return out, r.broken
}

// result is what came of a case, and its place in the plan.
type result struct {
	place    int
	scenario report.Scenario
}

// job is an attempt to make.
type job struct {
	*pending
	attempt int
}

// maxNotRun bounds how many results a report has when it also lists what a used-up budget
// left undone. The others are counted only.
const maxNotRun = 1000

// all runs the cases that have not finished earlier, and returns what came of them, in the
// plan's order; those that were stopped are missing.
func (r *run) all(ctx context.Context, p *Plan) []report.Scenario {
	running, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	r.halt = halt
	if t := r.opts.Budget.Time; t > 0 {
		timer := time.AfterFunc(t, func() { halt(fmt.Errorf("%w: %s", errDuration, t)) })
		defer timer.Stop()
	}
	queue := make(chan job)
	var workers sync.WaitGroup
	for range max(r.opts.Jobs, 1) {
		workers.Go(func() {
			for j := range queue {
				r.attempt(running, j.pending, j.attempt)
			}
		})
	}
	r.feed(running, p, queue)
	close(queue)
	workers.Wait()
	slices.SortFunc(r.results, func(a, b result) int { return a.place - b.place })
	out := make([]report.Scenario, len(r.results))
	for i := range r.results {
		out[i] = r.results[i].scenario
	}
	return out
}

// feed hands out the attempts to make, and takes those that an earlier run made.
func (r *run) feed(ctx context.Context, p *Plan, queue chan<- job) {
	before := r.earlier()
	place := 0
	for c := range p.Cases() {
		if ctx.Err() != nil && place >= maxNotRun {
			break
		}
		open := &pending{place: place, c: c, attempts: make([]report.Attempt, c.Repeat)}
		place++
		var todo []int // attempts to make, from 0
		for n := range int(c.Repeat) {
			if a, ok := before.of(ctx, c, n+1); ok {
				open.attempts[n] = a
				open.reused++
			} else {
				todo = append(todo, n)
			}
		}
		if open.left = len(todo); open.left == 0 {
			r.finish(open.place, open.result(), true)
		}
		for _, n := range todo {
			queue <- job{open, n}
		}
	}
	if before.changed > 0 {
		r.warn(fmt.Sprintf("%d attempts of the earlier run are made again: the agent is not what it was, or does not start any more", before.changed))
	}
}

// attempt runs one attempt of a case; with the last of them, the case is done.
func (r *run) attempt(ctx context.Context, p *pending, n int) {
	if n == 0 && ctx.Err() == nil {
		r.show(Event{Running: p.c.Scenario.Name})
	}
	c := p.c
	c.attempt = n + 1
	a, stopped := r.turn(ctx, c)
	if a.Status != "" {
		r.record(p.c, n+1, a)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts[n] = a
	p.skipped = p.skipped || stopped
	if p.left--; p.left == 0 && !p.skipped {
		r.finish(p.place, p.result(), false)
	}
}

// turn runs an attempt when it is its turn. stopped says that the run was stopped before it
// was done; a budget that is used up is a result, though.
func (r *run) turn(ctx context.Context, c Case) (a report.Attempt, stopped bool) {
	if stop := r.stopOf(c.target); stop != nil {
		return r.notRun(ctx, c, stop, "not run: "+stop.Error()), false
	}
	if ctx.Err() == nil {
		if s := r.lanes[c.target]; s != nil {
			a = r.tryServers(ctx, s, c)
		} else {
			a = r.try(ctx, c)
		}
		r.spend(a)
		if ctx.Err() == nil || !wasStopped(a) {
			return a, false
		}
		return a, cause(ctx) != kindBudget
	}
	if cause(ctx) != kindBudget {
		return a, true
	}
	return r.notRun(ctx, c, &CallError{Kind: kindBudget}, "not run: "+context.Cause(ctx).Error()), false
}

// notRun is an attempt that did not begin.
func (r *run) notRun(ctx context.Context, c Case, why *CallError, message string) report.Attempt {
	a := &attempt{run: r, c: c, out: report.Attempt{
		Status: report.Error, ExitReason: why.reason(ctx), Steps: []report.Step{},
		Errors: []report.Problem{{Scenario: c.Scenario.Name, Kind: why.Kind, Message: message}},
	}}
	a.skipRest(message)
	return a.out
}

// stop ends the evaluation of a target: no other scenario will do better.
func (r *run) stop(target string, why *CallError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stops[target] == nil {
		r.stops[target] = why
	}
}

func (r *run) stopOf(target string) *CallError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stops[target]
}

// warn notes something about agents, once however many scenarios find it out.
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

// wasStopped says whether an attempt ended because its run did.
func wasStopped(a report.Attempt) bool {
	for _, e := range a.Errors {
		if e.Kind == kindInterrupted || e.Kind == kindBudget {
			return true
		}
	}
	return false
}

// spend counts what an attempt used against the budget.
func (r *run) spend(a report.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, st := range a.Steps {
		r.tokens = ecp.AddTokens(r.tokens, tokens(st.Usage))
		if st.CostUSD != nil {
			r.cost += max(*st.CostUSD, 0)
		}
	}
	b := r.opts.Budget
	switch {
	case b.Tokens > 0 && r.tokens >= b.Tokens:
		r.halt(fmt.Errorf("%w of %d tokens is used up", errBudget, b.Tokens))
	case b.CostUSD > 0 && r.cost >= b.CostUSD:
		r.halt(fmt.Errorf("%w of %g US dollars is used up", errBudget, b.CostUSD))
	}
}

// result makes a scenario of its attempts.
func (p *pending) result() report.Scenario {
	c, attempts := p.c, p.attempts
	s := report.Scenario{
		Name: c.Scenario.Name, ID: c.ID, Aliases: c.Aliases, VariantKey: c.VariantKey, Reused: p.reused, Line: c.Scenario.Line, Variant: c.Labels, Record: c.Record,
		Status: report.Passed, Outcome: report.StatusOK, ExitReason: report.ReasonOK, Errors: []report.Problem{},
	}
	shown := &attempts[0]
	for i := range attempts {
		a := &attempts[i]
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

func (r *run) show(e Event) {
	if r.opts.Watch == nil {
		return
	}
	r.mu.Lock()
	e.Done, e.Total = len(r.results), r.total
	r.mu.Unlock()
	r.opts.Watch(e)
}

// finish keeps what came of a case, and tells of it.
func (r *run) finish(place int, s report.Scenario, earlier bool) {
	r.mu.Lock()
	r.results = append(r.results, result{place, s})
	r.mu.Unlock()
	if !earlier {
		r.show(Event{Scenario: &s})
	}
}

// record hands the result of an attempt to the journal: also of one that was stopped, since
// what it cost was spent.
func (r *run) record(c Case, n int, a report.Attempt) {
	ran := slices.ContainsFunc(a.Steps, func(st report.Step) bool { return st.Outcome != report.StatusSkipped })
	if r.opts.Record == nil || wasStopped(a) && !ran {
		return
	}
	err := r.opts.Record(Line{Case: c.ID, Variant: c.VariantKey, Digest: c.digest, Attempt: n, Name: c.Scenario.Name, Result: a})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.broken == nil {
		r.broken = err
	}
}
