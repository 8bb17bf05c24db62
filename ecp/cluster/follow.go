package cluster

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
)

// Limits of published attempts: minWindow and maxWindow limit the window of a lane, which is the number
// of its attempts that are published at a time. maxParked limits how many attempts of full lanes are
// read ahead to find attempts of other lanes.
const (
	minWindow = 64
	maxWindow = 5000
	maxParked = 4096
)

// FollowOptions configure a Follower.
type FollowOptions struct {
	Lead      bool   // publish work if no other process does; needs the rights of a controller
	Snapshot  bool   // read only the existing results
	Artifacts string // folder for diffs; empty for none
}

// Follower reads the results of a run, and publishes its work while it is the leader. It is the
// runtime.Scheduler for a runtime.Run of the plan that it was created with.
type Follower struct {
	c    *Cluster
	doc  *Stored
	plan *runtime.Plan
	opts FollowOptions

	mu  sync.Mutex // guards err
	err error
}

// Follow returns a Follower of a run.
func (c *Cluster) Follow(d *Stored, p *runtime.Plan, o FollowOptions) *Follower {
	return &Follower{c: c, doc: d, plan: p, opts: o}
}

// Err returns why the last Schedule could not continue, or nil.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *Follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// pendingAttempt is an attempt that has no result yet.
type pendingAttempt struct {
	job  runtime.Job
	lane string
}

// schedule is the state of one call of Schedule. Its fields belong to the goroutine of loop.
type schedule struct {
	*Follower
	next func() (runtime.Job, bool)
	done func(runtime.Job, *report.Attempt)

	published        map[attemptKey]*pendingAttempt // attempts in the windows of their lanes, which the leader publishes
	parked           map[string][]*pendingAttempt   // by lane: attempts that wait because the window is full
	parkedCount      int                            // all parked attempts
	early            map[attemptKey]report.Attempt  // results of attempts that were not requested yet
	publishedPerLane map[string]int                 // number of published attempts
	windowSizes      map[string]int                 // by lane
	openedLanes      map[string]bool
	planEnded        bool // the plan has no more attempts
	leading          bool
	state            State
	lastSeq          uint64 // sequence number of the last result that was read
	progress         Progress
}

// receivedResult is a result that was read.
type receivedResult struct {
	seq     uint64
	key     attemptKey
	attempt report.Attempt
}

// Schedule implements runtime.Scheduler. It returns when all attempts have results, the run was
// stopped, or ctx ends. In the last case, the run continues without this process, unless its budget
// is used up.
func (f *Follower) Schedule(ctx context.Context, jobs iter.Seq[runtime.Job], done func(runtime.Job, *report.Attempt)) {
	next, stop := iter.Pull(jobs)
	defer stop()
	s := &schedule{
		Follower: f, next: next, done: done, published: map[attemptKey]*pendingAttempt{}, early: map[attemptKey]report.Attempt{},
		parked: map[string][]*pendingAttempt{}, publishedPerLane: map[string]int{}, windowSizes: map[string]int{}, openedLanes: map[string]bool{},
	}
	// Cleaning up after the end of ctx needs a context that has not ended.
	workCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	results, stateChanges, leading := make(chan receivedResult, 256), make(chan State, 16), make(chan struct{})
	if err := f.c.watchStates(workCtx, stateKey(f.doc.Run), func(_ string, st State) {
		select {
		case stateChanges <- st:
		case <-workCtx.Done():
		}
	}); err != nil {
		f.fail(err)
	}
	helpers.Go(func() { f.collect(workCtx, results) })
	complete := make(chan bool, 1)
	if f.opts.Lead && !f.opts.Snapshot {
		helpers.Go(func() { f.lead(workCtx, leading, complete) })
	}
	if f.Err() == nil {
		s.loop(ctx, workCtx, results, stateChanges, leading)
	}
	complete <- s.complete()
	for _, e := range s.published {
		done(e.job, nil)
	}
	for _, lane := range s.parked {
		for _, e := range lane {
			done(e.job, nil)
		}
	}
}

