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

// waiting contains everything that waits for the user: calls that were shown, and questions, which
// the turn of their chat shows.
type waiting struct {
	newID func() string

	mu           sync.Mutex             // guards the fields below
	turns        map[string]*Turn       // by chat: the turn that shows its questions
	calls        map[*Turn][]string     // that may wait for a decision
	answers      map[string]chan string // by question
	disconnected bool                   // no caller decides or answers any more
}

var _ ask.Client = (*waiting)(nil)

var errNoTurn = errors.New("nobody can be asked now")

// Ask implements ask.Client.
func (w *waiting) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	id, answer := w.newID(), make(chan string, 1)
	w.mu.Lock()
	t := w.turns[q.ChatID]
	if w.disconnected {
		t = nil
	}
	if t != nil {
		if w.answers == nil {
			w.answers = map[string]chan string{}
		}
		w.answers[id] = answer
	}
	w.mu.Unlock()
	if t == nil {
		return ask.Answer{}, errNoTurn
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.answers, id)
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

// answer passes an answer on; false means that no question waits for it.
func (w *waiting) answer(id, text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch, ok := w.answers[id]
	if ok {
		delete(w.answers, id)
		ch <- text
	}
	return ok
}

// add makes a turn show the questions of its chat. A turn begins before the one that it supersedes
// has ended.
func (w *waiting) add(t *Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns == nil {
		w.turns, w.calls = map[string]*Turn{}, map[*Turn][]string{}
	}
	w.turns[t.Session] = t
}

// remove removes a turn that has ended.
func (w *waiting) remove(t *Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, t)
	if w.turns[t.Session] == t {
		delete(w.turns, t.Session)
	}
}

// addCall records a call that is about to be shown, or refuses it at once if no caller can decide.
// Deciding twice about a call has no effect.
func (w *waiting) addCall(t *Turn, callID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.disconnected {
		refuse(t.session, callID)
		return
	}
	w.calls[t] = append(w.calls[t], callID)
}

// leave refuses the waiting calls and declines the waiting questions, and does the same with later
// ones.
func (w *waiting) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disconnected = true
	for t, calls := range w.calls {
		for _, id := range calls {
			refuse(t.session, id)
		}
	}
	for id, ch := range w.answers {
		delete(w.answers, id)
		ch <- ""
	}
}

// refuse refuses a call, and lets the model know and the turn continue.
func refuse(s *chat.Session, callID string) {
	s.Decide(callID, chat.Decision{GoOn: true})
}
