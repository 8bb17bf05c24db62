package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// ChatPrompt implements protocol.Server: it passes a prompt to its session. The answer comes after
// the client was shown the accepted prompt, and before the model's answer (eca-protocol 4.1, 8.1).
func (s *Server) ChatPrompt(ctx context.Context, req protocol.Request[protocol.ChatPromptParams]) (protocol.AsyncResult[protocol.ChatPromptResult], error) {
	if req.Params.Message == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "chat/prompt: message is missing")
	}
	target, err := s.promptTarget(ctx, req)
	if err != nil || target.answer != nil {
		return target.answer, err
	}
	return s.submitPrompt(req, target), nil
}

// promptTarget is the session that a prompt is for.
type promptTarget struct {
	session *chat.Session
	isNew   bool
	// answer is set if no session takes the prompt now: the prompt is refused, or it waits.
	answer protocol.AsyncResult[protocol.ChatPromptResult]
}

// promptFailed is the answer to a prompt that did not become a turn.
func promptFailed(id string) protocol.ChatPromptResult {
	return protocol.ChatPromptResult{ChatID: id, Model: "error", Status: protocol.StatusError}
}

// promptTarget finds or creates the session that a prompt is for.
func (s *Server) promptTarget(ctx context.Context, req protocol.Request[protocol.ChatPromptParams]) (promptTarget, error) {
	id := string(req.Params.ChatID)
	if chat.IsSubagent(id) {
		// Some clients prompt the chat that was last mentioned to them; they mean the one they
		// show.
		if parent, ok := s.host.Engine().Parent(ctx, id); ok {
			req.Params.ChatID = protocol.ID(parent)
			answer, err := s.ChatPrompt(ctx, req)
			return promptTarget{answer: answer}, err
		}
	}
	if id != "" && !chat.ValidID(id) {
		s.log.Warn("prompt with an invalid chat id", "id", id)
		return promptTarget{answer: protocol.Immediate(promptFailed(id))}, nil
	}
	if gone := s.deletion(id); gone != nil {
		return promptTarget{answer: s.promptAfter(gone, req)}, nil
	}
	session, isNew, err := s.host.Engine().Open(ctx, id)
	if err != nil {
		return promptTarget{}, err
	}
	if !isNew {
		elsewhere, err := s.workspaceOf(ctx, session)
		if err != nil {
			return promptTarget{}, err
		}
		if elsewhere != nil {
			s.view(session) // if the client repeats the prompt, it knows which chat it is
			return promptTarget{answer: func(context.Context) (protocol.ChatPromptResult, error) {
				s.refuse(id, *req.Params.Message, fmt.Errorf("this chat belongs to another workspace (%s): start a new chat, or send the prompt again to continue it here", strings.Join(elsewhere, ", ")))
				return promptFailed(id), nil
			}}, nil
		}
	}
	if id != "" && isNew {
		s.post("chat/opened", protocol.ChatOpened{ChatID: id})
	}
	return promptTarget{session: session, isNew: isNew}, nil
}

// promptAfter repeats a prompt once its chat is deleted. The prompt then starts a new chat with the
// same id.
func (s *Server) promptAfter(gone <-chan struct{}, req protocol.Request[protocol.ChatPromptParams]) protocol.AsyncResult[protocol.ChatPromptResult] {
	failed := promptFailed(string(req.Params.ChatID))
	return func(ctx context.Context) (protocol.ChatPromptResult, error) {
		select {
		case <-gone:
		case <-ctx.Done():
			return failed, ctx.Err()
		}
		later, err := s.ChatPrompt(ctx, req)
		if err != nil {
			return failed, err
		}
		return later(ctx)
	}
}

