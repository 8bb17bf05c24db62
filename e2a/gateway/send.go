package gateway

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// chatSend runs a turn and tells all that happens in it.
func (a *answer) chatSend(ctx context.Context) error {
	said, err := promptOf(ctx, a.envelope)
	if err != nil {
		return err
	}
	id := a.sessionID()
	if id != "" && !chat.ValidID(id) {
		return fail(codeBadParams, "session_id %q is no id of a session", id)
	}
	var meta chat.Meta
	change, err := a.settings(ctx)
	if err != nil {
		return err
	}
	change(&meta)
	a.g.ready()
	session, _, err := a.g.host.Engine().Open(ctx, id)
	if err != nil {
		return err
	}
	if id == "" {
		id = session.ID()
		a.envelope.SessionID = &id
		a.Session(id)
	}
	p := chat.Prompt{TurnID: a.g.newID(), Text: said.text, Contexts: said.refs, Model: meta.Model, Agent: meta.Agent, Variant: meta.Variant}
	if trust, ok := a.envelope.Params["trust"].(bool); ok {
		p.Trust = &trust
	}
	return a.turn(ctx, session, p, said.leftOut)
}

// turn submits a prompt and follows its turn to the end. If nobody follows any more, the
// turn is stopped. leftOut is told to the user first.
func (a *answer) turn(ctx context.Context, session *chat.Session, p chat.Prompt, leftOut []string) error {
	m := newMapper(a)
	m.session = session
	defer a.g.pending.forget(m)
	from := session.Next()
	asked := make(chan shownQuestion)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer a.g.questions.listen(session.ID(), func(id string, q ask.Question) {
		select {
		case asked <- shownQuestion{id, q}:
		case <-ctx.Done():
		}
	})()
	accepted, err := session.Submit(p).Wait(ctx)
	if err != nil {
		if ctx.Err() != nil { // it may be accepted yet, and nobody would follow it
			session.Cancel()
		}
		return err
	}
	a.accepted()
	if len(leftOut) > 0 {
		if err := m.custom("notice", map[string]any{"text": "Left out of the prompt: " + strings.Join(leftOut, "; ") + "\n\n"}); err != nil {
			session.Cancel()
			return err
		}
	}
	events := make(chan event.Event)
	failed := make(chan error, 1)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		for e, err := range session.Events(ctx, from) {
			if err != nil {
				failed <- err
				return
			}
			if e.Turn != accepted.TurnID {
				continue
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() == nil { // else nobody follows any more, and the turn is to be stopped
			failed <- errClosed
		}
	}()
	err = a.follow(ctx, m, events, asked, failed)
	if err != nil && !isEnd(err) {
		session.Cancel()
	}
	cancel()
	<-reading
	return err
}

// errClosed ends an answer whose chat was closed under it.
var errClosed = fail(codeGone, "the session was closed")

type shownQuestion struct {
	id string
	ask.Question
}

// follow shows events until the turn has ended.
func (a *answer) follow(ctx context.Context, m *mapper, events <-chan event.Event, asked <-chan shownQuestion, failed <-chan error) error {
	for {
		select {
		case e := <-events:
			if err := m.show(e); err != nil {
				return err
			}
			if end, ok := e.Body.(event.TurnFinished); ok {
				return a.finish(m, end)
			}
		case q := <-asked:
			if err := m.question(q); err != nil {
				return err
			}
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isEnd says whether an error is the turn's own: it has ended.
func isEnd(err error) bool {
	var f *failure
	return errors.As(err, &f)
}

// Reasons why a turn stopped, as results say them. They are ACP's, and two of ours.
const (
	stopEnd       = "end_turn"
	stopCancelled = "cancelled"
	stopRejected  = "rejected" // the user refused a call
	stopLoop      = "loop"     // the model did the same again and again
)

// finish makes the final frame of a turn. One that the user stopped is complete.
func (a *answer) finish(m *mapper, end event.TurnFinished) error {
	reason := stopEnd
	switch end.Reason {
	case event.FinishedFailed:
		return fail(codeAgent, "%s", strings.TrimPrefix(end.Err, "Error: "))
	case event.FinishedStopped, event.FinishedSuperseded, event.FinishedInterrupted:
		reason = stopCancelled
	case event.FinishedRejected:
		reason = stopRejected
	case event.FinishedLoop:
		reason = stopLoop
	}
	return a.complete(map[string]any{"content": m.content.String(), "stop_reason": reason, "usage": m.usage.result()})
}
