package agent

import (
	"context"
	"errors"
	"sync"
)

// maxWaiting bounds the calls that wait for their turn.
const maxWaiting = 64

var (
	errBusy   = errors.New("too many calls are waiting")
	errClosed = errors.New("the agent is shutting down")
)

// Why a step was stopped from outside.
var (
	errReset = errors.New("the conversation was reset")
	errLeft  = errors.New("the runtime left")
)

// queue lets calls have their turn one after the other, in the order in which they came.
type queue struct {
	mu     sync.Mutex    // guards what follows
	last   chan struct{} // closed when the last call that was taken is over
	closed bool
	calls  map[*context.CancelCauseFunc]struct{} // that are not over
}

// ticket is a call's place in the queue.
type ticket struct {
	ctx    context.Context
	before chan struct{} // closed when it is its turn; nil: at once
	done   func()        // must be called after wait
}

// wait until it is the call's turn, also when its ctx has ended: then it finds that out and
// does nothing.
func (t ticket) wait() {
	if t.before != nil {
		<-t.before
	}
}

// take gives a call its place. With stop, those that came before are cancelled.
func (q *queue) take(ctx context.Context, stop bool) (ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ticket{}, errClosed
	case len(q.calls) >= maxWaiting && (!stop || len(q.calls) >= 2*maxWaiting): // which makes room
		return ticket{}, errBusy
	}
	if stop {
		q.cancelLocked(errReset)
	}
	if q.calls == nil {
		q.calls = map[*context.CancelCauseFunc]struct{}{}
	}
	mine, cancel := context.WithCancelCause(ctx)
	key, over := &cancel, make(chan struct{})
	t := ticket{ctx: mine, before: q.last, done: func() {
		q.mu.Lock()
		delete(q.calls, key)
		q.mu.Unlock()
		cancel(nil)
		close(over)
	}}
	q.calls[key], q.last = struct{}{}, over
	return t, nil
}

func (q *queue) cancelLocked(cause error) {
	for c := range q.calls {
		(*c)(cause)
	}
}

// close cancels the calls that there are, waits for them and takes no more.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.cancelLocked(errClosed)
	last := q.last
	q.mu.Unlock()
	if last != nil {
		<-last
	}
}