// submitPrompt submits a prompt. Its answer waits until the client was shown that the prompt was
// accepted.
func (s *Server) submitPrompt(req protocol.Request[protocol.ChatPromptParams], to promptTarget) protocol.AsyncResult[protocol.ChatPromptResult] {
	session, v, pr := to.session, s.view(to.session), prompt(req.Params)
	if to.isNew && pr.Agent == "" {
		pr.Agent = s.currentAgent()
	}
	pr.TurnID = s.newID()
	kind := chat.ChatPrompted
	if to.isNew {
		kind = chat.ChatBegun
	}
	s.news.Announce(kind, session.ID()) // before its first event
	turn := v.expectTurn(pr.TurnID, req.Answered, s.host.Config().Env == config.EnvTest)
	sub := session.Submit(pr)
	return func(ctx context.Context) (protocol.ChatPromptResult, error) {
		failed := promptFailed(session.ID())
		acc, err := sub.Wait(ctx)
		if err != nil {
			v.takeTurn(pr.TurnID)
			if errors.Is(err, context.Canceled) {
				return promptFailed(string(req.Params.ChatID)), err
			}
			message := *req.Params.Message
			if session.AwaitsSecret() {
				message = chat.Masked
			}
			s.refuse(session.ID(), message, err)
			return failed, nil
		}
		if !v.awaitTurn(ctx, turn, acc.Done) || acc.Failed {
			return failed, nil
		}
		s.background(func() { s.host.AskTrust(s.ctx, session.ID()) })
		status := protocol.StatusPrompting
		if acc.Dialog {
			status = protocol.StatusLogin
		}
		return protocol.ChatPromptResult{ChatID: session.ID(), Model: acc.Model, Status: status}, nil
	}
}

func prompt(p protocol.ChatPromptParams) chat.Prompt {
	out := chat.Prompt{Text: *p.Message, Model: string(p.Model), Agent: string(p.Agent), Variant: string(p.Variant), Trust: p.Trust.Value}
	if out.Agent == "" {
		out.Agent = string(p.Behavior)
	}
	for _, c := range p.Contexts {
		ref := contexts.Ref{
			Type: c.Type, Label: c.Label, Text: c.Content, Path: c.Path,
			Base64: c.Base64, URL: cmp.Or(c.URL, c.URI), Server: c.Server,
		}
		if l := c.LinesRange; l != nil && max(l.Start, l.End) > 0 {
			ref.FirstLine, ref.LastLine = max(l.Start, 1), l.End
		}
		if p := c.Position; p != nil {
			ref.Start = contexts.Position{Line: int(p.Start.Line), Character: int(p.Start.Character)}
			ref.End = contexts.Position{Line: int(p.End.Line), Character: int(p.End.Character)}
		}
		out.Contexts = append(out.Contexts, ref)
	}
	return out
}

// refuse shows a prompt that could not become a turn, as content: clients show content better than
// an error (eca-recorded, rules).
func (s *Server) refuse(id, message string, err error) {
	for _, c := range []protocol.ContentReceived{
		{ChatID: id, Role: protocol.RoleUser, Content: protocol.TextContent{Type: "text", ContentID: s.newID(), Text: strings.TrimSpace(message) + "\n"}},
		{ChatID: id, Role: protocol.RoleSystem, Content: protocol.TextContent{Type: "text", Text: "\n\n" + err.Error()}},
	} {
		s.notify(s.ctx, "chat/contentReceived", c)
	}
	s.notify(s.ctx, "chat/statusChanged", protocol.ChatStatusChanged{ChatID: id, Status: "idle"})
	s.notify(s.ctx, "chat/contentReceived", protocol.ContentReceived{
		ChatID: id, Role: protocol.RoleSystem, Content: protocol.ProgressContent{Type: "progress", State: "finished", Reason: "failed"},
	})
}

// ChatPromptStop implements protocol.Server.
func (s *Server) ChatPromptStop(_ context.Context, p protocol.ChatParams) error {
	s.sendToTurn(string(p.ChatID), (*chat.Session).Cancel)
	return nil
}

// ChatPromptSteer implements protocol.Server.
func (s *Server) ChatPromptSteer(_ context.Context, p protocol.SteerParams) error {
	s.sendToTurn(string(p.ChatID), func(session *chat.Session) { session.Steer(string(p.Message)) })
	return nil
}

