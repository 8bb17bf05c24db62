package server

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// chatPrompt hands a prompt to its session. The answer follows what the user sees of
// the accepted prompt and precedes the model's answer (eca-protocol 4.1, 8.1).
func (s *Server) chatPrompt(ctx context.Context, req *jsonrpc.Request) (any, error) {
	var p protocol.ChatPromptParams
	if err := decode(req, &p); err != nil {
		return nil, err
	}
	if p.Message == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "chat/prompt: message is missing")
	}
	id := string(p.ChatID)
	failed := protocol.ChatPromptResult{ChatID: id, Model: "error", Status: protocol.StatusError}
	if id != "" && !chat.ValidID(id) {
		s.log.Warn("prompt with an invalid chat id", "id", id)
		return failed, nil
	}
	if gone := s.deletion(id); gone != nil {
		// The chat is being deleted; the prompt is for a new one by the same name.
		return jsonrpc.Later(func(ctx context.Context) (any, error) {
			select {
			case <-gone:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			res, err := s.chatPrompt(ctx, req)
			if later, ok := res.(jsonrpc.Later); ok && err == nil {
				return later(ctx)
			}
			return res, err
		}), nil
	}
	session, isNew, err := s.host.Engine().Open(ctx, id)
	if err != nil {
		return nil, err
	}
	if id != "" && isNew {
		s.post("chat/opened", protocol.ChatOpened{ChatID: id})
	}
	v := s.view(session)
	pr := prompt(p)
	pr.TurnID = s.newID()
	turn := v.expectTurn(pr.TurnID, req)
	sub := session.Submit(pr)
	return jsonrpc.Later(func(ctx context.Context) (any, error) {
		acc, err := sub.Wait(ctx)
		if err != nil {
			v.takeTurn(pr.TurnID)
			if errors.Is(err, context.Canceled) {
				return nil, err
			}
			s.refuse(session.ID(), *p.Message, err)
			failed.ChatID = session.ID()
			return failed, nil
		}
		select {
		case <-turn.shown:
		case <-v.ended: // the chat was deleted in between
			failed.ChatID = session.ID()
			return failed, nil
		case <-ctx.Done():
		}
		if acc.Failed {
			failed.ChatID = session.ID()
			return failed, nil
		}
		return protocol.ChatPromptResult{ChatID: session.ID(), Model: acc.Model, Status: protocol.StatusPrompting}, nil
	}), nil
}

func prompt(p protocol.ChatPromptParams) chat.Prompt {
	out := chat.Prompt{Text: *p.Message, Model: string(p.Model), Agent: string(p.Agent), Variant: string(p.Variant), Trust: p.Trust.Value}
	if out.Agent == "" {
		out.Agent = string(p.Behavior)
	}
	for _, c := range p.Contexts {
		ref := contexts.Ref{Type: c.Type, Label: c.Label, Text: c.Content, Path: c.Path}
		if c.LinesRange != nil {
			ref.FirstLine, ref.LastLine = c.LinesRange.Start, c.LinesRange.End
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

func (s *Server) chatPromptStop(_ context.Context, req *jsonrpc.Request) (any, error) {
	var p protocol.ChatParams
	if err := decode(req, &p); err != nil {
		return nil, err
	}
	if session, ok := s.host.Engine().Lookup(string(p.ChatID)); ok {
		session.Cancel()
	}
	return nil, nil
}

func (s *Server) chatToolCallApprove(_ context.Context, req *jsonrpc.Request) (any, error) {
	return s.decide(req, func(p protocol.ToolCallParams) chat.Decision {
		return chat.Decision{Approve: true, Remember: p.Save == "session"}
	})
}

func (s *Server) chatToolCallReject(_ context.Context, req *jsonrpc.Request) (any, error) {
	return s.decide(req, func(p protocol.ToolCallParams) chat.Decision {
		return chat.Decision{GoOn: p.GoOn}
	})
}

// decide passes a decision on. Unknown chats and calls are ignored: some clients
// approve everything they see (4.2).
func (s *Server) decide(req *jsonrpc.Request, decision func(protocol.ToolCallParams) chat.Decision) (any, error) {
	var p protocol.ToolCallParams
	if err := decode(req, &p); err != nil {
		return nil, err
	}
	if session, ok := s.host.Engine().Lookup(string(p.ChatID)); ok {
		session.Decide(string(p.ToolCallID), decision(p))
	}
	return nil, nil
}

// chatDelete removes a chat; the notification precedes the answer (4.8).
func (s *Server) chatDelete(_ context.Context, req *jsonrpc.Request) (any, error) {
	var p protocol.ChatParams
	if err := decode(req, &p); err != nil {
		return nil, err
	}
	id := string(p.ChatID)
	if id == "" {
		return struct{}{}, nil
	}
	shown := s.beginDelete(id)
	deleted := s.host.Engine().Delete(id)
	return jsonrpc.Later(func(ctx context.Context) (any, error) {
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
			return nil, err
		}
		s.notify(s.ctx, "chat/deleted", protocol.ChatDeleted{ChatID: id})
		return struct{}{}, nil
	}), nil
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
