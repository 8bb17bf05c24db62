package chat

import "sync"

// approvals are the calls of a turn that wait for the user.
type approvals struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]chan Decision
}

// open has a call wait: what the user decides about it comes from the channel.
func (a *approvals) open(callID string) <-chan Decision {
	ch := make(chan Decision, 1) // room for the one decision that it gets
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]chan Decision{}
	}
	a.waiting[callID] = ch
	return ch
}

// decide passes a decision to the call that waits for it; ok is false if none does.
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

// count returns how many calls wait.
func (a *approvals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}