// sendToTurn passes an instruction to the running turn of a chat. If no turn runs and the client got
// no status of the chat from this daemon, it is sent one: it may still wait for a turn of a daemon
// that died, and then it offers only to stop or steer that turn.
func (s *Server) sendToTurn(id string, give func(*chat.Session)) {
	if chat.IsSubagent(id) {
		if session, ok := s.host.Engine().Lookup(id); ok {
			give(session)
		}
		return
	}
	var resting *chat.Pending[chat.IdleState]
	session, ok := s.host.Engine().Lookup(id)
	if ok {
		give(session)
		resting = session.IdleState()
	}
	s.background(func() {
		if !ok {
			known, found, err := s.host.Engine().Existing(s.ctx, id)
			if err != nil || !found {
				return // the client gets no notification about a chat that does not exist
			}
			session, resting = known, known.IdleState()
		}
		now, err := resting.Wait(s.ctx)
		if err != nil || !now.Rests {
			return
		}
		v := s.view(session)
		_ = v.do(s.ctx, now.At, func(ctx context.Context) error {
			if !v.renderer.statusSent && !session.Running() { // else the client is notified when it ends
				v.send(ctx, v.renderer.status("idle"))
			}
			return nil
		})
	})
}

// ChatPromptSteerRemove implements protocol.Server.
func (s *Server) ChatPromptSteerRemove(_ context.Context, p protocol.ChatParams) error {
	if session, ok := s.host.Engine().Lookup(string(p.ChatID)); ok {
		session.Unsteer()
	}
	return nil
}

// ChatToolCallApprove implements protocol.Server.
func (s *Server) ChatToolCallApprove(_ context.Context, p protocol.ToolCallParams) error {
	d := chat.Decision{Approve: true, Auto: p.Auto}
	switch scope := tools.Scope(p.Save); scope {
	case tools.ForSession, tools.ForWorkspace, tools.Everywhere, tools.InSandbox:
		d.Remember = scope
	}
	s.decide(p, d)
	return nil
}

// ChatToolCallReject implements protocol.Server.
func (s *Server) ChatToolCallReject(_ context.Context, p protocol.ToolCallParams) error {
	s.decide(p, chat.Decision{GoOn: p.GoOn, Unasked: p.Unasked})
	return nil
}

// decide passes a decision to the session. Unknown chats and calls are ignored: some clients
// approve everything they see (4.2).
func (s *Server) decide(p protocol.ToolCallParams, d chat.Decision) {
	if session, ok := s.host.Engine().Lookup(string(p.ChatID)); ok {
		session.Decide(string(p.ToolCallID), d)
	}
}

// ChatDelete implements protocol.Server; the notification precedes the answer (4.8).
func (s *Server) ChatDelete(_ context.Context, req protocol.Request[protocol.ChatParams]) (protocol.AsyncResult[protocol.Empty], error) {
	id := string(req.Params.ChatID)
	if id == "" || chat.IsSubagent(id) { // a subagent's chat is deleted with its parent
		return protocol.Immediate(protocol.Empty{}), nil
	}
	shown := s.beginDelete(id)
	deleted := s.host.Engine().Delete(id)
	return func(ctx context.Context) (protocol.Empty, error) {
		defer s.endDelete(id)
		err := deleted()
		// If a turn ran, its end must be sent before the notification.
		if shown != nil {
			select {
			case <-shown:
			case <-ctx.Done():
			}
		}
		if err != nil {
			return protocol.Empty{}, err
		}
		s.notify(s.ctx, "chat/deleted", protocol.ChatDeleted{ChatID: id})
		s.news.Announce(chat.ChatDeleted, id)
		return protocol.Empty{}, nil
	}, nil
}

// beginDelete makes prompts for the chat wait until endDelete. It returns a channel that closes
// when the chat's view has shown its end, or nil if the chat has no view.
func (s *Server) beginDelete(id string) (shown <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deletions[id] == nil {
		s.deletions[id] = make(chan struct{})
	}
	if v, ok := s.views[id]; ok {
		delete(s.views, id)
		return v.ended
	}
	return nil
}

func (s *Server) endDelete(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.deletions[id]; ch != nil {
		delete(s.deletions, id)
		close(ch)
	}
}

// deletion returns a channel that closes when a chat that is being deleted is gone. It returns nil
// for other chats.
func (s *Server) deletion(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.deletions[id]; ok {
		return ch
	}
	return nil
}
