package chat

import (
	"cmp"
	"maps"
	"slices"
)

// Sessions returns the chats that are open in this process, ordered by id.
func (e *Engine) Sessions() []*Session {
	e.mu.Lock()
	open := slices.Collect(maps.Values(e.sessions))
	e.mu.Unlock()
	slices.SortStableFunc(open, func(a, b *Session) int { return cmp.Compare(a.id, b.id) })
	return open
}
