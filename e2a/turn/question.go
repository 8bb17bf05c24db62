package turn

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// Question is a question of the model to the user. Service.Answer answers it.
type Question struct {
	ID string
	ask.Question
}

// pending contains the calls and questions that wait for the user. A question is shown through the
// turn of its chat.
type pending struct {
	newID func() string

	mu           sync.Mutex             // guards the fields below
	turns        map[string]*Turn       // by chat id: the turn that shows the chat's questions
	calls        map[*Turn][]string     // ids of the calls that were shown for a decision
	answers      map[string]chan string // by question id
	disconnected bool                   // no caller is left to decide or answer
}

var _ ask.Client = (*pending)(nil)

var errNoTurn = errors.New("no client can answer questions now")

// Ask implements ask.Client.
func (p *pending) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	id, answer := p.newID(), make(chan string, 1)
	p.mu.Lock()
	t := p.turns[q.ChatID]
	if p.disconnected {
		t = nil
	}
	if t != nil {
		if p.answers == nil {
			p.answers = map[string]chan string{}
		}
		p.answers[id] = answer
	}
	p.mu.Unlock()
	if t == nil {
		return ask.Answer{}, errNoTurn
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.answers, id)
	}()
	select {
	case t.questions <- Question{id, q}:
	case <-t.ctx.Done():
	}
	select {
	case text := <-answer:
		return ask.Answer{Text: text, Cancelled: text == ""}, nil
	case <-ctx.Done():
		return ask.Answer{}, context.Cause(ctx)
	}
}

// answer passes an answer on. It returns false if the question is not pending.
func (p *pending) answer(id, text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch, ok := p.answers[id]
	if ok {
		delete(p.answers, id)
		ch <- text
	}
	return ok
}

// add makes a turn show the questions of its chat. The previous turn of the chat may still be
// running, if this one supersedes it.
func (p *pending) add(t *Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns == nil {
		p.turns, p.calls = map[string]*Turn{}, map[*Turn][]string{}
	}
	p.turns[t.Session] = t
}

// remove removes a turn that has ended.
func (p *pending) remove(t *Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, t)
	if p.turns[t.Session] == t {
		delete(p.turns, t.Session)
	}
}

// addCall adds a call that is about to be shown for a decision, or refuses it immediately if no
// caller can decide. Calls stay in the list after a decision: a second decision has no effect.
func (p *pending) addCall(t *Turn, callID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.disconnected {
		refuse(t.session, callID)
		return
	}
	p.calls[t] = append(p.calls[t], callID)
}

// disconnect refuses all pending and later calls, and declines all pending and later questions.
func (p *pending) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disconnected = true
	for t, calls := range p.calls {
		for _, id := range calls {
			refuse(t.session, id)
		}
	}
	for id, ch := range p.answers {
		delete(p.answers, id)
		ch <- ""
	}
}

// refuse rejects a call; the model is informed, and the turn continues.
func refuse(s *chat.Session, callID string) {
	s.Decide(callID, chat.Decision{GoOn: true})
}
