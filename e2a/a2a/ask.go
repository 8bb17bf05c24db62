package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	chatevent "github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/tools"
	asktool "github.com/seed-dec29ce4/eca/tools/ask"
)

// inputRequest is a call that waits for a decision, or a question that waits for an answer.
type inputRequest struct {
	id       string
	question bool
	call     string // the call that asked the question; empty for a call
	data     json.RawMessage
	text     string
}

// callData describes a pending call to the caller.
type callData struct {
	Arguments json.RawMessage    `json:"arguments"`
	Details   *chatevent.Details `json:"details"`
	Name      string             `json:"name"`
	Options   []string           `json:"options"`
	Summary   string             `json:"summary"`
	CallID    string             `json:"tool_call_id"`
}

// questionData describes a pending question to the caller.
type questionData struct {
	Freeform bool             `json:"freeform"`
	Options  []asktool.Option `json:"options"`
	ID       string           `json:"question_id"`
	Text     string           `json:"text"`
}

// callRequest returns the request for a decision about a call (acp-a2a.md C2).
func callRequest(c transcript.Call) inputRequest {
	j := c.Judgment
	summary := j.Summary
	if summary == "" {
		summary = c.Name
	}
	return inputRequest{
		id:   c.CallID,
		text: fmt.Sprintf("May this tool call run? %s\nAnswer yes or no, or with data {\"tool_call_id\": %q, \"decision\": \"approve\" or \"reject\"}.", summary, c.CallID),
		data: encode(callData{j.Arguments, j.Details, c.Name, []string{"approve", "reject"}, summary, c.CallID}),
	}
}

// questionRequest returns the request for an answer to a question of the model.
func questionRequest(q turn.Question) inputRequest {
	text := q.Text
	if text == "" {
		text = "The model asks."
	}
	options := append([]asktool.Option{}, q.Options...)
	return inputRequest{id: q.ID, call: q.CallID, question: true, text: text, data: encode(questionData{q.Freeform, options, q.ID, q.Text})}
}

// reply is the caller's reply to an input request: a decision about a call, or an answer to a
// question.
type reply struct {
	request  inputRequest
	decision chat.Decision
	answer   string
}

// decision is the content of a data part that replies to a call or a question.
type decision struct {
	CallID     e2a.Optional[string] `json:"tool_call_id"`
	Decision   e2a.Optional[string] `json:"decision"`
	Save       e2a.Optional[string] `json:"save"`
	QuestionID e2a.Optional[string] `json:"question_id"`
	Answer     e2a.Optional[string] `json:"answer"`
}

// parseReplies finds the replies in a message: those in its data parts, or otherwise its text, which
// replies to the pending requests up to the first question. Text that is not clearly a decision
// about a call is an error, because a wrong guess could run a program.
func parseReplies(m *message, pending []inputRequest) ([]reply, error) {
	var replies []reply
	var texts []string
	for _, p := range m.Parts {
		var d decision
		if p.Data != nil && json.Unmarshal(p.Data, &d) == nil {
			r, err := replyFromData(d, pending)
			if err != nil {
				return nil, err
			}
			replies = append(replies, r)
		} else if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	if len(replies) > 0 {
		return replies, nil
	}
	text := strings.TrimSpace(strings.Join(texts, "\n"))
	for _, a := range pending {
		r, err := replyFromText(text, a)
		if err != nil {
			return nil, err
		}
		replies = append(replies, r)
		if a.question {
			return replies, nil // one text must not answer several questions
		}
	}
	return replies, nil
}

func replyFromData(d decision, pending []inputRequest) (reply, error) {
	for _, a := range pending {
		if a.question && a.id == d.QuestionID.Value {
			return reply{request: a, answer: d.Answer.Value}, nil
		}
		if a.question || a.id != d.CallID.Value && (d.CallID.Value != "" || len(pending) > 1) {
			continue
		}
		switch d.Decision.Value {
		case "approve":
			r := reply{request: a, decision: chat.Decision{Approve: true}}
			if save := d.Save.Value; save == string(tools.ForSession) {
				r.decision.Remember = tools.ForSession
			} else if save != "" { // only the user can make decisions that last longer
				return reply{}, failure(codeParams, "data.save can only be session, not %q", save)
			}
			return r, nil
		case "reject":
			return reply{request: a, decision: chat.Decision{GoOn: true}}, nil
		}
		return reply{}, failure(codeParams, "data.decision must be approve or reject, not %q", d.Decision.Value)
	}
	return reply{}, failure(codeParams, "data names no pending call or question of the task; use the tool_call_id or question_id of its status message")
}

func replyFromText(text string, a inputRequest) (reply, error) {
	if a.question {
		return reply{request: a, answer: text}, nil
	}
	switch strings.ToLower(strings.TrimRight(text, ".! ")) {
	case "yes", "y", "ok", "approve", "approved", "allow":
		return reply{request: a, decision: chat.Decision{Approve: true}}, nil
	case "no", "n", "reject", "rejected", "deny":
		return reply{request: a, decision: chat.Decision{GoOn: true}}, nil
	}
	return reply{}, failure(codeParams, "the task waits for a decision about a tool call: answer yes or no, or with data {tool_call_id, decision}")
}

// deliverReplies passes replies on to the turn until one fails, and removes the requests that got
// theirs. The caller holds the lock.
func (j *job) deliverReplies(replies []reply) error {
	for _, r := range replies {
		var err error
		if r.request.question {
			err = j.server.opts.Turns.Answer(r.request.id, r.answer)
		} else {
			err = j.server.opts.Turns.Decide(j.contextID, r.request.id, r.decision)
		}
		if err != nil {
			return err
		}
		j.pending = slices.DeleteFunc(j.pending, func(a inputRequest) bool { return a.id == r.request.id })
	}
	return nil
}
