package chat

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// Preview returns the request that a prompt with this text would make now; nothing is
// asked and nothing changes. Without text it ends with what was said last.
func (s *Session) Preview(text string) *Pending[llm.Request] {
	return command(s, func() (llm.Request, error) {
		s.log.Flush()
		// The session's own history may be lent to a turn.
		h := history.New()
		if err := s.each(s.ctx, 1, func(e event.Event) { h.Add(e.Body) }); err != nil {
			return llm.Request{}, err
		}
		if text != "" {
			h.Add(event.UserMessage{Text: text})
		}
		t := newTurn(s, Prompt{})
		defer t.cancel(nil)
		t.rec.history, t.requests.preview = h, true
		var err error
		if t.model, err = t.chooseModel(); err != nil {
			return llm.Request{}, err
		}
		return t.requests.build(), nil
	})
}
