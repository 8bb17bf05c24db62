package chat

// SetMaxCached sets what the histories of chats without a turn may take together, in bytes.
func (e *Engine) SetMaxCached(max int) { e.histories.max = max }

// HoldsHistory says whether no turn runs, and whether the history is in memory, once all
// that was asked for before is done.
func (s *Session) HoldsHistory() *Pending[[2]bool] {
	return enqueue(s, func() ([2]bool, error) { return [2]bool{s.turn == nil, s.history != nil}, nil })
}
