package chat

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// Preview returns the request that a prompt with this text would make now; nothing is
// asked and nothing changes. Without text it ends with what was said last.
func (s *Session) Preview(text string) *Pending[llm.Request] {
	return command(s, func() (llm.Request, error) {
		s.log.Flush()
		// The session's own history may be lent to a turn.
		h := newHistory()
		if err := s.each(1, func(e event.Event) { h.add(e.Body) }); err != nil {
			return llm.Request{}, err
		}
		if text != "" {
			h.add(event.UserMessage{Text: text})
		}
		t := s.newTurn(Prompt{})
		defer t.cancel(nil)
		t.history, t.quiet = h, true
		var err error
		if t.model, err = t.chooseModel(); err != nil {
			return llm.Request{}, err
		}
		return t.build(), nil
	})
}
