package acp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/seed-dec29ce4/eca/e2a"
)

// turn is a prompt that is being answered.
type turn struct {
	done chan struct{}
	stop context.CancelFunc

	mu        sync.Mutex // guards what follows
	accepted  bool       // it is in its session: stopping is the session's
	cancelled bool
	asked     bool // it ended because it asked something that is answered by a prompt
}

// cancel stops a turn; interrupt stops one that was accepted.
func (t *turn) cancel(interrupt func()) {
	t.mu.Lock()
	again, accepted := t.cancelled, t.accepted
	t.cancelled = true
	t.mu.Unlock()
	switch {
	case again:
	case accepted:
		interrupt()
	default:
		t.stop()
	}
}

func (t *turn) isCancelled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelled
}

// prompt begins to answer a prompt. One that comes while another is being answered takes
// its place.
func (a *agent) prompt(c *call) {
	s, err := a.named(c.Params)
	if err == nil {
		err = checkPrompt(c.Params)
	}
	if err != nil {
		a.answer(c, nil, err)
		return
	}
	before := s.turn
	if before != nil {
		before.cancel(func() { a.interrupt(s) })
	}
	ctx, stop := context.WithCancel(a.ctx)
	t := &turn{done: make(chan struct{}), stop: stop}
	s.turn = t
	// To cancel the request is to cancel the turn.
	unwatch := context.AfterFunc(c.ctx, func() { t.cancel(func() { a.interrupt(s) }) })
	a.work.Go(func() {
		defer close(t.done)
		defer stop()
		if before != nil {
			<-before.done
		}
		result, err := a.run(ctx, c, s, t)
		unwatch()
		switch {
		case a.ctx.Err() != nil:
			return // nobody listens
		case t.isCancelled():
			result, err = object{"stopReason": "cancelled"}, nil
		}
		a.answer(c, result, err)
	})
}

func checkPrompt(params json.RawMessage) error {
	var p struct {
		Prompt []json.RawMessage `json:"prompt"`
	}
	if err := decode(params, &p); err != nil {
		return err
	}
	if len(p.Prompt) == 0 {
		return failure(codeParams, "prompt must be a list of content blocks, at least one")
	}
	return nil
}

// run has the gateway run a turn, and tells all of it.
func (a *agent) run(ctx context.Context, c *call, s *session, t *turn) (object, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	asking := &asking{agent: a, session: s, call: c, turn: t}
	asking.ctx, asking.cancel = context.WithCancel(ctx)
	teller := a.teller(s)
	teller.ask, teller.question = asking.permission, asking.question
	var last e2a.Response
	err := s.place.gateway.Run(ctx, a.envelope(c, "", nil), func(r e2a.Response) error {
		if r.IsFinal {
			last = r
			return nil
		}
		return teller.tell(r)
	}, func() {
		t.mu.Lock()
		t.accepted = true
		t.mu.Unlock()
	})
	asking.end()
	if err != nil {
		return nil, err
	}
	_, err = resultOf(last)
	if told := teller.end(err, t.isCancelled()); told != nil {
		a.log.Warn("the end of a turn is not told", "err", told)
	}
	if err != nil {
		return nil, err
	}
	if ctx.Err() == nil {
		asked := &call{message: message{Method: c.Method, ID: c.ID}, ctx: ctx} // without the prompt
		if err := a.tellChanges(asked, s); err != nil {
			a.log.Warn("what a turn changed is not told", "err", err)
		}
	}
	return object{"stopReason": t.reason(e2a.StopReason(last))}, nil
}

// reason is why a turn stopped, in ACP's words. A call that the user refused ends the turn:
// the user says what to do instead.
func (t *turn) reason(stop string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.asked && !t.cancelled, stop == "rejected":
		return "end_turn"
	case stop == "loop":
		return "max_turn_requests"
	}
	switch stop {
	case "max_tokens", "max_turn_requests", "refusal", "cancelled":
		return stop
	}
	return "end_turn"
}

// cancel stops the turn of a session. Its prompt is answered when it has ended.
func (a *agent) cancel(params json.RawMessage) {
	s, err := a.named(params)
	if err != nil {
		a.log.Warn(e2a.MethodCancel, "err", err) // a notification: nobody waits for an answer
		return
	}
	if s.turn != nil {
		s.turn.cancel(func() { a.interrupt(s) })
	}
}

// stop stops the turn of a session and waits for its end.
func (a *agent) stop(s *session) {
	if s.turn != nil {
		s.turn.cancel(func() { a.interrupt(s) })
		<-s.turn.done
	}
}

func (a *agent) interrupt(s *session) {
	c := &call{message: message{Method: e2a.MethodCancel}}
	if _, err := s.place.do(a.ctx, a.envelope(c, e2a.MethodInterrupt, object{"sessionId": s.id}), nil); err != nil {
		a.log.Warn("a turn can not be stopped", "session", s.id, "err", err)
	}
}
