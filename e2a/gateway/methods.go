package gateway

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/tools"
)

// run carries out the method of an envelope (e2a.md 10). Those of ACP and A2A that send a
// prompt are chat.send by another name.
func (a *answer) run(ctx context.Context) error {
	method := ""
	if a.envelope.Method != nil {
		method = *a.envelope.Method
	}
	switch method {
	case "": // a heartbeat
		return a.complete(map[string]any{})
	case e2a.MethodSend, e2a.MethodPrompt:
		return a.chatSend(ctx)
	case e2a.MethodInterrupt, e2a.MethodCancel, e2a.MethodSessionClose:
		return a.interrupt()
	case e2a.MethodApprove:
		return a.decide(true)
	case e2a.MethodReject:
		return a.decide(false)
	case e2a.MethodAnswer:
		return a.answerQuestion()
	case e2a.MethodSessionCreate, e2a.MethodSessionLoad:
		return a.sessionOpen(ctx, method == e2a.MethodSessionCreate)
	case e2a.MethodSessionList:
		return a.sessionList(ctx)
	case e2a.MethodSessionDelete:
		return a.sessionDelete(ctx)
	case e2a.MethodHistory:
		return a.history(ctx)
	case e2a.MethodConfigGet:
		return a.configGet(ctx)
	case e2a.MethodConfigSet:
		return a.configSet(ctx)
	case e2a.MethodModelSync:
		a.g.host.SyncModels(ctx)
		return a.complete(map[string]any{})
	case e2a.MethodCommands:
		return a.commandList()
	}
	return fail(codeUnknownMethod, "there is no method %q", method)
}

func (a *answer) complete(result any) error { return a.put(a.Complete(result)) }

// text returns a parameter that is a string; false is none.
func (a *answer) text(key string) (string, bool) {
	s, ok := a.envelope.Params[key].(string)
	return s, ok && s != ""
}

// sessionID is the chat that the envelope is about: its session, or that of the params.
func (a *answer) sessionID() string {
	if s := a.envelope.SessionID; s != nil && *s != "" {
		return *s
	}
	s, _ := a.text("session_id")
	return s
}

// known returns the session of a chat that there is.
func (a *answer) known(ctx context.Context) (*chat.Session, error) {
	id := a.sessionID()
	if id == "" {
		return nil, fail(codeBadParams, "session_id is missing")
	}
	if !chat.ValidID(id) {
		return nil, fail(codeBadParams, "session_id %q is no id of a session", id)
	}
	s, ok, err := a.g.host.Engine().Existing(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fail(codeNotFound, "there is no session %q", id)
	}
	return s, nil
}

// interrupt stops the turn of a session. One that does nothing is left alone.
func (a *answer) interrupt() error {
	id := a.sessionID()
	if id == "" {
		return fail(codeBadParams, "session_id is missing")
	}
	session, ok := a.g.host.Engine().Lookup(id)
	stopped := ok && session.Running()
	if ok {
		session.Cancel()
	}
	return a.complete(map[string]any{"interrupted": stopped})
}

// decide answers for a call that asks. params.save is session, workspace or global.
func (a *answer) decide(approve bool) error {
	call, ok := a.text("tool_call_id")
	if !ok {
		return fail(codeBadParams, "params.tool_call_id is missing")
	}
	id := a.sessionID()
	session, found := a.g.host.Engine().Lookup(id)
	if !found {
		return fail(codeNotFound, "no session %q is open", id)
	}
	d := chat.Decision{Approve: approve, GoOn: !approve && a.envelope.Params["go_on"] == true}
	if save, _ := a.text("save"); approve && save != "" {
		scopes := []tools.Scope{tools.ForSession, tools.ForWorkspace, tools.Everywhere}
		if !slices.Contains(scopes, tools.Scope(save)) {
			return fail(codeBadParams, "params.save: %q is none of %v", save, scopes)
		}
		d.Remember = tools.Scope(save)
	}
	session.Decide(call, d)
	return a.complete(map[string]any{})
}

// answerQuestion answers what a model asked. Without an answer, the question is declined.
func (a *answer) answerQuestion() error {
	id, ok := a.text("question_id")
	if !ok {
		return fail(codeBadParams, "params.question_id is missing")
	}
	text, _ := a.text("answer")
	if !a.g.questions.answer(id, text) {
		return fail(codeNotFound, "nobody waits for an answer to %q", id)
	}
	return a.complete(map[string]any{})
}

// sessionOpen makes a session, or says what is known of one.
func (a *answer) sessionOpen(ctx context.Context, create bool) error {
	if !create {
		session, err := a.known(ctx)
		if err != nil {
			return err
		}
		return a.complete(sessionInfo(session))
	}
	id := a.sessionID()
	if id != "" && !chat.ValidID(id) {
		return fail(codeBadParams, "session_id %q is no id of a session", id)
	}
	session, _, err := a.g.host.Engine().Open(ctx, id)
	if err != nil {
		return err
	}
	return a.complete(sessionInfo(session))
}

func sessionInfo(s *chat.Session) map[string]any {
	m := s.Meta()
	return map[string]any{
		"session_id": s.ID(), "title": m.Title, "model": m.Model, "agent": m.Agent, "variant": m.Variant, "trust": m.Trust, "running": s.Running(),
	}
}

func (a *answer) sessionList(ctx context.Context) error {
	limit := 0
	if n, ok := a.envelope.Params["limit"].(json.Number); ok {
		i, err := n.Int64()
		if err != nil || i < 0 || i > 1<<20 {
			return fail(codeBadParams, "params.limit: %s is no number of sessions", n)
		}
		limit = int(i)
	}
	list, err := a.g.host.Engine().List(ctx, chat.ByUpdated, limit)
	if err != nil {
		return err
	}
	sessions := make([]any, len(list))
	for i, s := range list {
		sessions[i] = map[string]any{
			"session_id": s.ID, "title": s.Title, "model": s.Model, "messages": s.Messages, "running": s.Running,
			"created_at": s.Created.UTC().Format(timeLayout), "updated_at": s.Updated.UTC().Format(timeLayout),
		}
	}
	return a.complete(map[string]any{"sessions": sessions})
}

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

func (a *answer) sessionDelete(ctx context.Context) error {
	session, err := a.known(ctx)
	if err != nil {
		return err
	}
	if err := a.g.host.Engine().Delete(session.ID())(); err != nil {
		return err
	}
	return a.complete(map[string]any{})
}

// history sends what happened in a session as the same frames that told it live; what the
// user said is a custom chunk.
func (a *answer) history(ctx context.Context) error {
	session, err := a.known(ctx)
	if err != nil {
		return err
	}
	m := newMapper(a)
	m.replay = true
	for r, last := session.Read(1), session.Next(); ; {
		e, ok, err := r.Try(ctx)
		if err != nil {
			return err
		}
		if !ok || e.Seq >= last {
			return a.complete(sessionInfo(session))
		}
		if said, ok := e.Body.(event.UserMessage); ok {
			err = m.custom("user_message", map[string]any{"text": said.Text, "message_id": said.ContentID})
		} else {
			err = m.show(e)
		}
		if err != nil {
			return err
		}
	}
}
