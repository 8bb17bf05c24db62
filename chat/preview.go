package chat

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// Preview returns the request that a prompt with this text would make now, without making it or
// changing the chat. If text is empty, the request ends with the last message of the chat.
func (s *Session) Preview(text string) *Pending[llm.Request] {
	return enqueue(s, func() (llm.Request, error) {
		s.log.Flush()
		// A running turn may own the session's history.
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
