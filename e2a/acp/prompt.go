package acp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// prompt is a prompt that is being answered.
type prompt struct {
	blocks []e2a.Block
	done   chan struct{}
	stop   context.CancelFunc

	mu                sync.Mutex // guards the fields below
	accepted          bool       // the session has accepted it, so it is stopped through the session
	cancelled         bool
	endedWithQuestion bool // the turn ended with a question that the next prompt answers
}

// setFlag sets a flag and returns its previous value.
func (p *prompt) setFlag(flag *bool) (was bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, *flag = *flag, true
	return was
}

func (p *prompt) isCancelled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cancelled
}

// cancel stops the turn of a prompt. It calls interrupt if the session has accepted the prompt.
func (p *prompt) cancel(interrupt func()) {
	p.mu.Lock()
	again, accepted := p.cancelled, p.accepted
	p.cancelled = true
	p.mu.Unlock()
	switch {
	case again:
	case accepted:
		interrupt()
	default:
		p.stop()
	}
}

type promptResult struct {
	StopReason turn.StopReason `json:"stopReason"`
}

// prompt starts to answer a prompt. If another prompt is being answered, the new one replaces it.
func (a *agent) prompt(c *call) {
	s, err := a.sessionOf(c.Params)
	var blocks []e2a.Block
	if err == nil {
		blocks, err = readPrompt(c.Params)
	}
	if err != nil {
		a.answer(c, nil, err)
		return
	}
	previous := s.prompt
	if previous != nil {
		previous.cancel(s.interrupt)
	}
	ctx, stop := context.WithCancel(a.ctx)
	p := &prompt{blocks: blocks, done: make(chan struct{}), stop: stop}
	s.prompt = p
	// Cancelling the request cancels the turn.
	stopWatching := context.AfterFunc(c.ctx, func() { p.cancel(s.interrupt) })
	a.work.Go(func() {
		defer close(p.done)
		defer stop()
		if previous != nil {
			<-previous.done
		}
		reason, err := a.run(ctx, s, p)
		stopWatching()
		switch {
		case a.ctx.Err() != nil:
			return // the client has disconnected
		case p.isCancelled():
			reason, err = turn.Cancelled, nil
		}
		a.answer(c, promptResult{reason}, err)
	})
}

func readPrompt(params json.RawMessage) ([]e2a.Block, error) {
	var p struct {
		Prompt []e2a.Block `json:"prompt"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	if len(p.Prompt) == 0 {
		return nil, failure(codeParams, "prompt must be a list of content blocks, at least one")
	}
	return p.Prompt, nil
}

// run runs the turn of a prompt and shows it.
func (a *agent) run(ctx context.Context, s *session, p *prompt) (turn.StopReason, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	turns := s.instance.turns
	t, err := turns.Start(ctx, turn.Request{Session: s.id, Blocks: p.blocks})
	if err != nil {
		return "", s.instance.errorFor(ctx, err)
	}
	p.setFlag(&p.accepted)
	d := newDialog(ctx, s, p)
	w := newWriter(s, d)
	outcome, err := t.Follow(w)
	d.end()
	if a.ctx.Err() != nil {
		return "", err
	}
	err = s.instance.errorFor(ctx, err)
	if showErr := w.end(err, p.isCancelled()); showErr != nil {
		a.log.Warn("cannot show the end of a turn", "err", showErr)
	}
	if err != nil {
		return "", err
	}
	if ctx.Err() == nil {
		if err := s.showChanges(ctx); err != nil {
			a.log.Warn("cannot show the settings that a turn changed", "err", err)
		}
	}
	return p.reason(outcome.Reason), nil
}

// reason converts a stop reason to ACP's. A turn that ended because the user rejected a call ends
// normally in ACP, so that the user can say what to do instead.
func (p *prompt) reason(stop turn.StopReason) turn.StopReason {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.endedWithQuestion && !p.cancelled, stop == turn.Rejected:
		return turn.EndTurn
	case stop == turn.Loop, stop == turn.Budget:
		return "max_turn_requests"
	}
	return stop
}

// cancel stops the turn of a session. Its prompt is answered when the turn has ended.
func (a *agent) cancel(params json.RawMessage) {
	s, err := a.sessionOf(params)
	if err != nil {
		a.log.Warn("session/cancel", "err", err) // a notification has no answer
		return
	}
	if s.prompt != nil {
		s.prompt.cancel(s.interrupt)
	}
}
