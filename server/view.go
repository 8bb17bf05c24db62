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

	mu    sync.Mutex // guards turns
	turns []*expectedTurn
}

// expectedTurn is a chat/prompt request that is not answered yet. The view stops
// after it has shown that the prompt was accepted, until the answer is queued.
type expectedTurn struct {
	shown    chan struct{} // closed when the accepted prompt is on the wire
	answered <-chan struct{}

	once      sync.Once
	abandoned chan struct{}
}

// abandon gives up waiting for a turn that will not come.
func (t *expectedTurn) abandon() { t.once.Do(func() { close(t.abandoned) }) }

// view returns the view of a session, starting one if there is none.
func (s *Server) view(session *chat.Session) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.views[session.ID()]; ok {
		return v
	}
	v := &view{s: s, chatID: session.ID(), ended: make(chan struct{})}
	s.views[v.chatID] = v
	go v.run(s.ctx, session, session.Next())
	return v
}

// awaitView waits until the view of a chat that was closed has shown the chat's end;
// nothing more will be sent about it.
func (s *Server) awaitView(ctx context.Context, id string) {
	s.mu.Lock()
	v, ok := s.views[id]
	delete(s.views, id)
	s.mu.Unlock()
	if !ok {
		return
	}
	select {
	case <-v.ended:
	case <-ctx.Done():
	}
}

// expectTurn announces that the next turn answers req. It must be called before the
// prompt is submitted.
func (v *view) expectTurn(req *jsonrpc.Request) *expectedTurn {
	t := &expectedTurn{shown: make(chan struct{}), answered: req.Answered(), abandoned: make(chan struct{})}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turns = append(v.turns, t)
	return t
}

// nextTurn takes the request that the turn which begins now belongs to.
func (v *view) nextTurn() *expectedTurn {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.turns) > 0 {
		t := v.turns[0]
		v.turns = v.turns[1:]
		select {
		case <-t.abandoned:
		default:
			return t
		}
	}
	return nil
}

func (v *view) run(ctx context.Context, session *chat.Session, from event.Seq) {
	defer v.end()
	m := newMapper(v.chatID, v.s.host.Config().AutoCompactPercentage)
	var opening *expectedTurn
	for e, err := range session.Events(ctx, from) {
		if err != nil {
			v.s.log.Error("chat can not be shown", "chat", v.chatID, "err", err)
			return
		}
		for _, n := range m.notifications(e) {
			v.s.notify(ctx, n.Method, n.Params)
		}
		switch e.Body.(type) {
		case event.TurnStarted:
			opening = v.nextTurn()
		case event.Progress, event.TurnFinished:
			if opening != nil {
				close(opening.shown)
				opening.waitAnswered(ctx)
				opening = nil
			}
		}
	}
}

// end releases the requests whose turns will not be shown any more.
func (v *view) end() {
	for t := v.nextTurn(); t != nil; t = v.nextTurn() {
		t.abandon()
	}
	close(v.ended)
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
	case <-t.abandoned:
	case <-ctx.Done():
	case <-timer.C:
	}
}
