package chat

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

const (
	titleLength  = 40 // runes (eca-protocol.md 7.1, metadata)
	titleTimeout = 60 * time.Second
	titleInput   = 4000 // bytes of the conversation that the model gets
)

// titleInBackground asks the model for a title in the background, without delaying the turn.
func (t *turn) titleInBackground() {
	s, text, done := t.session, t.textForTitle(), make(chan struct{})
	model := t.model // a fallback model may replace it meanwhile
	if text != "" {
		t.vars() // compute them now, because they depend on the model, which may be replaced
	}
	s.titleDone.Store(&done)
	s.background.Go(func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				s.eng.deps.Log.Error("title request panicked", "chat", s.id, "panic", p, "stack", string(debug.Stack()))
			}
		}()
		t.requestTitle(model, text)
	})
}

// AwaitTitle waits until the title request of a chat has ended, if one is running.
func (e *Engine) AwaitTitle(ctx context.Context, id string) {
	s, ok := e.Lookup(id)
	if !ok {
		return
	}
	if done := s.titleDone.Load(); done != nil {
		select {
		case <-*done:
		case <-ctx.Done():
		}
	}
}

// requestTitle asks the model for a title, if there is a conversation (see textForTitle). It only logs
// failures. The turn may end before the model answers.
func (t *turn) requestTitle(model Model, conversation string) {
	if conversation == "" {
		return
	}
	model = t.titleModel(model)
	ctx, cancel := context.WithTimeout(t.session.ctx, titleTimeout)
	defer cancel()
	text, usage, _, err := collect(ctx, model.Client, llm.Request{
		Purpose:  llm.PurposeTitle,
		Model:    model.Name,
		System:   t.render(cmp.Or(t.Config.Agents[t.agent].Prompts.ChatTitle, t.Config.Prompts.ChatTitle)),
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "The conversation:\n\n" + conversation}}}},
		Context:  model.Limit.Context,
		CacheKey: t.session.id + "/title",
		Headers:  model.Headers,
		Extra:    model.Extra,
		Origin:   t.origin(),
	})
	if err != nil {
		if t.session.ctx.Err() == nil {
			t.session.eng.deps.Log.Warn("the request for a title failed", "chat", t.session.id, "err", err)
		}
		return
	}
	err = t.session.appendWhenFree(ctx, func() {
		t.session.log.Append("", t.session.cost.sideUsage(model, llm.PurposeTitle, usage))
		if title := oneLine(text, titleLength); title != "" && ctx.Err() == nil {
			setGeneratedTitle(t.session.log, title)
		}
	})
	if err != nil && t.session.ctx.Err() == nil {
		t.session.eng.deps.Log.Warn("cannot store the title", "chat", t.session.id, "err", err)
	}
}

// titleModel returns the model that is configured for titles, or the chat's own.
func (t *turn) titleModel(own Model) Model {
	name := t.Config.Models.Title
	if name == "" {
		return own
	}
	m, err := t.Models.Resolve(name, own.ID)
	if err != nil {
		t.session.eng.deps.Log.Warn("models.title cannot be used; the chat's own model writes titles", "chat", t.session.id, "model", name, "err", err)
		return own
	}
	return m
}

// appendWhenFree runs change, which appends to the chat. While a turn runs in this process, it runs
// change immediately. Otherwise it runs change as an edit, and retries while another process uses the
// chat.
func (s *Session) appendWhenFree(ctx context.Context, change func()) error {
	if s.lease.share() {
		defer s.lease.release()
		change()
		return nil
	}
	const pause = time.Second
	for {
		_, err := edit(s, func() error { change(); return nil }).Wait(ctx)
		if !errors.Is(err, ErrBusyElsewhere) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// textForTitle returns the conversation for a title request, or "" if no title is to be generated in
// this turn. Titles are generated at the first and the third prompt, unless the user chose one.
func (t *turn) textForTitle() string {
	turns := read(t.rec, (*history.History).Prompts)
	if !t.Config.Chat.Title || turns != 1 && turns != 3 || t.session.log.Meta().Named {
		return ""
	}
	return titleText(read(t.rec, (*history.History).CompleteMessages))
}

// setGeneratedTitle sets a title unless the user chose one meanwhile.
func setGeneratedTitle(log *eventlog.Log, title string) {
	named := false
	log.SetMeta(func(m *Meta) {
		if named = m.Named; !named {
			m.Title = title
		}
	})
	if !named {
		log.Append("", event.TitleChanged{Title: title})
	}
}

// titleText returns the beginning of a conversation as text, without tool calls.
func titleText(msgs []llm.Message) string {
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
