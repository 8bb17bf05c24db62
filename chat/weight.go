package chat

import (
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// weight estimates the memory of an event, for the bound of the tail.
func weight(b event.Body) int {
	n := 256
	switch b := b.(type) {
	case event.UserMessage:
		n += len(b.Text)
		for _, c := range b.Context {
			n += len(c.Text) + len(c.Data)
		}
	case event.SystemPrompt:
		for _, p := range b.Parts {
			n += len(p.Text)
		}
	case event.ToolJudged:
		n += len(b.Arguments) + len(b.Rule) + len(b.Reason) + detailsWeight(b.Details)
	case event.ToolFinished:
		n += detailsWeight(b.Details)
		for _, o := range append(b.Outputs[:len(b.Outputs):len(b.Outputs)], b.Context...) {
			n += len(o)
		}
		for _, i := range b.Images {
			n += len(i.Data)
		}
		for _, i := range b.Instructions {
			n += len(i.Text)
		}
	case event.ReasoningFinished:
		n += len(b.Opaque)
	case event.Flag:
		n += len(b.Text)
	case event.HookFinished:
		n += len(b.Output) + len(b.Error)
	case event.ToolRejected:
		n += len(b.Message)
	case event.PromptAmended:
		if b.Prompt != nil {
			n += len(*b.Prompt)
		}
		for _, c := range b.Context {
			n += len(c)
		}
		for _, s := range b.Said {
			n += len(s.Text)
			for _, i := range s.Images {
				n += len(i.Data)
			}
		}
	case event.Compacted:
		n += len(b.Summary)
	case event.Continued:
		n += len(b.Text) + len(b.Prompt)
	case event.ImagesRefused:
		n += len(b.Text)
	case event.Report:
		n += len(b.Text)
	default:
		text, _ := deltaText(b)
		n += len(text)
	}
	return n
}

func detailsWeight(d *event.Details) int {
	n := 0
	if d != nil && d.FileChange != nil {
		n += len(d.FileChange.Diff)
	}
	if d != nil && d.ShellCommand != nil {
		for _, c := range d.ShellCommand.Commands {
			n += len(c.Name) + len(strings.Join(c.Args, " "))
		}
		for _, e := range d.ShellCommand.Effects {
			n += len(e.Command) + len(e.Target) + len(e.Reason)
		}
	}
	if d != nil && d.Rule != nil {
		n += len(d.Rule.ID)
	}
	if d != nil && d.Tasks != nil {
		for _, t := range d.Tasks.Tasks {
			n += 64 + len(t.Subject) + len(t.Description)
		}
	}
	return n
}

// weight estimates the memory that a history takes.
func (h *history) weight() int {
	const each = 128 // of a part, besides its text
	size := 0
	for _, p := range h.system.Parts {
		size += each + len(p.Text)
	}
	for _, m := range h.done {
		for _, p := range m.Parts {
			size += each
			switch p := p.(type) {
			case llm.Text:
				size += len(p.Text)
			case llm.Image:
				size += len(p.Data)
			case llm.Reasoning:
				size += len(p.Text) + len(p.Opaque)
			case llm.ToolCall:
				size += len(p.Arguments)
			case llm.ToolResult:
				size += len(p.Text)
				for _, i := range p.Images {
					size += len(i.Data)
				}
			}
		}
	}
	return size
}
