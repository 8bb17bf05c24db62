package chat

import (
	"errors"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// refresh updates the log from the store. If another process has continued the chat, refresh drops
// the history, so that load reads it again. It returns ErrNoChat if another process has deleted the
// chat.
func (s *Session) refresh() error {
	changed, deleted, err := s.log.Refresh(s.ctx)
	switch {
	case err != nil && (s.history != nil || s.log.Next() == 1):
		return nil // continue with the history in memory; the log reports the failure
	case err != nil:
		return fmt.Errorf("the chat cannot be read: %w", err)
	case deleted:
		return fmt.Errorf("another eca process has deleted this chat: %w", ErrNoChat)
	case changed:
		s.history = nil
	}
	return nil
}

// load updates the log and the history from the store, and ends a turn that the death of a daemon
// interrupted.
func (s *Session) load() error {
	err := s.refresh()
	if errors.Is(err, ErrNoChat) { // a prompt begins it again
		err = s.truncate(1, "")
	}
	if err != nil || s.history != nil {
		return err
	}
	s.log.Flush()
	h := history.New()
	s.cost.set(0)
	turn, finished := "", true
	if s.log.Next() > 1 {
		err := s.each(s.ctx, 1, func(e event.Event) {
			h.Add(e.Body)
			switch b := e.Body.(type) {
			case event.UserMessage, event.TurnStarted:
				turn, finished = e.Turn, false
			case event.TurnFinished:
				finished = true
			case event.UsageReported:
				if b.TotalCost != nil {
					s.cost.set(*b.TotalCost)
				}
			default:
			}
		})
		if err != nil {
			return err
		}
	}
	s.history = h
	if !finished {
		s.repair(turn)
	}
	s.restoreState(s.history.AwaitsDialog())
	return nil
}

// repair appends the missing end of a turn whose process died.
func (s *Session) repair(turnID string) {
	var bodies []event.Body
	for _, id := range s.history.OpenCalls() {
		bodies = append(bodies, s.history.Reject(id, event.Interrupted))
	}
	bodies = append(bodies, s.history.InterruptedReports()...)
	bodies = append(bodies, event.TurnFinished{Reason: event.FinishedInterrupted})
	for _, b := range bodies {
		s.history.Add(b)
	}
	s.log.Append(turnID, bodies...)
}
