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

// Conversation is what is on record of a chat, as far as it can be run again: up to the first
// turn in which something happened that is not on record, or that nobody can make happen again.
type Conversation struct {
	Turns     []Turn
	Tools     []llm.ToolSpec // all that were offered
	Reasoning bool           // reasoning of earlier turns was sent back
	Left      string         // why the rest can not be run again, and which record says so; empty: that is all
}

// Turn is a prompt with the requests that were made for it.
type Turn struct {
	Prompt   string
	Contexts []Pointed
	Model    string // full id
	Agent    string
	Requests []*Asked
	Compact  bool   // the user wanted a summary of the conversation, and nothing else
	Writer   string // model of the turn's summaries, if it is not the turn's own; full id
	// Continues is how often in a row the model was asked to go on with an answer.
	Continues int
	calls     []*toolCall
}

// Pointed is what a prompt pointed at, as the model was shown it.
type Pointed struct {
	Label, Text string
	Image       llm.Image
}

// Asked is a request with its answer.
type Asked struct {
	Seq     uint64
	Model   string // full id
	Context int64  // tokens that the model was said to take; 0 is unknown
	Summary bool   // it asks for a summary of the conversation
	Answer  []llm.Delta
	Failure *llm.Error // the answer ended with it

	// What happened behind the answer, before the next request.
	Says string // by the user, who did not wait for the end of the turn
	Full bool   // the conversation was near its limit: it was compacted
	// GoesOn says that the model was asked to go on behind the failure. Else it ended the turn.
	GoesOn bool

	messages []message
	question bool // the last message is eca's question for a summary, which is not compared
}

// toolCall is one of a turn.
type toolCall struct {
	id, name  string
	arguments []byte
	played    Played
	used      bool
}

// Played is what became of a tool call.
type Played struct {
	Result  tools.Result
	Refused event.RejectReason // it did not run; RefusedInvalid with the result that the model got
	GoOn    bool               // the turn went on behind the user's refusal
}

// Take returns what became of a call of the turn, each once: of that with the same id, else of
// the first with the same arguments.
func (t *Turn) Take(id, name string, arguments json.RawMessage) (Played, bool) {
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
		return Played{}, false
	}
	found.used = true
	return found.played, true
}

// Compare returns the first message that is not as it was on record, and both; -1 if there is
// none. Ids count only by where they come again: providers and eca make new ones.
func (a *Asked) Compare(messages []llm.Message) (at int, want, got string) {
	recorded := a.messages
	if a.question && len(messages) > 0 {
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

// ids numbers ids in the order in which they come.
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
