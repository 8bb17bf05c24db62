package chat

import (
	"context"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// refresh brings the log up to what is stored. Another process may have gone on with
// the chat; then the history has to be read again.
func (s *Session) refresh() error {
	news, gone, err := s.log.Refresh(s.ctx)
	switch {
	case err != nil && (s.history != nil || s.log.Next() == 1):
		return nil // go on with what is in memory; the log reports the store
	case err != nil:
		return fmt.Errorf("the chat can not be read: %w", err)
	case gone:
		return s.truncate(1, "") // another process deleted the chat
	case news:
		s.history = nil
	}
	return nil
}

// load brings log and history up to what is stored, and repairs a turn that the
// death of a daemon cut off.
func (s *Session) load() error {
	if err := s.refresh(); err != nil || s.history != nil {
		return err
	}
	s.log.Flush()
	h := newHistory()
	s.cost.set(0)
	turn, finished := "", true
	if s.log.Next() > 1 {
		err := s.each(1, func(e event.Event) {
			h.add(e.Body)
			switch b := e.Body.(type) {
			case event.UserMessage, event.TurnStarted:
				turn, finished = e.Turn, false
			case event.TurnFinished:
				finished = true
			case event.UsageReported:
				if b.TotalCost != nil {
					s.cost.set(*b.TotalCost)
				}
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
	s.knowDialog()
	return nil
}

// each calls fn with the stored events from a number on.
func (s *Session) each(from event.Seq, fn func(event.Event)) error {
	return eachEvent(s.ctx, s.eng.deps.Store, s.id, from, fn)
}

func eachEvent(ctx context.Context, store Store, id string, from event.Seq, fn func(event.Event)) error {
	const page = 512
	for {
		var events []event.Event
		err := patiently(ctx, func() (err error) {
			events, err = store.Events(ctx, id, from, page)
			return err
		})
		if err != nil {
			return fmt.Errorf("the chat can not be read: %w", err)
		}
		for _, e := range events {
			fn(e)
			from = e.Seq + 1
		}
		if len(events) < page {
			return nil
		}
	}
}

// repair ends a turn whose process died.
func (s *Session) repair(turn string) {
	var bodies []event.Body
	for _, id := range s.history.openCalls() {
		bodies = append(bodies, s.history.reject(id, event.Interrupted))
	}
	bodies = append(bodies, s.history.lostReports()...)
	bodies = append(bodies, event.TurnFinished{Reason: event.FinishedInterrupted})
	for _, b := range bodies {
		s.history.add(b)
	}
	s.log.Append(turn, bodies...)
}
