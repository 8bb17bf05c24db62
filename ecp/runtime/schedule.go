package runtime

import (
	"context"
	"iter"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Job is an attempt that a run needs.
type Job struct {
	*pendingCase
	attempt int // from 0
}

// Case returns the case to attempt.
func (j Job) Case() Case { return j.c }

// Number returns the number of the attempt, from 1.
func (j Job) Number() int { return j.attempt + 1 }

// Scheduler runs the attempts of a run: in this process, or in others.
type Scheduler interface {
	// Schedule runs the attempts that jobs yields, and calls done once for each of them, from any
	// goroutine. It takes jobs only as fast as attempts finish, and returns when all are done. It passes
	// nil to done for an attempt that was not made because ctx ended.
	Schedule(ctx context.Context, jobs iter.Seq[Job], done func(Job, *report.Attempt))
}

// Session makes single attempts of cases that its caller chooses.
type Session struct{ r *run }

// NewSession prepares to make attempts of a plan.
func NewSession(p *Plan, o Options) *Session { return &Session{newRun(p, o)} }

// Make makes an attempt of a case; number counts from 1. It never fails: errors are part of the
// result. An attempt that was stopped because ctx ended is incomplete.
func (s *Session) Make(ctx context.Context, c Case, number int) report.Attempt {
	c.attempt = number
	return s.r.makeAttempt(ctx, c)
}

// Close ends the spare supervisor processes.
func (s *Session) Close() { s.r.pool.Close() }

// inProcess makes attempts in this process, several at a time.
type inProcess struct{ r *run }

// Schedule implements Scheduler.
func (s inProcess) Schedule(ctx context.Context, jobs iter.Seq[Job], done func(Job, *report.Attempt)) {
	queue := make(chan Job)
	var workers sync.WaitGroup
	for range max(s.r.opts.Jobs, 1) {
		workers.Go(func() {
			for j := range queue {
				if ctx.Err() != nil && s.r.targetError(j.c.target) == nil {
					done(j, nil)
					continue
				}
				if j.attempt == 0 {
					s.r.notifyWatcher(Event{Running: j.c.Scenario.Name})
				}
				c := j.c
				c.attempt = j.Number()
				a := s.r.makeAttempt(ctx, c)
				done(j, &a)
			}
		})
	}
	for j := range jobs {
		queue <- j
	}
	close(queue)
	workers.Wait()
}

// makeAttempt makes an attempt. If the target is a URL, it uses a free server.
func (r *run) makeAttempt(ctx context.Context, c Case) report.Attempt {
	if stop := r.targetError(c.target); stop != nil {
		return r.notRunAttempt(ctx, c, stop, "not run: "+stop.Error())
	}
	if s := r.serverSlots[c.target]; s != nil {
		return r.attemptOnServer(ctx, s, c)
	}
	return r.attemptCase(ctx, c)
}

// jobs yields the attempts to make. It finishes cases whose attempts are all in the store or the
// cache.
func (r *run) jobs(ctx context.Context, p *Plan, earlier *earlierRun) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		listed, skip := 0, earlier.isDone
		if !r.opts.StoreOnly {
			skip = nil
		}
		for index, c := range p.selected(skip) {
			if listed++; ctx.Err() != nil && listed > maxNotRun {
				return
			}
			open, todo := r.reuse(ctx, earlier, c, index)
			for _, n := range todo {
				if !yield(Job{open, n}) {
					return
				}
			}
		}
	}
}

// reuse returns a case with its attempts from the store or the cache, and the numbers of the
// attempts to make, from 0. If no attempt has to be made, it finishes the case.
func (r *run) reuse(ctx context.Context, earlier *earlierRun, c Case, index int) (open *pendingCase, todo []int) {
	open = &pendingCase{index: index, c: c, attempts: make([]report.Attempt, c.Repeat)}
	for n := range int(c.Repeat) {
		a, ok := r.load(c, n+1)
		if !ok {
			if a, ok = earlier.cached(ctx, c, n+1); ok {
				r.storeAttempt(c, n+1, a)
			}
		}
		if !ok {
			todo = append(todo, n)
			continue
		}
		open.attempts[n] = a
		open.reused++
	}
	if open.remaining = len(todo); open.remaining == 0 {
		s := open.result()
		if !earlier.isDone(index) {
			r.store(c, index, &s)
		}
		r.finish(index, s, true)
	}
	return open, todo
}

// load returns an attempt from the store.
func (r *run) load(c Case, n int) (a report.Attempt, ok bool) {
	key := c.key(c.ID)
	if r.opts.Store == nil || !r.opts.Store.Find(key, n) {
		return a, false
	}
	a, err := r.opts.Store.Load(key, n)
	r.fail(err)
	return a, err == nil
}

// handleResult handles the result of an attempt, or nil if the attempt was not made. The last attempt
// completes its case. An attempt that the budget prevented has a result; one that was stopped with
// the run has none.
func (r *run) handleResult(ctx context.Context, j Job, a *report.Attempt) {
	stopped := false
	switch {
	case a != nil:
		r.spendAttempt(*a)
		stopped = ctx.Err() != nil && wasStopped(*a) && stopKind(ctx) != kindBudget
	case stopKind(ctx) == kindBudget:
		over := r.notRunAttempt(ctx, j.c, &CallError{Kind: kindBudget}, "not run: "+context.Cause(ctx).Error())
		a = &over
	default:
		a, stopped = &report.Attempt{}, true
	}
	if a.Status != "" && !stopped {
		r.cacheResult(j.c, j.Number(), *a)
	}
	if a.Status != "" {
		r.storeAttempt(j.c, j.Number(), *a)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempts[j.attempt] = *a
	j.skipped = j.skipped || stopped
	if j.remaining--; j.remaining == 0 && !j.skipped {
		s := j.result()
		r.store(j.c, j.index, &s)
		r.finish(j.index, s, false)
	}
}