// complete reports whether every attempt of the plan has a result.
func (s *schedule) complete() bool { return s.planEnded && len(s.published) == 0 && s.parkedCount == 0 }

// loop handles events until the run is over for this process.
func (s *schedule) loop(ctx, workCtx context.Context, results <-chan receivedResult, states <-chan State, leading <-chan struct{}) {
	var start uint64
	err := s.c.conn.RetryOutages(workCtx, "read the results of the run "+s.doc.Run, func() (err error) {
		start, err = s.lastResult(workCtx)
		return err
	})
	if err != nil {
		s.fail(err)
		return
	}
	tick := time.NewTicker(max(s.c.lease/6, 50*time.Millisecond))
	defer tick.Stop()
	ctxDone := ctx.Done() // nil once ctx has ended
	var stopping time.Time
	for ticks := 1; ; {
		if s.lastSeq >= start { // all results of earlier leaders have been read
			if s.opts.Snapshot {
				s.completeFromResults()
				return
			}
			s.fillWindows(workCtx)
			if s.complete() {
				s.finish(workCtx)
				return
			}
		}
		select {
		case r := <-results:
			s.handleResult(r)
		case s.state = <-states:
			s.publishAll(workCtx)
		case <-leading:
			s.leading = true
			s.publishAll(workCtx)
		case <-ctxDone:
			if ctxDone = nil; !runtime.OverBudget(ctx) {
				return
			}
			if s.leading {
				s.warn(s.c.setState(workCtx, s.doc.Run, State{StateStopping, context.Cause(ctx).Error()}))
			}
		case <-tick.C:
			if ticks++; ticks%6 == 0 { // the servers accept only attempts that were lost, and refuse those that wait or run
				s.publishAll(workCtx)
			}
			s.report(workCtx)
		}
		if stopping.IsZero() && (s.state.over() || ctxDone == nil) {
			stopping = time.Now()
		}
		if !stopping.IsZero() && s.drained(workCtx, stopping) {
			s.finish(workCtx)
			s.completeFromResults()
			return
		}
	}
}

// warn logs an error of an operation that will be retried.
func (s *schedule) warn(err error) {
	if err != nil {
		s.c.log.Warn("cluster", "run", s.doc.Run, "err", err)
	}
}

// lastResult returns the sequence number of the last existing result.
func (f *Follower) lastResult(ctx context.Context) (uint64, error) {
	stream, err := f.c.conn.Stream(ctx, resultStreams+f.doc.Run)
	if err != nil {
		return 0, err
	}
	return stream.LastSeq(ctx)
}

// drained reports whether a stopped run will get no more results: no attempt is waiting or running, and
// all results have been read. It does not wait for lost workers.
func (s *schedule) drained(ctx context.Context, since time.Time) bool {
	idle := s.state.State == StateFinished || time.Since(since) > 2*s.c.lease
	if !idle {
		// Check this before the results: a worker publishes its result before it removes the work.
		var err error
		if idle, err = s.idle(ctx); err != nil {
			s.warn(err)
		}
	}
	last, err := s.lastResult(ctx)
	if err != nil {
		s.warn(err)
		return time.Since(since) > 3*s.c.lease
	}
	return idle && s.lastSeq >= last
}

// idle reports whether no attempt of the run is waiting or running.
func (s *schedule) idle(ctx context.Context) (bool, error) {
	work, err := s.c.conn.Stream(ctx, workStream)
	if err != nil {
		return false, err
	}
	has, err := work.Has(ctx, runWork(s.doc.Run))
	return !has && err == nil, err
}

// finish ends the run, and removes its waiting work.
func (s *schedule) finish(ctx context.Context) {
	s.report(ctx)
	if !s.leading {
		return
	}
	s.warn(s.c.setState(ctx, s.doc.Run, State{State: StateFinished, Reason: s.state.Reason}))
	work, err := s.c.conn.Stream(ctx, workStream)
	if err == nil {
		err = work.Purge(ctx, runWork(s.doc.Run))
	}
	s.warn(err)
}

// report publishes the progress of the run.
func (s *schedule) report(ctx context.Context) {
	if !s.leading {
		return
	}
	s.progress.Planned = s.plan.Total
	s.warn(s.c.put(ctx, statKey(s.doc.Run), s.progress))
}

