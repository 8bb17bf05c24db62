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

// ChatPrompt implements protocol.Server: it hands a prompt to its session. The answer
// follows what the user sees of the accepted prompt and precedes the model's answer
// (eca-protocol 4.1, 8.1).
func (s *Server) ChatPrompt(ctx context.Context, req protocol.Request[protocol.ChatPromptParams]) (protocol.Later[protocol.ChatPromptResult], error) {
	p := req.Params
	if p.Message == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "chat/prompt: message is missing")
	}
	id := string(p.ChatID)
	failed := protocol.ChatPromptResult{ChatID: id, Model: "error", Status: protocol.StatusError}
	if chat.IsSubagent(id) {
		// Some clients prompt the chat that they heard of last; they mean the one they show.
		if parent, ok := s.host.Engine().Parent(ctx, id); ok {
			req.Params.ChatID = protocol.ID(parent)
			return s.ChatPrompt(ctx, req)
		}
	}
	if id != "" && !chat.ValidID(id) {
		s.log.Warn("prompt with an invalid chat id", "id", id)
		return protocol.Now(failed), nil
	}
	if gone := s.deletion(id); gone != nil {
		// The chat is being deleted; the prompt is for a new one by the same name.
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
		}, nil
	}
	session, isNew, err := s.host.Engine().Open(ctx, id)
	if err != nil {
		return nil, err
	}
	if !isNew {
		elsewhere, err := s.workspaceOf(ctx, session)
		if err != nil {
			return nil, err
		}
		if elsewhere != nil {
			s.view(session) // who repeats the prompt knows which chat it is
			return func(context.Context) (protocol.ChatPromptResult, error) {
				s.refuse(id, *p.Message, fmt.Errorf("this chat belongs to another workspace (%s): start a new chat, or send the prompt again to continue it here", strings.Join(elsewhere, ", ")))
				return failed, nil
			}, nil
		}
	}
	if id != "" && isNew {
		s.post("chat/opened", protocol.ChatOpened{ChatID: id})
	}
	v := s.view(session)
	pr := prompt(p)
	if isNew && pr.Agent == "" {
		pr.Agent = s.currentAgent()
	}
	pr.TurnID = s.newID()
	turn := v.expectTurn(pr.TurnID, req.Answered, s.host.Config().Env == config.EnvTest)
	sub := session.Submit(pr)
	return func(ctx context.Context) (protocol.ChatPromptResult, error) {
		acc, err := sub.Wait(ctx)
		if err != nil {
			v.takeTurn(pr.TurnID)
			if errors.Is(err, context.Canceled) {
				return failed, err
			}
			message := *p.Message
			if session.AwaitsSecret() {
				message = chat.Masked
			}
			s.refuse(session.ID(), message, err)
			failed.ChatID = session.ID()
			return failed, nil
		}
		if !v.awaitTurn(ctx, turn, acc.Done) {
			failed.ChatID = session.ID()
			return failed, nil
		}
		if acc.Failed {
			failed.ChatID = session.ID()
			return failed, nil
		}
		s.background(func() { s.host.AskTrust(s.ctx, session.ID()) })
		status := protocol.StatusPrompting
		if acc.Dialog {
			status = protocol.StatusLogin
		}
		return protocol.ChatPromptResult{ChatID: session.ID(), Model: acc.Model, Status: status}, nil
	}, nil
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

// refuse shows a prompt that could not become a turn, as content: clients show that
// better than an error (eca-recorded, rules).
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
	s.order(string(p.ChatID), (*chat.Session).Cancel)
	return nil
}

// ChatPromptSteer implements protocol.Server.
func (s *Server) ChatPromptSteer(_ context.Context, p protocol.SteerParams) error {
	s.order(string(p.ChatID), func(session *chat.Session) { session.Steer(string(p.Message)) })
	return nil
}

// order gives an order to the turn of a chat that runs. If none does, and the client heard
// nothing of the chat from this daemon, it is told: it may still wait for a turn of a daemon
// that died, and offer nothing but to stop or steer it.
func (s *Server) order(id string, give func(*chat.Session)) {
	if chat.IsSubagent(id) {
		if session, ok := s.host.Engine().Lookup(id); ok {
			give(session)
		}
		return
	}
	var resting *chat.Pending[chat.Resting]
	session, ok := s.host.Engine().Lookup(id)
	if ok {
		give(session)
		resting = session.Resting()
	}
	s.background(func() {
		if !ok {
			known, found, err := s.host.Engine().Existing(s.ctx, id)
			if err != nil || !found {
				return // nothing is ever said of a chat that is not there
			}
			session, resting = known, known.Resting()
		}
		now, err := resting.Wait(s.ctx)
		if err != nil || !now.Rests {
			return
		}
		v := s.view(session)
		_ = v.do(s.ctx, now.At, func(ctx context.Context) {
			if !v.mapper.told && !session.Running() { // else its end is told
				v.send(ctx, v.mapper.status("idle"))
			}
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

// decide passes a decision on. Unknown chats and calls are ignored: some clients
// approve everything they see (4.2).
func (s *Server) decide(p protocol.ToolCallParams, d chat.Decision) {
	if session, ok := s.host.Engine().Lookup(string(p.ChatID)); ok {
		session.Decide(string(p.ToolCallID), d)
	}
}

// ChatDelete implements protocol.Server; the notification precedes the answer (4.8).
func (s *Server) ChatDelete(_ context.Context, req protocol.Request[protocol.ChatParams]) (protocol.Later[protocol.Empty], error) {
	id := string(req.Params.ChatID)
	if id == "" || chat.IsSubagent(id) { // which goes with its parent
		return protocol.Now(protocol.Empty{}), nil
	}
	shown := s.beginDelete(id)
	deleted := s.host.Engine().Delete(id)
	return func(ctx context.Context) (protocol.Empty, error) {
		defer s.endDelete(id)
		err := deleted()
		// The end of a turn that ran belongs in front of the notification.
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
		return protocol.Empty{}, nil
	}, nil
}

// beginDelete makes prompts for the chat wait until endDelete. It returns a channel
// that closes when the chat's view has shown its end; nil if it has none.
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

// deletion returns a channel that closes when a chat that is being deleted is gone;
// nil for other chats.
func (s *Server) deletion(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.deletions[id]; ok {
		return ch
	}
	return nil
}
