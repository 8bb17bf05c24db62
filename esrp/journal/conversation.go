package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Conversation is the part of a recorded chat that can be replayed. It ends before the first turn
// that is not completely on record or cannot be repeated.
type Conversation struct {
	Turns         []Turn
	Tools         []llm.ToolSpec // all tools that were offered to the model
	Reasoning     bool           // reasoning of earlier turns was sent to the model again
	NotReplayable string         // why the next turn cannot be replayed, and the record that shows it; empty if all turns can
}

// Turn is a prompt with its requests.
type Turn struct {
	Prompt       string
	Contexts     []PromptContext
	Model        string // full id
	Agent        string
	Requests     []*RecordedRequest
	Compact      bool   // the user only ran /compact
	SummaryModel string // full id of the model that wrote summaries, if that differs from Model
	// Continues is the maximum number of consecutive requests to continue an answer.
	Continues int
	calls     []*toolCall
}

// PromptContext is a context of a prompt, as it was sent to the model.
type PromptContext struct {
	Label, Text string
	Image       llm.Image
}

// RecordedRequest is a recorded request to a model, with the answer.
type RecordedRequest struct {
	Seq     uint64
	Model   string // full id
	Context int64  // the model's context size in tokens, as configured then; 0 means unknown
	Summary bool   // it asks for a summary of the conversation
	Answer  []llm.Delta
	Failure *llm.Error // the error with which the answer ended, or nil

	// The following fields describe events between the answer and the next request.

	Steering  string // a prompt that the user sent during the turn
	Compacted bool   // the conversation was near its limit and was compacted
	// Continued means that the model was asked to continue after Failure. Otherwise Failure ended the
	// turn.
	Continued bool

	messages    []message
	asksSummary bool // the last message is eca's request for a summary, which is not compared
}

// toolCall is a tool call of a turn.
type toolCall struct {
	id, name  string
	arguments []byte
	outcome   ToolOutcome
	used      bool
}

// ToolOutcome is the recorded outcome of a tool call.
type ToolOutcome struct {
	Result    tools.Result
	Rejection event.RejectReason // why the call did not run, or ""; with RefusedInvalid, Result is for the model
	GoOn      bool               // the turn continued after the user's refusal
}

// Take returns the recorded outcome of a call with the same name and arguments. It prefers the call
// with the same id, and then the first one. It never returns an outcome twice.
func (t *Turn) Take(id, name string, arguments json.RawMessage) (ToolOutcome, bool) {
	same := cleanJSON(arguments, func(s string) string { return s })
	var found *toolCall
	for _, c := range t.calls {
		if c.used || c.name != name || !bytes.Equal(c.arguments, same) {
			continue
		}
		if found == nil || c.id == id {
			found = c
		}
		if c.id == id {
			break
		}
	}
	if found == nil {
		return ToolOutcome{}, false
	}
	found.used = true
	return found.outcome, true
}

// Compare returns the index of the first message that differs from the record, and both texts; -1
// if all messages are equal. Providers and eca generate new ids, so Compare does not compare their
// text. It only checks that two ids are equal in both conversations or in neither.
func (a *RecordedRequest) Compare(messages []llm.Message) (at int, want, got string) {
	recorded := a.messages
	if a.asksSummary && len(messages) > 0 {
		recorded, messages = recorded[:len(recorded)-1], messages[:len(messages)-1]
	}
	old, new := ids{}, ids{}
	for i := range max(len(messages), len(recorded)) {
		want, got = "(none)", "(none)"
		if i < len(recorded) {
			want = old.text(recorded[i])
		}
		if i < len(messages) {
			got = new.text(messageOf(messages[i], func(s string) string { return s }, func(p llm.Image) part {
				return part{Type: "image", MediaType: p.MediaType, SHA256: esrp.HashBytes(p.Data)}
			}))
		}
		if want != got {
			return i, want, got
		}
	}
	return -1, "", ""
}

// ids numbers ids in the order of their first occurrence.
type ids map[string]string

func (n ids) text(m message) string {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if p.ID == "" {
			continue
		}
		if n[p.ID] == "" {
			n[p.ID] = fmt.Sprint("#", len(n)+1)
		}
		m.Parts[i].ID = n[p.ID]
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
