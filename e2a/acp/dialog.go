package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/tools"
)

// dialog sends a turn's permission requests and questions to the client. Pending ones are cancelled
// when the turn ends.
type dialog struct {
	session *session
	prompt  *prompt
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

func newDialog(ctx context.Context, s *session, p *prompt) *dialog {
	d := &dialog{session: s, prompt: p}
	d.ctx, d.cancel = context.WithCancel(ctx)
	return d
}

func (d *dialog) end() {
	d.cancel()
	d.work.Wait()
}

// The options of a request for permission.
const (
	allowOnce    = "allow_once"
	allowAlways  = "allow_always"
	rejectOnce   = "reject_once"
	rejectAlways = "reject_always"
)

// permission asks the user about a call and passes the decision on. Every answer except a
// permission is a refusal. If the user rejected such calls for the session, the call is refused
// without asking, and the model may continue with something else.
func (d *dialog) permission(shown update, c transcript.Call) {
	s, a := d.session, d.session.agent
	kind, what := kindOfCall(c)
	d.work.Go(func() {
		if _, refused := s.rejectedKinds.Load(kind); refused {
			d.decide(c.CallID, chat.Decision{GoOn: true})
			return
		}
		var answer struct {
			Outcome struct {
				Outcome  string `json:"outcome"`
				OptionID string `json:"optionId"`
			} `json:"outcome"`
		}
		err := a.conn.Call(d.ctx, "session/request_permission", permissionRequest{SessionID: s.id, ToolCall: shown, Options: []permissionOption{
			{allowOnce, "Allow", allowOnce},
			{allowAlways, "Allow for this session", allowAlways},
			{rejectOnce, "Reject", rejectOnce},
			{rejectAlways, "Reject " + what + " for this session", rejectAlways},
		}}, &answer)
		choice := ""
		if err == nil && answer.Outcome.Outcome == "selected" {
			choice = answer.Outcome.OptionID
		}
		if choice == "" && err == nil { // clients answer like this when they cancel the turn
			a.waitForQueue(d.ctx)
		}
		if d.ctx.Err() != nil || d.prompt.isCancelled() {
			return // the turn is ending, or has ended
		}
		if err != nil {
			a.log.Warn("cannot ask for permission; refusing the call", "call", c.CallID, "err", err)
		}
		decision := chat.Decision{Approve: choice == allowOnce || choice == allowAlways}
		switch choice {
		case allowAlways:
			decision.Remember = tools.ForSession
		case rejectAlways:
			s.rejectedKinds.Store(kind, true)
		}
		d.decide(c.CallID, decision)
	})
}

func (d *dialog) decide(callID string, decision chat.Decision) {
	d.logError("permission", d.session.instance.turns.Decide(d.session.id, callID, decision))
}

// logError logs why an answer of the user had no effect, unless the turn has ended.
func (d *dialog) logError(what string, err error) {
	if err != nil && d.ctx.Err() == nil {
		d.session.agent.log.Warn("an answer of the user had no effect", "to", what, "err", err)
	}
}

// kindOfCall returns a key and a description of the calls that the user can reject for the session:
// all calls of the tool, or, for the shell, those with the same command.
func kindOfCall(c transcript.Call) (key, description string) {
	var args struct {
		Command e2a.Optional[string] `json:"command"`
	}
	if c.Server == "eca" && c.Name == "shell_command" && json.Unmarshal(c.Arguments(), &args) == nil && args.Command.Value != "" {
		return toolName(c) + " " + args.Command.Value, "this command"
	}
	return toolName(c), "all calls of " + oneLine(c.Name)
}

// question asks the user in a form, if the client supports forms. Otherwise it shows the question
// as text after separator and ends the turn: the next prompt is the answer.
func (d *dialog) question(q turn.Question, separator string) (ends bool, err error) {
	s, a := d.session, d.session.agent
	if !a.hasForms() {
		d.prompt.setFlag(&d.prompt.endedWithQuestion)
		err := s.update(messageChunk(agentMessage, questionText(separator+q.Text, q.Options), ""))
		d.work.Go(s.interrupt)
		return true, err
	}
	d.work.Go(func() {
		answer, err := d.askInForm(q)
		if d.ctx.Err() != nil {
			return
		}
		if err != nil {
			a.log.Warn("cannot ask a question of the model", "err", err)
		}
		d.logError("question", s.instance.turns.Answer(q.ID, answer))
	})
	return false, nil
}

// askInForm asks in a form, with the options as choices. If other answers are allowed, the form has a
// second field for them, and neither field is required.
func (d *dialog) askInForm(q turn.Question) (string, error) {
	f := form{Message: q.Text, Mode: "form", SessionID: d.session.id, CallID: q.CallID}
	f.Schema = formSchema{Fields: formFields{Answer: formField{Title: "Answer", Type: "string"}}, Required: []string{"answer"}, Type: "object"}
	for _, o := range q.Options {
		f.Schema.Fields.Answer.Enum = append(f.Schema.Fields.Answer.Enum, o.Label)
		if o.Description != "" {
			f.Message += "\n- " + o.Label + ": " + o.Description
		}
	}
	if len(q.Options) > 0 && q.Freeform {
		f.Schema.Fields.Other = &formField{Title: "Another answer", Description: "Replaces the choice.", Type: "string"}
		f.Schema.Required = []string{}
	}
	var answer struct {
		Action  string `json:"action"`
		Content struct {
			Answer e2a.Optional[string] `json:"answer"`
			Other  e2a.Optional[string] `json:"other"`
		} `json:"content"`
	}
	err := d.session.agent.conn.Call(d.ctx, "elicitation/create", f, &answer)
	if err != nil || answer.Action != "accept" {
		return "", err
	}
	return cmp.Or(strings.TrimSpace(answer.Content.Other.Value), answer.Content.Answer.Value), nil
}
