package chat

import (
	"slices"
	"sync"
)

// maxCached limits the memory, in bytes, of the histories of all chats without a running turn. Beyond
// it, the history of the least recently used chat is evicted, and read from the store again when
// needed.
const maxCached = 16 << 20

// historyCache lists the sessions whose histories are kept although no turn runs, the most recently
// used one last.
type historyCache struct {
	max int

	mu   sync.Mutex // guards the fields below
	list []cachedHistory
	size int // total, in bytes
}

type cachedHistory struct {
	session *Session
	size    int
}

// put adds a session whose turn has ended. It returns the sessions to evict, never the added one.
func (h *historyCache) put(s *Session, size int) (evicted []*Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(s)
	h.list, h.size = append(h.list, cachedHistory{s, size}), h.size+size
	for h.size > h.max && len(h.list) > 1 {
		evicted = append(evicted, h.list[0].session)
		h.remove(h.list[0].session)
	}
	return evicted
}

// take removes a session that begins a turn or is closed.
func (h *historyCache) take(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(s)
}

func (h *historyCache) remove(s *Session) {
	i := slices.IndexFunc(h.list, func(e cachedHistory) bool { return e.session == s })
	if i >= 0 {
		h.size -= h.list[i].size
		h.list = slices.Delete(h.list, i, i+1)
	}
}

// cacheHistory caches the history after a turn, and has others evicted to make room.
func (s *Session) cacheHistory() {
	if s.history == nil {
		return
	}
	for _, other := range s.eng.histories.put(s, s.history.Size()) {
		other.mail.put(other.evictHistory)
	}
}

// evictHistory drops the history if the store has all of it.
func (s *Session) evictHistory() {
	if s.turn == nil && !s.log.Unsaved() {
		s.history = nil
	}
}
