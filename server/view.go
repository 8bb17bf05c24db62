package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// view shows one chat to the client: it reads the chat's log from where the client
// came in and sends what each event maps to. If the client does not read, the view
// waits; the chat does not.
//
// Everything the client is told about a chat goes through its view, replays too, so
// that it has one order.
type view struct {
	s       *Server
	chatID  string
	session *chat.Session
	ended   chan struct{}

	// Owned by the view's goroutine.
	reader *chat.Reader
	mapper *mapper
	title  string            // that the client knows
	using  event.TurnStarted // the last
	// The request that the turn shown now answers, until the answer has its place.
	opening *expectedTurn
	// Subagents that are shown, by the calls they work for.
	children map[string]*childView

	asked  atomic.Bool   // there are errands
	asking chan struct{} // holds one element while a question to the user is open

	mu      sync.Mutex               // guards what follows
	turns   map[string]*expectedTurn // by turn id
	errands []errand
	wake    context.CancelFunc // ends the wait for the next event
}

// errand is something that the view does between two events, once it has shown
// everything in front of an event.
type errand struct {
	at  event.Seq
	run func(ctx context.Context)
}

// expectedTurn is a chat/prompt request that is not answered yet. The view stops
// after it has shown that the prompt was accepted, until the answer is queued.
type expectedTurn struct {
	shown    chan struct{} // closed when the accepted prompt is on the wire
	answered <-chan struct{}
	whole    bool // the answer follows the end of the turn
}

// view returns the view of a session, starting one if there is none.
func (s *Server) view(session *chat.Session) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.views[session.ID()]; ok && v.session == session && !v.hasEnded() {
		return v
	}
	v := &view{
		s: s, chatID: session.ID(), session: session, ended: make(chan struct{}), turns: map[string]*expectedTurn{}, children: map[string]*childView{},
		reader: session.Read(session.Next()), title: session.Meta().Title, wake: func() {}, asking: make(chan struct{}, 1),
	}
	v.mapper = s.newMapper(v.chatID)
	s.views[v.chatID] = v
	go v.run(s.ctx)
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

// expectTurn announces that a turn answers a request. It must be called before the
// prompt is submitted.
func (v *view) expectTurn(id string, answered <-chan struct{}, whole bool) *expectedTurn {
	t := &expectedTurn{shown: make(chan struct{}), answered: answered, whole: whole}
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

// do runs fn on the view's goroutine, after everything in front of an event has been
// shown, and waits for it. It does nothing if the view ends first.
func (v *view) do(ctx context.Context, at event.Seq, fn func(ctx context.Context)) error {
	done := make(chan struct{})
	v.mu.Lock()
	v.errands = append(v.errands, errand{at, func(ctx context.Context) {
		defer close(done)
		fn(ctx)
	}})
	v.asked.Store(true)
	v.wake()
	v.mu.Unlock()
	select {
	case <-done:
	case <-v.ended:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// showUntil waits until everything in front of an event is on the wire.
func (v *view) showUntil(ctx context.Context, at event.Seq) error {
	return v.do(ctx, at, func(context.Context) {})
}

// runErrands runs those that are due.
func (v *view) runErrands(ctx context.Context) {
	if !v.asked.Load() {
		return
	}
	v.mu.Lock()
	var due []errand
	v.errands = slices.DeleteFunc(v.errands, func(e errand) bool {
		if e.at > v.reader.Position() {
			return false
		}
		due = append(due, e)
		return true
	})
	v.asked.Store(len(v.errands) > 0)
	v.mu.Unlock()
	for _, e := range due {
		e.run(ctx)
	}
}

// next waits for the next event; ok is false when there will be none. It comes back
// early, with no body, when there is an errand.
func (v *view) next(ctx context.Context) (e event.Event, ok bool, err error) {
	waiting, wake := context.WithCancel(ctx)
	defer wake()
	v.mu.Lock()
	v.wake = wake
	if slices.ContainsFunc(v.errands, func(e errand) bool { return e.at <= v.reader.Position() }) {
		wake()
	}
	v.mu.Unlock()
	e, ok, err = v.reader.Next(waiting)
	if !ok && err == nil && waiting.Err() != nil && ctx.Err() == nil {
		return event.Event{}, true, nil
	}
	return e, ok, err
}

func (v *view) run(ctx context.Context) {
	defer close(v.ended)
	defer v.leaveChildren()
	for {
		v.runErrands(ctx)
		e, ok, err := v.reader.Try(ctx)
		if !ok && err == nil {
			e, ok, err = v.next(ctx)
		}
		if err == nil && ok {
			err = v.show(ctx, e)
		}
		if err != nil {
			ok = v.recover(ctx, err)
		}
		if !ok {
			return
		}
	}
}

// show shows an event.
func (v *view) show(ctx context.Context, e event.Event) error {
	switch e.Body.(type) {
	case nil:
		return nil
	case event.Truncated, event.Flag:
		return v.clearAndReplay(ctx)
	}
	if _, ok := e.Body.(event.TurnFinished); ok && v.opening == nil {
		v.opening = v.takeTurn(e.Turn) // /resume removed its beginning before it was shown
	}
	v.follow(ctx, e)
	behind, last := v.opening.place(e.Body)
	if behind {
		v.letAnswer(ctx)
	}
	v.beforeChild(ctx, e)
	v.send(ctx, v.mapper.notifications(e))
	v.behindChild(ctx, e)
	if _, ok := e.Body.(event.TurnStarted); ok {
		v.opening = v.takeTurn(e.Turn)
	}
	if last {
		v.letAnswer(ctx)
	}
	return nil
}

// letAnswer waits until the answer to the prompt is queued.
func (v *view) letAnswer(ctx context.Context) {
	if v.opening != nil {
		close(v.opening.shown)
		v.opening.waitAnswered(ctx)
		v.opening = nil
	}
}

func (v *view) send(ctx context.Context, list []notification) {
	for _, n := range list {
		v.s.notify(ctx, n.Method, n.Params)
	}
}

// place says whether an event stands behind the answer to the prompt, and whether it
// is the last one in front of it.
func (t *expectedTurn) place(b event.Body) (behind, last bool) {
	switch b.(type) {
	case event.TurnFinished:
		return false, true
	case event.UserMessage, event.TurnStarted, event.Notice, event.TitleChanged:
		return false, false
	case event.Progress:
		return false, t != nil && !t.whole
	}
	return t != nil && !t.whole, false // a reader that fell behind does not see progress
}

// awaitTurn waits until the client was shown that its prompt was accepted; false means
// that it never will be: the chat was deleted, or rolled back to before the prompt.
func (v *view) awaitTurn(ctx context.Context, turn *expectedTurn, ended <-chan struct{}) bool {
	select {
	case <-turn.shown:
		return true
	case <-v.ended:
		return false
	case <-ctx.Done():
		return true
	case <-ended:
	}
	behind := make(chan struct{})
	go func() {
		defer close(behind)
		_ = v.showUntil(ctx, v.session.Settled())
	}()
	select {
	case <-turn.shown:
		return true
	case <-behind:
		return false
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
