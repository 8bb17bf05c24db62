package search

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
)

// Limits of the indexed text of one message, in bytes.
const (
	maxMessage = 64 << 10
	maxPart    = 16 << 10 // for a call's arguments, and for each of its outputs
)

// message is an indexed message.
type message struct {
	chat string
	seq  event.Seq // position of the message: a call's result, or the first event of another message
	role Role
	at   time.Time
	text string
}

// child is a call that has a subagent.
type child struct {
	id   string    // id of the subagent's chat
	chat string    // id of the parent chat
	seq  event.Seq // the result of the call
}

// reader converts a chat's events to messages.
type reader struct {
	chat  string
	fold  *transcript.Fold
	items map[event.Seq]transcript.Change // items of the unfinished turn

	messages []message
	children []child
	size     int // total size of the texts, in bytes
}

func newReader(chat string) *reader {
	return &reader{chat: chat, fold: transcript.New(), items: map[event.Seq]transcript.Change{}}
}

// add adds an event.
func (r *reader) add(e event.Event) {
	c, ok := r.fold.Add(e)
	if !ok {
		return
	}
	switch item := c.Item.(type) {
	case transcript.Prompt, transcript.Answer, transcript.Reasoning, transcript.Call, transcript.Compaction:
		r.items[c.ID] = c
	case transcript.Turn:
		if item.End != nil {
			r.finish()
		}
	case transcript.Notice, transcript.Report, transcript.Usage, transcript.Title, transcript.Progress, transcript.Hook, transcript.NoTasks, transcript.Flag:
		// not a message of the conversation
	}
}

// finish converts the items so far to messages.
func (r *reader) finish() {
	for _, c := range r.items {
		role, text := roleAndText(c.Item)
		at := c.ID
		if call, ok := c.Item.(transcript.Call); ok {
			at = c.Revision // clients show a finished call at its result
			if call.Subagent() != nil {
				r.children = append(r.children, child{call.Subagent().ChatID, r.chat, at})
			}
		}
		text = cutText(plainText(text), maxMessage)
		if strings.TrimSpace(text) == "" {
			continue
		}
		r.messages = append(r.messages, message{r.chat, at, role, c.Time, text})
		r.size += len(text)
	}
	clear(r.items)
}

// roleAndText returns the role and the text of an item. Slash commands have no text, so that a search
// does not find its own command.
func roleAndText(i transcript.Item) (Role, string) {
	switch i := i.(type) {
	case transcript.Prompt:
		if i.Command && i.Prompt == "" {
			return User, ""
		}
		return User, i.Text
	case transcript.Answer:
		return Assistant, i.Text
	case transcript.Reasoning:
		return Reasoning, i.Text
	case transcript.Compaction:
		return Summary, i.Summary
	case transcript.Call:
		parts := []string{i.Name, i.Judgment.Summary}
		var args any
		if json.Unmarshal(i.Arguments(), &args) == nil {
			parts = append(parts, cutText(strings.Join(appendStrings(args, nil), "\n"), maxPart))
		}
		for _, out := range i.Result.Outputs {
			parts = append(parts, cutText(out, maxPart))
		}
		return Tool, strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n")
	default:
		return "", ""
	}
}

// appendStrings appends all strings in a JSON value to out.
func appendStrings(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		return append(out, v)
	case []any:
		for _, e := range v {
			out = appendStrings(e, out)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = appendStrings(v[name], out)
		}
	}
	return out
}
