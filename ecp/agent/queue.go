package agent

import (
	"context"
	"errors"
	"sync"
)

// maxWaiting limits the number of calls in the queue.
const maxWaiting = 64

var (
	errBusy   = errors.New("too many calls are waiting")
	errClosed = errors.New("the agent is shutting down")
)

// The causes for which a step is stopped from outside.
var (
	errReset        = errors.New("the conversation was reset")
	errDisconnected = errors.New("the runtime disconnected")
)

// queue admits calls one after the other, in the order of their arrival.
type queue struct {
	mu       sync.Mutex    // guards the fields below
	lastDone chan struct{} // closed when the last queued call has ended
	closed   bool
	calls    map[*context.CancelCauseFunc]struct{} // calls that have not ended
}

// ticket is a call's place in the queue.
type ticket struct {
	ctx          context.Context
	previousDone chan struct{} // closed when it is the call's turn; nil if the call need not wait
	done         func()        // must be called after wait
}

// wait waits until it is the call's turn, even if the call's ctx has ended, to keep the order. The
// call must check ctx afterwards.
func (t ticket) wait() {
	if t.previousDone != nil {
		<-t.previousDone
	}
}

// enqueue adds a call to the queue. If stop is set, it cancels all earlier calls.
func (q *queue) enqueue(ctx context.Context, stop bool) (ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ticket{}, errClosed
	case len(q.calls) >= maxWaiting && (!stop || len(q.calls) >= 2*maxWaiting): // a call with stop makes room by cancelling the others
		return ticket{}, errBusy
	}
	if stop {
		q.cancelLocked(errReset)
	}
	if q.calls == nil {
		q.calls = map[*context.CancelCauseFunc]struct{}{}
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	key, ended := &cancel, make(chan struct{})
	t := ticket{ctx: callCtx, previousDone: q.lastDone, done: func() {
		q.mu.Lock()
		delete(q.calls, key)
		q.mu.Unlock()
		cancel(nil)
		close(ended)
	}}
	q.calls[key], q.lastDone = struct{}{}, ended
	return t, nil
}

func (q *queue) cancelLocked(cause error) {
	for c := range q.calls {
		(*c)(cause)
	}
}

// close cancels all calls, waits for them and accepts no more.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.cancelLocked(errClosed)
	lastDone := q.lastDone
	q.mu.Unlock()
	if lastDone != nil {
		<-lastDone
	}
}
