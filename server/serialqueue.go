package server

import "sync"

// serialQueue makes changes of settings take effect in the order in which the client requested them,
// without letting handlers wait for files.
type serialQueue struct {
	mu   sync.Mutex      // guards last
	last <-chan struct{} // closed when the previous change is made; nil for the first change
}

// join joins the queue. turn closes when the change before this one is made.
func (o *serialQueue) join() (turn <-chan struct{}, leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine := make(chan struct{})
	turn, o.last = o.last, mine
	return turn, func() { close(mine) }
}

// inOrder makes a change in the background, after the earlier ones. The function that change
// returns runs afterwards, concurrently with later changes; it may be nil.
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