// handleResult handles a result.
func (s *schedule) handleResult(r receivedResult) {
	s.lastSeq = max(s.lastSeq, r.seq)
	s.progress.Done++
	switch r.attempt.Status {
	case report.Passed:
		s.progress.Passed++
	case report.Failed:
		s.progress.Failed++
	default:
		s.progress.Errors++
	}
	e, ok := s.published[r.key]
	if !ok {
		s.early[r.key] = r.attempt
		return
	}
	delete(s.published, r.key)
	s.publishedPerLane[e.lane]--
	s.done(e.job, &r.attempt)
}

// fillWindows reads attempts from the plan while the windows have room for them.
func (s *schedule) fillWindows(ctx context.Context) {
	if s.state.over() {
		return
	}
	for lane, entries := range s.parked {
		for len(entries) > 0 && s.publishOrComplete(ctx, entries[0]) {
			entries = entries[1:]
			s.parkedCount--
		}
		s.parked[lane] = entries
	}
	for !s.planEnded && s.parkedCount < maxParked {
		j, ok := s.next()
		if !ok {
			s.planEnded = true
			return
		}
		lane, l := s.doc.laneOf(s.plan, j.Case())
		if s.windowSizes[lane] == 0 {
			s.windowSizes[lane] = min(max(2*l.Limit, minWindow), maxWindow)
		}
		if e := (&pendingAttempt{job: j, lane: lane}); !s.publishOrComplete(ctx, e) {
			s.parked[lane] = append(s.parked[lane], e)
			s.parkedCount++
		}
	}
}

// completeFromResults completes the attempts that have a result, in a run that has stopped.
func (s *schedule) completeFromResults() {
	for !s.planEnded && len(s.early) > 0 {
		j, ok := s.next()
		if !ok {
			s.planEnded = true
			return
		}
		if a, ok := s.early[keyOf(j)]; ok {
			delete(s.early, keyOf(j))
			s.done(j, &a)
		}
	}
}

func keyOf(j runtime.Job) attemptKey {
	c := j.Case()
	return attemptKey{Variant: c.VariantKey, Case: c.ID, Attempt: j.Number()}
}

// publishOrComplete completes an attempt that already has a result, or publishes it. It returns false if the
// window of the lane is full.
func (s *schedule) publishOrComplete(ctx context.Context, e *pendingAttempt) bool {
	key := keyOf(e.job)
	if a, ok := s.early[key]; ok {
		delete(s.early, key)
		s.done(e.job, &a)
		return true
	}
	if s.publishedPerLane[e.lane] >= s.windowSizes[e.lane] {
		return false
	}
	s.publishedPerLane[e.lane]++
	s.published[key] = e
	s.publish(ctx, key, e)
	return true
}

// publish publishes an attempt if this process is the leader. The server refuses an attempt that is
// already published.
func (s *schedule) publish(ctx context.Context, key attemptKey, e *pendingAttempt) {
	if !s.leading || s.state.State != StateRunning {
		return
	}
	if !s.openedLanes[e.lane] {
		_, l := s.doc.laneOf(s.plan, e.job.Case())
		if err := s.c.openLane(ctx, e.lane, l, s.doc.Limits[l.Model] > 0); err != nil {
			s.warn(err)
			return
		}
		s.openedLanes[e.lane] = true
	}
	c := e.job.Case()
	raw, err := json.Marshal(workMessage{V: docVersion, Run: s.doc.Run, Key: key, Place: c.Position, Name: c.Scenario.Name})
	if err == nil {
		// The result of the attempt shows whether it arrived; until then it is offered again.
		err = s.c.conn.PublishAsync(workSubject(s.doc.Run, e.lane, key), raw, s.c.lease)
	}
	s.warn(err)
}

// publishAll publishes the attempts of all windows again, because an earlier leader may have missed some, or their
// messages may have been lost.
func (s *schedule) publishAll(ctx context.Context) {
	for key, e := range s.published {
		s.publish(ctx, key, e)
	}
}
