package ask

import (
	"context"
	"errors"
	"sync"
)

// Board sends a question to all clients that have joined it, uses the first answer, and cancels the
// requests to the others. A client that joins while a question is open gets it, too. A question has
// the same id for all clients.
type Board struct {
	newID func() string

	mu      sync.Mutex // guards the fields below
	clients map[int]Client
	last    int
	open    map[*openQuestion]struct{}
}

// openQuestion is an unanswered question. The board's mu guards the fields below results.
type openQuestion struct {
	Question
	ctx        context.Context // ends with the question
	results    chan result     // receives the first answer, or the error of the last client
	waiting    int             // the number of clients that may still answer
	clientLeft bool            // a client has left before it answered
}

type result struct {
	answer Answer
	err    error
}

// ErrGone is the error of a client that left before it answered, and that may come back.
var ErrGone = errors.New("the client is gone")

// errNoClient means that no client can show the question.
var errNoClient = errors.New("no client shows questions")

// NewBoard returns a board without clients.
func NewBoard(newID func() string) *Board {
	return &Board{newID: newID, clients: map[int]Client{}, open: map[*openQuestion]struct{}{}}
}

// Join adds a client. leave removes the client; it does not end requests that the client has not
// answered, so the client has to do that.
func (b *Board) Join(c Client) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	id := b.last
	b.clients[id] = c
	for q := range b.open {
		b.sendTo(q, c)
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

// sendTo sends a question to one client, in another goroutine. The caller holds mu.
func (b *Board) sendTo(q *openQuestion, c Client) {
	q.waiting++
	go func() {
		answer, err := c.Ask(q.ctx, q.Question)
		b.mu.Lock()
		defer b.mu.Unlock()
		q.waiting--
		q.clientLeft = q.clientLeft || errors.Is(err, ErrGone)
		if err != nil && (q.waiting > 0 || q.clientLeft) {
			return
		}
		delete(b.open, q) // a client that joins now does not get it
		select {
		case q.results <- result{answer, err}:
		default: // another client has answered
		}
	}()
}

// Ask implements Client. It fails if all current clients fail, or if no client has ever joined. If a
// client leaves before it answers, or all clients have left before the question, the question stays
// open until a client answers or ctx ends: the user may be switching devices, and only the user knows
// whether to wait or to stop the chat.
func (b *Board) Ask(ctx context.Context, question Question) (Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	question.ID = b.newID()
	q := &openQuestion{Question: question, ctx: ctx, results: make(chan result, 1)}
	b.mu.Lock()
	if b.last == 0 {
		b.mu.Unlock()
		return Answer{}, errNoClient
	}
	q.clientLeft = len(b.clients) == 0
	b.open[q] = struct{}{}
	for _, c := range b.clients {
		b.sendTo(q, c)
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, q)
	}()
	select {
	case r := <-q.results:
		return r.answer, r.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}
