package ask

import (
	"context"
	"errors"
	"sync"
)

// Board asks all clients that have joined it, and the first answer counts: the requests to the
// others are cancelled. A client that joins while a question is open is asked, too. Questions
// have ids, which are the same for all clients.
type Board struct {
	newID func() string

	mu      sync.Mutex // guards the fields below
	clients map[int]Client
	last    int
	open    map[*openQuestion]struct{}
}

// openQuestion is a question without an answer.
type openQuestion struct {
	Question
	ctx     context.Context // ends with the question
	results chan result
	waiting int // clients that may still answer; guarded by the board's mu
}

type result struct {
	answer Answer
	err    error
}

// ErrGone is the error of a client that has left while it was asked. The question waits for
// another one.
var ErrGone = errors.New("the client is gone")

// errNobody says that a question cannot be asked.
var errNobody = errors.New("no client shows questions")

// NewBoard returns a board without clients.
func NewBoard(newID func() string) *Board {
	return &Board{newID: newID, clients: map[int]Client{}, open: map[*openQuestion]struct{}{}}
}

// Join adds a client. leave removes it; requests that it has not answered end when it ends them.
func (b *Board) Join(c Client) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	id := b.last
	b.clients[id] = c
	for q := range b.open {
		b.pass(q, c)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.clients, id)
	}
}

// Empty reports whether no client would show a question.
func (b *Board) Empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.clients) == 0
}

// pass asks one client. mu is held.
func (b *Board) pass(q *openQuestion, c Client) {
	q.waiting++
	go func() {
		answer, err := c.Ask(q.ctx, q.Question)
		if errors.Is(err, ErrGone) {
			b.mu.Lock()
			defer b.mu.Unlock()
			q.waiting--
			return
		}
		select {
		case q.results <- result{answer, err}:
		case <-q.ctx.Done():
		}
	}()
}

// Ask implements Client. It fails if every client that is there has failed.
func (b *Board) Ask(ctx context.Context, question Question) (Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	question.ID = b.newID()
	q := &openQuestion{Question: question, ctx: ctx, results: make(chan result)}
	b.mu.Lock()
	if len(b.clients) == 0 {
		b.mu.Unlock()
		return Answer{}, errNobody
	}
	b.open[q] = struct{}{}
	for _, c := range b.clients {
		b.pass(q, c)
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, q)
	}()
	for {
		select {
		case r := <-q.results:
			if r.err == nil || b.failed(q) {
				return r.answer, r.err
			}
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
}

// failed counts a client that cannot answer. It reports whether no client is left that can.
func (b *Board) failed(q *openQuestion) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.waiting--
	if q.waiting == 0 {
		delete(b.open, q) // a client that joins now is not asked
	}
	return q.waiting == 0
}
