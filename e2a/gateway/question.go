package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-dec29ce4/eca/tools/ask"
)

// questions are what models ask of the user: they are shown in the frames of their turn,
// and answered by chat.answer.
type questions struct {
	newID func() string

	mu      sync.Mutex             // guards what follows
	shown   map[string]*shower     // by chat: the turns that can show one
	waiting map[string]chan string // by question
	left    bool                   // nobody answers any more
}

// shower shows the questions of a chat's turn.
type shower struct {
	show func(id string, asked ask.Question)
}

var _ ask.Client = (*questions)(nil)

var errNoTurn = errors.New("nobody can be asked now")

// Ask implements ask.Client.
func (q *questions) Ask(ctx context.Context, asked ask.Question) (ask.Answer, error) {
	id, answer := q.newID(), make(chan string, 1)
	q.mu.Lock()
	turn := q.shown[asked.ChatID]
	if q.left {
		turn = nil
	}
	if turn != nil {
		if q.waiting == nil {
			q.waiting = map[string]chan string{}
		}
		q.waiting[id] = answer
	}
	q.mu.Unlock()
	if turn == nil {
		return ask.Answer{}, errNoTurn
	}
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.waiting, id)
	}()
	turn.show(id, asked)
	select {
	case text := <-answer:
		return ask.Answer{Text: text, Cancelled: text == ""}, nil
	case <-ctx.Done():
		return ask.Answer{}, context.Cause(ctx)
	}
}

// answer passes an answer on; false says that nobody waits for it.
func (q *questions) answer(id, text string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ch, ok := q.waiting[id]
	if ok {
		delete(q.waiting, id)
		ch <- text
	}
	return ok
}

// leave declines what waits, and what comes.
func (q *questions) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left = true
	for id, ch := range q.waiting {
		delete(q.waiting, id)
		ch <- ""
	}
}

// listen has questions of a chat shown until the returned function is called, or by who
// listens next: a turn begins before the one that it supersedes has ended.
func (q *questions) listen(chatID string, show func(id string, asked ask.Question)) (leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shown == nil {
		q.shown = map[string]*shower{}
	}
	mine := &shower{show}
	q.shown[chatID] = mine
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.shown[chatID] == mine {
			delete(q.shown, chatID)
		}
	}
}
