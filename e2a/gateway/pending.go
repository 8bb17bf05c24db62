package gateway

import (
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
)

// pending are the calls that were shown and may wait for a decision. Only who leaves needs
// them: to decide about a call twice does nothing.
type pending struct {
	mu    sync.Mutex           // guards what follows
	calls map[*mapper][]string // by the turn that shows them
	left  bool
}

// add remembers a call of a turn, or refuses it at once if nobody is there to decide.
func (p *pending) add(m *mapper, callID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		refuse(m.session, callID)
		return
	}
	if p.calls == nil {
		p.calls = map[*mapper][]string{}
	}
	p.calls[m] = append(p.calls[m], callID)
}

// forget drops the calls of a turn that has ended.
func (p *pending) forget(m *mapper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, m)
}

// leave refuses what waits, and what comes.
func (p *pending) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	for m, calls := range p.calls {
		for _, id := range calls {
			refuse(m.session, id)
		}
	}
}

// refuse has the model told, and the turn go on.
func refuse(s *chat.Session, callID string) {
	s.Decide(callID, chat.Decision{GoOn: true})
}
