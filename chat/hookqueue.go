package chat

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/tools"
)

// hookQueue runs the hooks that no turn waits for, one after the other in the order of their events:
// sessionStart and sessionEnd (one session per engine), chatEnd and chatStatusChanged. The engine owns
// it.
type hookQueue struct {
	log    func(msg string, args ...any)
	ctx    context.Context // cancelled after closeTimeout
	cancel context.CancelFunc
	worker sync.WaitGroup // the goroutine that runs jobs, if any

	mu      sync.Mutex // guards the fields below
	jobs    []hookJob
	running bool
	closed  bool
}

type hookJob struct {
	run       func(ctx context.Context)
	droppable bool // a status change, which a later one makes obsolete
}

// maxQueued is the number of jobs that may wait for slow hooks. Beyond it, the oldest droppable job is
// dropped.
const maxQueued = 256

func newHookQueue(log func(msg string, args ...any)) *hookQueue {
	q := &hookQueue{log: log}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// put adds a job without waiting for it. ok is false if the queue is closed.
func (q *hookQueue) put(j hookJob) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.jobs = append(q.jobs, j)
	if len(q.jobs) > maxQueued {
		if i := slices.IndexFunc(q.jobs, func(j hookJob) bool { return j.droppable }); i >= 0 {
			q.jobs = slices.Delete(q.jobs, i, i+1)
			q.log("hooks are too slow; dropped a status change")
		}
	}
	if !q.running {
		q.running = true
		q.worker.Go(q.work)
	}
	return true
}

// putAndWait adds a job and waits for it.
func (q *hookQueue) putAndWait(run func(ctx context.Context)) {
	done := make(chan struct{})
	if q.put(hookJob{run: func(ctx context.Context) { defer close(done); run(ctx) }}) {
		<-done
	}
}

// work runs jobs until the queue is empty.
func (q *hookQueue) work() {
	for {
		q.mu.Lock()
		if len(q.jobs) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		j := q.jobs[0]
		q.jobs = q.jobs[1:]
		q.mu.Unlock()
		q.runSafely(j)
	}
}

