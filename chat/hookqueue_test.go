package chat

import (
	"context"
	"slices"
	"testing"
)

// Jobs run in order. If the queue is full, it drops its oldest droppable jobs, and no others. A queue
// that is closed runs the jobs that it has, and refuses new ones.
func TestHookQueue(t *testing.T) {
	q := newHookQueue(func(string, ...any) {})
	var ran []int
	hold := make(chan struct{})
	q.put(hookJob{run: func(context.Context) { <-hold }})
	q.put(hookJob{run: func(context.Context) { panic("one hook") }})
	const more = 10
	for i := range maxQueued + more {
		q.put(hookJob{droppable: i > 0, run: func(context.Context) { ran = append(ran, i) }})
	}
	close(hold)
	q.putAndWait(func(context.Context) { ran = append(ran, -1) })
	if !slices.Contains(ran, 0) || !slices.Contains(ran, maxQueued+more-1) || slices.Contains(ran, 1) || len(ran) > maxQueued+1 {
		t.Errorf("%d ran: %v", len(ran), ran)
	}
	if last := len(ran) - 1; ran[last] != -1 || !slices.IsSorted(ran[:last]) {
		t.Errorf("out of order: %v", ran)
	}
	q.put(hookJob{run: func(context.Context) { ran = nil }})
	q.close()
	if ran != nil {
		t.Error("close did not run the queued job")
	}
	if q.put(hookJob{run: func(context.Context) {}}) {
		t.Error("the closed queue accepted a job")
	}
	q.putAndWait(func(context.Context) { t.Error("the closed queue ran a job") })
}
