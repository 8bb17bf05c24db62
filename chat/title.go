package chat

import (
	"context"
	"runtime/debug"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

const (
	titleLength  = 40 // runes (eca-protocol 7.1, metadata)
	titleTimeout = 60 * time.Second
	titleInput   = 4000 // bytes of the conversation that are shown to the model
)

// title asks the model for a title at the first and the third prompt, in the
// background: the turn does not wait, and a failure is only logged.
func (t *turn) title() {
	turns := t.history.turns
	if !t.cfg.Chat.Title || turns != 1 && turns != 3 {
		return
	}
	req := llm.Request{
		Purpose: llm.PurposeTitle,
		Model:   t.model.Name,
		System:  t.cfg.Prompts.ChatTitle,
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{
			llm.Text{Text: "The conversation:\n\n" + transcript(t.history.done)},
		}}},
		CacheKey: t.s.id + "/title",
		Headers:  t.model.Headers,
		Extra:    t.model.Extra,
	}
	s, client := t.s, t.model.Client
	s.lease.share()
	s.background.Go(func() {
		defer s.lease.release()
		defer func() {
			if p := recover(); p != nil {
				s.eng.deps.Log.Error("title request panicked", "chat", s.id, "panic", p, "stack", string(debug.Stack()))
			}
		}()
		ctx, cancel := context.WithTimeout(s.ctx, titleTimeout)
		defer cancel()
		var b strings.Builder
		for d, err := range client.Stream(ctx, req) {
			if err != nil {
				if s.ctx.Err() == nil {
					s.eng.deps.Log.Warn("no title", "chat", s.id, "err", err)
				}
				return
			}
			if d.Kind == llm.TextDelta {
				b.WriteString(d.Text)
			}
		}
		if title := oneLine(b.String(), titleLength); title != "" && ctx.Err() == nil {
			s.setTitle(title)
		}
	})
}

// transcript is what was said, without tools, cut to the beginning.
func transcript(msgs []llm.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		for _, p := range m.Parts {
			if text, ok := p.(llm.Text); ok && b.Len() < titleInput {
				b.WriteString(string(m.Role) + ": " + text.Text + "\n\n")
			}
		}
	}
	s := b.String()
	if len(s) > titleInput {
		s = strings.ToValidUTF8(s[:titleInput], "")
	}
	return s
}
