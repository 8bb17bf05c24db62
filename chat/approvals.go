package chat

import "sync"

// approvals are the calls of a turn that wait for the user.
type approvals struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]chan Decision
}

// open adds a call that waits for a decision, and returns the channel for that decision.
func (a *approvals) open(callID string) <-chan Decision {
	ch := make(chan Decision, 1) // decide must not wait
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]chan Decision{}
	}
	a.waiting[callID] = ch
	return ch
}

// decide passes a decision to the call that waits for it; ok is false if the call does not wait.
func (a *approvals) decide(callID string, d Decision) (ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch, ok := a.waiting[callID]
	if ok {
		delete(a.waiting, callID)
		ch <- d
	}
	return ok
}

// count returns the number of waiting calls.
func (a *approvals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}
