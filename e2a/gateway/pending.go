package gateway

import (
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
)

// pending are the calls that were shown and may wait for a decision. Only who leaves needs
// them: to decide about a call twice does nothing.
type pending struct {
	mu    sync.Mutex // guards what follows
	calls map[string]map[string]*chat.Session
	left  bool
}

// add remembers a call of a session, or refuses it at once if nobody is there to decide.
func (p *pending) add(s *chat.Session, callID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		refuse(s, callID)
		return
	}
	if p.calls == nil {
		p.calls = map[string]map[string]*chat.Session{}
	}
	if p.calls[s.ID()] == nil {
		p.calls[s.ID()] = map[string]*chat.Session{}
	}
	p.calls[s.ID()][callID] = s
}

// forget drops the calls of a session whose turn has ended.
func (p *pending) forget(chatID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, chatID)
}

// leave refuses what waits, and what comes.
func (p *pending) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	for _, calls := range p.calls {
		for id, s := range calls {
			refuse(s, id)
		}
	}
}

// refuse has the model told, and the turn go on.
func refuse(s *chat.Session, callID string) {
	s.Decide(callID, chat.Decision{GoOn: true})
}
