package server

import "sync"

// order makes changes of settings take effect in the order in which the client asked
// for them, while handlers do not wait for files.
type order struct {
	mu   sync.Mutex      // guards last
	last <-chan struct{} // closed when the change before is made; nil if there was none
}

// join takes a place: what comes before it has left when turn closes.
func (o *order) join() (turn <-chan struct{}, leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine := make(chan struct{})
	turn, o.last = o.last, mine
	return turn, func() { close(mine) }
}

// inOrder makes a change in the background, after those before it. What the change
// returns runs after it, beside later changes; it may be nil.
func (s *Server) inOrder(change func() (after func())) {
	turn, leave := s.changes.join()
	s.background(func() {
		after := func() func() {
			defer leave()
			if turn != nil {
				<-turn
			}
			return change()
		}()
		if after != nil {
			after()
		}
	})
}
