package chat

import (
	"slices"
	"sync"
)

// maxHeld bounds what the histories of all chats without a turn take in memory, in bytes.
// What is beyond is let go, that of the chat used least recently first, and read from the
// store again when the chat goes on.
const maxHeld = 16 << 20

// held are the sessions without a turn whose histories are in memory, the one used last at
// the end.
type held struct {
	max int

	mu   sync.Mutex // guards what follows
	list []heldHistory
	size int // of all of them
}

type heldHistory struct {
	session *Session
	size    int
}

// put adds a session whose turn has ended. It returns those whose histories are too much;
// the one that was added is not among them.
func (h *held) put(s *Session, size int) (over []*Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(s)
	h.list, h.size = append(h.list, heldHistory{s, size}), h.size+size
	for h.size > h.max && len(h.list) > 1 {
		over = append(over, h.list[0].session)
		h.remove(h.list[0].session)
	}
	return over
}

// take removes a session: it begins a turn, or is closed.
func (h *held) take(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(s)
}

func (h *held) remove(s *Session) {
	i := slices.IndexFunc(h.list, func(e heldHistory) bool { return e.session == s })
	if i >= 0 {
		h.size -= h.list[i].size
		h.list = slices.Delete(h.list, i, i+1)
	}
}

// hold keeps the history of a turn that has ended, as far as there is room for it and the
// others.
func (s *Session) hold() {
	if s.history == nil {
		return
	}
	for _, other := range s.eng.held.put(s, s.history.weight()) {
		other.mail.put(other.letGo)
	}
}

// letGo forgets the history if the store has it, until the next prompt.
func (s *Session) letGo() {
	if s.turn == nil && !s.log.Unsaved() {
		s.history = nil
	}
}
