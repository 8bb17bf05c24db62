package chat

// SetMaxCachedHistories limits the memory of the histories of idle chats, in bytes.
func (e *Engine) SetMaxCachedHistories(max int) { e.histories.max = max }

// HoldsHistory returns, after all earlier operations, whether the session is idle, and whether its
// history is in memory.
func (s *Session) HoldsHistory() *Pending[[2]bool] {
	return enqueue(s, func() ([2]bool, error) { return [2]bool{s.turn == nil, s.history != nil}, nil })
}
