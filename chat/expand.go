package chat

import (
	"context"
	"errors"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// progressExpanding is shown while a command's prompt is asked for.
const progressExpanding = "Getting the prompt"

// prepare does what may take long in front of a prompt that a model is to answer. plain
// says that the prompt is no command.
func (t *turn) prepare(c Command, plain bool) error {
	if err := t.expand(c); err != nil {
		return err
	}
	return t.before(plain)
}

// expand gets the prompt of a command that others have. What goes wrong is told to the
// user, and the model never hears of the command.
func (t *turn) expand(c Command) error {
	if c.Expand == nil {
		return nil
	}
	t.enter(progressExpanding)
	said, err := c.Expand(t.ctx)
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case err != nil:
		t.say(err.Error())
		return errBlocked
	}
	t.emit(event.PromptAmended{Said: said})
	return nil
}

// replies makes the messages of what was said in place of a prompt. The first and the last
// one are the user's, as providers want it; the last one has the prompt's context.
func replies(said []event.Said, prompt string, context []llm.Part) []llm.Message {
	if said[0].Role == event.SaidByModel {
		said = append([]event.Said{{Role: event.SaidByUser, Text: prompt}}, said...)
	}
	if said[len(said)-1].Role == event.SaidByModel {
		said = append(said[:len(said):len(said)], event.Said{Role: event.SaidByUser, Text: "Go on."})
	}
	var out []llm.Message
	for _, s := range said {
		m := llm.Message{Role: llm.User}
		if s.Role == event.SaidByModel {
			m.Role = llm.Assistant
		}
		m.Parts = append(m.Parts, llm.Text{Text: s.Text})
		if m.Role == llm.User {
			for _, i := range s.Images {
				m.Parts = append(m.Parts, llm.Image(i))
			}
		}
		out = append(out, m)
	}
	last := &out[len(out)-1]
	last.Parts = append(last.Parts, context...)
	return out
}

// command does what a slash command says.
func (t *turn) command(c Command) error {
	if c.Dialog != nil {
		return t.talkOn(c.Dialog, c.Text)
	}
	if c.Run == nil {
		err := t.compact(c.Compact, false)
		if errors.Is(err, errCompactBlocked) {
			return nil
		}
		return err
	}
	text, err := c.Run(t.ctx, t.s)
	if err == nil && text != "" {
		t.emit(event.Notice{Text: text, Markdown: true})
	}
	return err
}