// runSafely runs a job and recovers from a panic.
func (q *hookQueue) runSafely(j hookJob) {
	defer func() {
		if p := recover(); p != nil {
			q.log("hook panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	j.run(q.ctx)
}

// close closes the queue and waits until the queued jobs have run.
func (q *hookQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.worker.Wait()
	q.cancel()
}

// closeTimeout is how long hooks may run after the engine begins to close, including the sessionEnd
// hooks.
const closeTimeout = 10 * time.Second

// Begin starts the sessionStart hooks. A face calls it when its client is ready. Only the first call
// has an effect.
func (e *Engine) Begin() {
	e.beginOnce.Do(func() {
		if !e.queue.put(hookJob{run: func(ctx context.Context) {
			defer close(e.startHooksDone)
			if e.deps.Refresh != nil {
				e.deps.Refresh() // plugins have hooks, too
			}
			if set := e.deps.Current().Hooks; set.Any(hooks.SessionStart) {
				set.Run(ctx, hooks.Call{Event: hooks.SessionStart, Roots: e.deps.Current().Roots}, nil)
			}
		}}) {
			close(e.startHooksDone)
		}
	})
}

// awaitStartHooks waits until the sessionStart hooks have run.
func (e *Engine) awaitStartHooks(ctx context.Context) error {
	e.Begin()
	select {
	case <-e.startHooksDone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runSessionEndHooks runs the sessionEnd hooks if Begin was called, and closes the queue.
func (e *Engine) runSessionEndHooks() {
	e.endOnce.Do(func() {
		begun := true
		e.beginOnce.Do(func() { begun = false; close(e.startHooksDone) })
		if set := e.deps.Current().Hooks; begun && set.Any(hooks.SessionEnd) {
			call := hooks.Call{Event: hooks.SessionEnd, Roots: e.deps.Current().Roots}
			e.queue.put(hookJob{run: func(ctx context.Context) { set.Run(ctx, call, nil) }})
		}
		e.queue.close()
	})
}

// runChatEndHooks runs the chatEnd hooks of a chat that is about to be removed.
func (e *Engine) runChatEndHooks(id string) {
	set := e.deps.Current().Hooks
	if !set.Any(hooks.ChatEnd) {
		return
	}
	meta, _, found, err := e.deps.Store.Meta(context.Background(), id)
	if err != nil || !found {
		return
	}
	e.queue.putAndWait(func(ctx context.Context) {
		set.Run(ctx, hooks.Call{Event: hooks.ChatEnd, Roots: e.deps.Current().Roots, Fields: chatFields(meta, nil)}, nil)
	})
}

// activity is the status of a chat for hooks (eca-features.md 18.2, chatStatusChanged). Its slices
// contain sorted call ids.
type activity struct {
	askUser  map[string]bool // ids of all ask_user calls
	approval []string        // calls that wait for the user's decision
	question []string        // ask_user calls that wait for the user's answer
	running  []string        // other running calls
}

// update applies an event; changed reports whether hooks are notified.
func (a *activity) update(b event.Body) (status string, changed bool) {
	switch b := b.(type) {
	case event.TurnStarted:
		return "running", true
	case event.ToolJudged:
		if b.Server == tools.Native && b.Name == "ask_user" {
			if a.askUser == nil {
				a.askUser = map[string]bool{}
			}
			a.askUser[b.CallID] = true
		}
		if b.Manual {
			a.approval = insert(a.approval, b.CallID)
		}
		return "running", b.Manual
	case event.ToolStarted:
		a.drop(b.CallID)
		if a.askUser[b.CallID] {
			a.question = insert(a.question, b.CallID)
		} else {
			a.running = insert(a.running, b.CallID)
		}
		return "running", true
	case event.ToolFinished:
		return "running", a.drop(b.CallID)
	case event.ToolRejected:
		return "running", a.drop(b.CallID)
	case event.TurnFinished:
		*a = activity{}
		return "idle", true
	default:
	}
	return "", false
}

// insert returns a copy of a sorted list with id added.
func insert(list []string, id string) []string {
	i, _ := slices.BinarySearch(list, id)
	return slices.Insert(slices.Clone(list), i, id)
}

func (a *activity) drop(id string) (found bool) {
	for _, list := range []*[]string{&a.approval, &a.question, &a.running} {
		if i := slices.Index(*list, id); i >= 0 {
			*list, found = slices.Delete(slices.Clone(*list), i, i+1), true
		}
	}
	return found
}

func (a *activity) fields(status string) map[string]any {
	ids := func(list []string) []string { return append([]string{}, list...) }
	out := map[string]any{
		"status": status, "awaiting_user_input": len(a.approval)+len(a.question) > 0,
		"pending_approval_tool_call_ids": ids(a.approval), "pending_question_tool_call_ids": ids(a.question), "running_tool_call_ids": ids(a.running),
	}
	switch {
	case len(a.approval) > 0:
		out["waiting_reason"] = "toolApproval"
	case len(a.question) > 0:
		out["waiting_reason"] = "userQuestion"
	}
	return out
}

// watchActivity returns a function that tracks the events of the turn and queues the
// chatStatusChanged hooks.
func (t *turnHooks) watchActivity() func(event.Body) {
	var current activity
	return func(b event.Body) {
		status, changed := current.update(b)
		if !changed {
			return
		}
		fields := chatFields(t.session.log.Meta(), current.fields(status))
		if t.parent != "" {
			fields["parent_chat_id"] = t.parent
		}
		if end, ok := b.(event.TurnFinished); ok {
			fields["finish_reason"] = string(end.Reason)
			if end.Err != "" {
				fields["error"] = end.Err
			}
		}
		call := hooks.Call{Event: hooks.ChatStatusChanged, Roots: t.Roots, Fields: fields}
		t.session.eng.queue.put(hookJob{droppable: true, run: func(ctx context.Context) { t.Hooks.Run(ctx, call, nil) }})
	}
}
