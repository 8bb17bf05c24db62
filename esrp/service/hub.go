package service

import "sync"

// hub wakes those that wait for news of a job.
type hub struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]*waiters
}

type waiters struct {
	count int
	news  chan struct{}
}

// listen returns a channel that is closed at the next news of a job, and what to call when
// nobody waits for it any more. Who listens before it looks misses nothing.
func (h *hub) listen(job string) (news <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[string]*waiters{}
	}
	w := h.waiting[job]
	if w == nil {
		w = &waiters{news: make(chan struct{})}
		h.waiting[job] = w
	}
	w.count++
	return w.news, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if w.count--; w.count == 0 && h.waiting[job] == w {
			delete(h.waiting, job)
		}
	}
}

// tell wakes those that listen.
func (h *hub) tell(job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[job]; w != nil {
		close(w.news)
		delete(h.waiting, job)
	}
}
