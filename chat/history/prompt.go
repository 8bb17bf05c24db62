package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// addUserMessage adds a message of the user, unless it is a command that the model does not see.
func (h *History) addUserMessage(m event.UserMessage) {
	h.flush()
	h.promptStart, h.promptCounted = len(h.messages), !m.Steer && !m.Command
	if m.Command && m.Prompt == "" {
		return
	}
	if h.promptCounted {
		h.prompts++
	}
	h.messages = append(h.messages, userMessage(m))
}

func userMessage(m event.UserMessage) llm.Message {
	text := m.Text
	if m.Prompt != "" {
		text = m.Prompt
	}
	msg := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}}
	for _, b := range m.Context {
		msg.Parts = append(msg.Parts, llm.Text{Text: contextText(b)})
		if len(b.Data) > 0 {
			msg.Parts = append(msg.Parts, llm.Image{MediaType: b.MediaType, Data: b.Data})
		}
	}
	return msg
}

// contextText marks a block of context, so that the model can tell it from the user's text.
func contextText(b event.Block) string {
	label, _ := json.Marshal(b.Label)
	return fmt.Sprintf("<context label=%s>\n%s\n</context>", label, strings.TrimRight(b.Text, "\n"))
}

// replacementMessages returns the messages that replace a prompt. Providers want the first and the last message
// to be the user's, so replies adds such messages if needed. The last message gets the prompt's
// context.
func replacementMessages(said []event.Said, prompt string, context []llm.Part) []llm.Message {
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

// LastText returns the text of the model's last message; ok is false if the history does not end with
// a message of the model.
func (h *History) LastText() (text string, ok bool) {
	messages := h.Messages()
	if len(messages) == 0 || messages[len(messages)-1].Role != llm.Assistant {
		return "", false
	}
	for _, p := range messages[len(messages)-1].Parts {
		if t, isText := p.(llm.Text); isText {
			text += t.Text
		}
	}
	return text, true
}

// amendPrompt changes the last prompt.
func (h *History) amendPrompt(a event.PromptAmended) {
	last := len(h.messages) - 1
	if last < h.promptStart || len(h.messages[last].Parts) == 0 { // a command that the model does not see
		return
	}
	parts := slices.Clone(h.messages[last].Parts)
	text, ok := parts[0].(llm.Text)
	if !ok {
		return
	}
	if len(a.Said) > 0 {
		h.messages = append(h.messages[:last:last], replacementMessages(a.Said, text.Text, parts[1:])...)
		return
	}
	if a.Prompt != nil {
		text.Text = *a.Prompt
	}
	if more := FromHooks(a.Context); more != "" {
		text.Text += "\n\n" + more
	}
	parts[0] = text
	h.messages = append(h.messages[:last:last], llm.Message{Role: h.messages[last].Role, Parts: parts})
}

// forgetPrompt removes the last prompt and all that follows.
func (h *History) forgetPrompt() {
	h.messages = h.messages[:h.promptStart:h.promptStart]
	if h.promptCounted {
		h.prompts, h.promptCounted = h.prompts-1, false
	}
}

// modelChange tracks the models of the last two turns that asked a model.
type modelChange struct {
	current, previous string // full ids
	command           bool   // the last message is a command that the model does not see
}

func (c *modelChange) add(b event.Body) {
	switch b := b.(type) {
	case event.UserMessage:
		c.command = b.Command && b.Prompt == ""
	case event.TurnStarted:
		if !c.command {
			c.current, c.previous = b.Model, c.current
		}
	default:
	}
}

// pendingDialog tracks whether a dialog with eca is open.
type pendingDialog struct{ open bool }

func (p *pendingDialog) add(b event.Body) {
	switch b := b.(type) {
	case event.UserMessage:
		if !b.Steer {
			p.open = b.Dialog
		}
	case event.TurnFinished:
		p.open = b.Dialog || p.open && b.Reason == event.FinishedInterrupted
	default:
	}
}
