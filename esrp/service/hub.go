package service

import "sync"

// hub wakes callers that wait for events of a job.
type hub struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]*waiters
}

type waiters struct {
	count   int
	changed chan struct{}
}

// subscribe returns a channel that is closed at the next event of a job, and a function to stop
// waiting. A caller that subscribes before it reads the job misses no event.
func (h *hub) subscribe(job string) (changed <-chan struct{}, unsubscribe func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[string]*waiters{}
	}
	w := h.waiting[job]
	if w == nil {
		w = &waiters{changed: make(chan struct{})}
		h.waiting[job] = w
	}
	w.count++
	return w.changed, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if w.count--; w.count == 0 && h.waiting[job] == w {
			delete(h.waiting, job)
		}
	}
}

// notify wakes the callers that wait for a job.
func (h *hub) notify(job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[job]; w != nil {
		close(w.changed)
		delete(h.waiting, job)
	}
}
