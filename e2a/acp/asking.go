package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/e2a"
)

// asking asks the user during a turn: for permission, and what the model wants to know.
// What is asked ends with the turn.
type asking struct {
	agent   *agent
	session *session
	call    *call
	turn    *turn
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

func (k *asking) end() {
	k.cancel()
	k.work.Wait()
}

// Options of a request for permission.
const (
	allowOnce    = "allow_once"
	allowAlways  = "allow_always"
	rejectOnce   = "reject_once"
	rejectAlways = "reject_always"
)

// permission asks about a call, and passes the answer on. What is no permission is a
// refusal. A call like one that was rejected for the session is refused without a question;
// the model is told, and may go on with something else.
func (k *asking) permission(update object, s stage) {
	id, _ := update["toolCallId"].(string)
	kind, what := kindOfCall(s)
	k.work.Go(func() {
		if k.session.refuses(kind) {
			k.tell(e2a.MethodReject, object{"tool_call_id": id, "go_on": true})
			return
		}
		choice, err := k.choose(update, []any{
			object{"optionId": allowOnce, "name": "Allow", "kind": allowOnce},
			object{"optionId": allowAlways, "name": "Allow for this session", "kind": allowAlways},
			object{"optionId": rejectOnce, "name": "Reject", "kind": rejectOnce},
			object{"optionId": rejectAlways, "name": "Reject " + what + " for this session", "kind": rejectAlways},
		})
		if choice == "" && err == nil { // as all that waits is answered when a turn is cancelled
			k.agent.caughtUp(k.ctx)
		}
		if k.ctx.Err() != nil || k.turn.isCancelled() {
			return // the turn ends, or has ended
		}
		if err != nil {
			k.agent.log.Warn("permission can not be asked for: the call is refused", "call", id, "err", err)
		}
		method, more := e2a.MethodReject, object{"tool_call_id": id}
		switch choice {
		case allowOnce:
			method = e2a.MethodApprove
		case allowAlways:
			method, more["save"] = e2a.MethodApprove, "session"
		case rejectAlways:
			k.session.refuse(kind)
		}
		k.tell(method, more)
	})
}

// kindOfCall says which calls are rejected together with one, by a key and in words: those
// of the same tool, but of a shell those of the same command.
func kindOfCall(s stage) (key, words string) {
	var args struct {
		Command lenient[string] `json:"command"`
	}
	if s.Server == "eca" && s.Name == "shell_command" && json.Unmarshal(s.Arguments, &args) == nil && args.Command.Value != "" {
		return toolName(s) + " " + args.Command.Value, "this command"
	}
	return toolName(s), "all calls of " + oneLine(s.Name)
}

// choose asks for one of some options; none is empty.
func (k *asking) choose(update object, options []any) (string, error) {
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	err := k.agent.peer.call(k.ctx, "session/request_permission", object{"sessionId": k.session.id, "toolCall": update, "options": options}, &answer)
	if err != nil || answer.Outcome.Outcome != "selected" {
		return "", err
	}
	return answer.Outcome.OptionID, nil
}

// tell passes an answer on to the session.
func (k *asking) tell(method string, more object) {
	more["sessionId"] = k.session.id
	c := &call{message: message{Method: "session/request_permission"}}
	if _, err := k.session.place.do(k.ctx, k.agent.envelope(c, method, more), nil); err != nil && k.ctx.Err() == nil {
		k.agent.log.Warn("an answer is not taken", "method", method, "err", err)
	}
}

// question is what the model asks of the user.
type question struct {
	ID       string   `json:"question_id"`
	CallID   string   `json:"tool_call_id"`
	Text     string   `json:"text"`
	Options  []option `json:"options"`
	Freeform bool     `json:"freeform"`

	lead string // what stands in front of it, where it is told as text
}

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// question has the user asked in a form, where the client has forms. Else it is told as
// text, and ends the turn: the next prompt is the answer.
func (k *asking) question(q question) (ends bool, err error) {
	if !k.agent.hasForms() {
		return true, k.inWords(q)
	}
	k.work.Go(func() {
		answer, err := k.inForm(q)
		if k.ctx.Err() != nil {
			return
		}
		if err != nil {
			k.agent.log.Warn("the question can not be asked", "err", err)
		}
		k.tell(e2a.MethodAnswer, object{"question_id": q.ID, "answer": answer})
	})
	return false, nil
}

func (a *agent) hasForms() bool { return a.client.Capabilities.Value.Elicitation.Value.Form != nil }

// inForm asks in a form, with the options as choices. Where other words are welcome, the
// form has a second field for them, and neither is required.
func (k *asking) inForm(q question) (string, error) {
	field := object{"type": "string", "title": "Answer"}
	fields, required := object{"answer": field}, []any{"answer"}
	message := q.Text
	var labels []any
	for _, o := range q.Options {
		labels = append(labels, o.Label)
		if o.Description != "" {
			message += "\n- " + o.Label + ": " + o.Description
		}
	}
	if len(labels) > 0 {
		field["enum"] = labels
	}
	if len(labels) > 0 && q.Freeform {
		fields["other"] = object{"type": "string", "title": "Another answer", "description": "Counts instead of the choice."}
		required = []any{}
	}
	var answer struct {
		Action  string `json:"action"`
		Content struct {
			Answer lenient[string] `json:"answer"`
			Other  lenient[string] `json:"other"`
		} `json:"content"`
	}
	err := k.agent.peer.call(k.ctx, "elicitation/create", object{
		"mode": "form", "sessionId": k.session.id, "toolCallId": q.CallID, "message": message,
		"requestedSchema": object{"type": "object", "properties": fields, "required": required},
	}, &answer)
	if err != nil || answer.Action != "accept" {
		return "", err
	}
	return cmp.Or(strings.TrimSpace(answer.Content.Other.Value), answer.Content.Answer.Value), nil
}

// words is a question as text.
func (q question) words() string {
	text := q.lead + q.Text
	for _, o := range q.Options {
		text += "\n- " + o.Label
		if o.Description != "" {
			text += ": " + o.Description
		}
	}
	return text
}

func (k *asking) inWords(q question) error {
	k.turn.mu.Lock()
	k.turn.asked = true
	k.turn.mu.Unlock()
	err := k.agent.update(k.session, "agent_message_chunk", object{"content": textBlock(q.words())})
	k.work.Go(func() { k.tell(e2a.MethodInterrupt, object{}) })
	return err
}
