package server

import (
	"context"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// view shows one chat to the client: it reads the chat's log from where the client
// came in and sends what each event maps to. If the client does not read, the view
// waits; the chat does not.
type view struct {
	s      *Server
	chatID string
	ended  chan struct{}

	session *chat.Session

	mu    sync.Mutex               // guards turns
	turns map[string]*expectedTurn // by turn id
}

// expectedTurn is a chat/prompt request that is not answered yet. The view stops
// after it has shown that the prompt was accepted, until the answer is queued.
type expectedTurn struct {
	shown    chan struct{} // closed when the accepted prompt is on the wire
	answered <-chan struct{}
}

// view returns the view of a session, starting one if there is none.
func (s *Server) view(session *chat.Session) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.views[session.ID()]; ok && v.session == session && !v.hasEnded() {
		return v
	}
	v := &view{s: s, chatID: session.ID(), session: session, ended: make(chan struct{}), turns: map[string]*expectedTurn{}}
	s.views[v.chatID] = v
	go v.run(s.ctx, session.Next())
	return v
}

func (v *view) hasEnded() bool {
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// expectTurn announces that a turn answers req. It must be called before the prompt
// is submitted.
func (v *view) expectTurn(id string, req *jsonrpc.Request) *expectedTurn {
	t := &expectedTurn{shown: make(chan struct{}), answered: req.Answered()}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turns[id] = t
	return t
}

// takeTurn returns the request that a turn answers, once.
func (v *view) takeTurn(id string) *expectedTurn {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.turns[id]
	delete(v.turns, id)
	return t
}

func (v *view) run(ctx context.Context, from event.Seq) {
	defer close(v.ended)
	m := newMapper(v.chatID, v.s.host.Config().AutoCompactPercentage)
	var opening *expectedTurn
	open := func() {
		if opening != nil {
			close(opening.shown)
			opening.waitAnswered(ctx)
			opening = nil
		}
	}
	for e, err := range v.session.Events(ctx, from) {
		if err != nil {
			v.s.log.Error("chat can not be shown", "chat", v.chatID, "err", err)
			return
		}
		last := false // of what belongs in front of the answer to the prompt
		switch e.Body.(type) {
		case event.UserMessage, event.TurnStarted, event.Notice:
		case event.Progress, event.TurnFinished:
			last = true
		default:
			open() // a reader that fell behind does not see progress
		}
		for _, n := range m.notifications(e) {
			v.s.notify(ctx, n.Method, n.Params)
		}
		if _, ok := e.Body.(event.TurnStarted); ok {
			opening = v.takeTurn(e.Turn)
		}
		if last {
			open()
		}
	}
}

// waitAnswered keeps the model's answer behind the answer to the prompt.
func (t *expectedTurn) waitAnswered(ctx context.Context) {
	if t.answered == nil {
		return // a notification gets no answer
	}
	const patience = 5 * time.Second
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-t.answered:
	case <-ctx.Done():
	case <-timer.C:
	}
}
