package importer

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// Summary returns the summary of a chat as a record. Keys without a value are absent.
func Summary(m chat.Meta, prompts int) Record {
	out := transitMap{field("id", m.ID)}
	if m.Title != "" {
		out = append(out, field("title", m.Title))
	}
	out = append(out, field("status", "idle"))
	if m.Model != "" {
		out = append(out, field("model", m.Model))
	}
	return Record{append(out,
		field("created-at", millis(m.Created)), field("updated-at", millis(m.Updated)), field("user-prompt-count", prompts))}
}

// Messages returns the records that the reference would have stored for a chat with these
// events. It stops after an error. Flags must be in the position where they are shown, not
// in that of their sequence numbers. Titles, notices, usage and progress have no records.
func Messages(events iter.Seq2[event.Event, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		w := writer{reasons: map[string]*strings.Builder{}, calls: map[string]event.ToolJudged{}}
		for e, err := range events {
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range w.add(e) {
				if !yield(r, nil) {
					return
				}
			}
		}
		for _, r := range w.flush() {
			yield(r, nil)
		}
	}
}

// writer collects the pieces of messages.
type writer struct {
	text    strings.Builder
	textAt  time.Time // of its last piece
	reasons map[string]*strings.Builder
	calls   map[string]event.ToolJudged
}

// add returns the messages that an event completes.
func (w *writer) add(e event.Event) []Record {
	switch b := e.Body.(type) {
	case event.TextDelta:
		w.text.WriteString(b.Text)
		w.textAt = e.Time
	case event.UserMessage:
		if b.Command && b.Prompt == "" {
			return w.flush() // a command that the model does not see
		}
		parts := []any{textPart(cmp.Or(b.Prompt, b.Text))}
		for _, c := range b.Context {
			parts = append(parts, textPart(c.Text))
		}
		return append(w.flush(), message("user", parts, e.Time, field("content-id", b.ContentID)))
	case event.Continued:
		if b.Prompt != "" {
			return append(w.flush(), message("user", []any{textPart(b.Prompt)}, e.Time))
		}
		return w.flush()
	case event.Report:
		return append(w.flush(), message("user", []any{textPart(b.Text)}, e.Time))
	case event.ReasoningStarted:
		w.reasons[b.ID] = &strings.Builder{}
		return w.flush()
	case event.ReasoningDelta:
		if r := w.reasons[b.ID]; r != nil {
			r.WriteString(b.Text)
		}
	case event.ReasoningFinished:
		return append(w.flush(), w.reason(b, e.Time))
	case event.ToolJudged:
		w.calls[b.CallID] = b
		if b.Origin == originServer && b.Name == llm.ImageGeneration {
			return w.flush()
		}
		if b.Origin == originServer {
			return append(w.flush(), message("server_tool_use", transitMap{field("id", b.CallID), field("name", b.Name), field("input", b.Arguments)}, e.Time))
		}
		return append(w.flush(), message("tool_call", callFields(b), e.Time))
	case event.ToolFinished:
		return w.output(b, e.Time, field("total-time-ms", b.ElapsedMS))
	case event.ToolRejected:
		why := "The call did not run to its end: " + string(b.Reason)
		return w.output(event.ToolFinished{CallID: b.CallID, Failed: true, Outputs: []string{why}}, e.Time)
	case event.Flag:
		return append(w.flush(), message("flag", transitMap{field("text", b.Text)}, e.Time, field("content-id", b.ContentID)))
	case event.TurnFinished:
		return w.flush()
	default: // the reference does not store it
	}
	return nil
}

// flush returns the model's text so far as a message, if any.
func (w *writer) flush() []Record {
	if w.text.Len() == 0 {
		return nil
	}
	r := message("assistant", []any{textPart(w.text.String())}, w.textAt)
	w.text.Reset()
	return []Record{r}
}

// reason is the inverse of converter.reason. It omits the provider data of eca's own chats,
// because that is not in the reference's format.
func (w *writer) reason(b event.ReasoningFinished, at time.Time) Record {
	content := transitMap{field("id", b.ID), field("total-time-ms", b.ElapsedMS)}
	if r := w.reasons[b.ID]; r != nil {
		content = append(content, field("text", r.String()))
		delete(w.reasons, b.ID)
	}
	var imported map[string]json.RawMessage
	if b.API == "" && json.Unmarshal(b.Opaque, &imported) == nil {
		for _, k := range slices.Sorted(maps.Keys(imported)) {
			content = append(content, field(k, imported[k]))
		}
	}
	return message("reason", content, at)
}

// output returns the records for the result of a call. A call whose arguments are
// incomplete has no records.
func (w *writer) output(b event.ToolFinished, at time.Time, more ...transitField) []Record {
	call, ok := w.calls[b.CallID]
	if !ok {
		return nil
	}
	delete(w.calls, b.CallID)
	if call.Origin == originServer && len(b.Images) > 0 {
		var out []Record
		for _, i := range b.Images {
			out = append(out, message("image_generation_call", transitMap{
				field("id", b.CallID), field("media-type", i.MediaType), field("base64", base64.StdEncoding.EncodeToString(i.Data)),
			}, at))
		}
		return append(w.flush(), out...)
	}
	if call.Origin == originServer {
		var raw any
		if out := strings.Join(b.Outputs, "\n"); json.Valid([]byte(out)) {
			raw = json.RawMessage(out)
		}
		return append(w.flush(), message("server_tool_result", transitMap{field("tool-use-id", b.CallID), field("raw-content", raw)}, at))
	}
	if b.Details != nil {
		call.Details = b.Details
	}
	contents := []any{}
	for _, o := range b.Outputs {
		contents = append(contents, textPart(o))
	}
	content := append(callFields(call), field("error", b.Failed),
		field("output", transitMap{field("error", b.Failed), field("contents", contents)}))
	return append(w.flush(), message("tool_call_output", append(content, more...), at))
}

func message(role string, content any, at time.Time, more ...transitField) Record {
	m := transitMap{field("role", role), field("content", content)}
	return Record{append(append(m, more...), field("created-at", millis(at)))}
}

func textPart(s string) transitMap { return transitMap{field("type", "text"), field("text", s)} }

func field(key string, value any) transitField { return transitField{Key: key, Value: value} }

// callFields returns the fields that a call and its output share.
func callFields(b event.ToolJudged) transitMap {
	fullName := b.Server + "__" + b.Name
	if b.Origin == "unknown" {
		fullName = b.Name
	}
	out := transitMap{
		field("id", b.CallID), field("name", b.Name), field("full-name", fullName),
		field("server", b.Server), field("origin", b.Origin), field("arguments", b.Arguments),
	}
	if b.Summary != "" {
		out = append(out, field("summary", b.Summary))
	}
	if d := detailFields(b.Details); d != nil {
		out = append(out, field("details", d))
	}
	return out
}

func detailFields(d *event.Details) transitMap {
	switch {
	case d == nil:
		return nil
	case d.FileChange != nil:
		f := d.FileChange
		return transitMap{
			field("type", "fileChange"), field("path", f.Path), field("diff", f.Diff),
			field("linesAdded", f.LinesAdded), field("linesRemoved", f.LinesRemoved),
		}
	case d.ShellCommand != nil:
		commands := []any{}
		for _, c := range d.ShellCommand.Commands {
			commands = append(commands, transitMap{
				field("command", c.Name), field("args", append([]string{}, c.Args...)),
				field("approvalKey", c.Key), field("remembered", c.Remembered),
			})
		}
		return transitMap{field("type", "shellCommand"), field("commands", commands)}
	}
	return nil
}
