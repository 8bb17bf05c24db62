package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// prompts implements the methods that prompt a chat and control its turn.
type prompts struct {
	*connection
	host     Host
	views    *views
	settings *settings
}

// ChatPrompt implements protocol.Server: it passes a prompt to its session. The response is sent
// after the client has been shown the accepted prompt, and before the model's output is shown
// (eca-protocol.md 4.1, 8.1).
func (ps *prompts) ChatPrompt(ctx context.Context, req protocol.Request[protocol.ChatPromptParams]) (protocol.AsyncResult[protocol.ChatPromptResult], error) {
	if req.Params.Message == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "chat/prompt: message is missing")
	}
	target, err := ps.resolve(ctx, req)
	if err != nil || target.response != nil {
		return target.response, err
	}
	p := ps.submit(req, target)
	return func(ctx context.Context) (protocol.ChatPromptResult, error) { return ps.awaitAccepted(ctx, p) }, nil
}

// promptTarget is the session that a prompt is for.
type promptTarget struct {
	session *chat.Session
	isNew   bool
	// response is set if no session gets the prompt now, because the prompt is refused or has to
	// wait.
	response protocol.AsyncResult[protocol.ChatPromptResult]
}

// failedPromptResult returns the response to a prompt that did not start a turn.
func failedPromptResult(id string) protocol.ChatPromptResult {
	return protocol.ChatPromptResult{ChatID: id, Model: "error", Status: protocol.StatusError}
}

// resolve finds or creates the session that a prompt is for.
func (ps *prompts) resolve(ctx context.Context, req protocol.Request[protocol.ChatPromptParams]) (promptTarget, error) {
	id := string(req.Params.ChatID)
	if chat.IsSubagent(id) {
		// Some clients send a prompt to the last chat id that they received, even if that is a
		// subagent's. The prompt is meant for the visible chat, the parent.
		if parent, ok := ps.host.Engine().Parent(ctx, id); ok {
			req.Params.ChatID = protocol.ID(parent)
			response, err := ps.ChatPrompt(ctx, req)
			return promptTarget{response: response}, err
		}
	}
	if id != "" && !chat.ValidID(id) {
		ps.log.Warn("prompt with an invalid chat id", "id", id)
		return promptTarget{response: protocol.Immediate(failedPromptResult(id))}, nil
	}
	if deleted := ps.views.deletion(id); deleted != nil {
		return promptTarget{response: ps.promptAfterDeletion(deleted, req)}, nil
	}
	session, isNew, err := ps.host.Engine().Open(ctx, id)
	if err != nil {
		return promptTarget{}, err
	}
	if !isNew {
		foreign, err := ps.unseenForeignRoots(ctx, session)
		if err != nil {
			return promptTarget{}, err
		}
		if foreign != nil {
			ps.views.get(session) // marks the chat as shown: the prompt is accepted when it is sent again
			return promptTarget{response: func(context.Context) (protocol.ChatPromptResult, error) {
				ps.refuse(id, *req.Params.Message, fmt.Errorf("this chat belongs to another workspace (%s): start a new chat, or send the prompt again to continue it here", strings.Join(foreign, ", ")))
				return failedPromptResult(id), nil
			}}, nil
		}
	}
	if id != "" && isNew {
		ps.post("chat/opened", protocol.ChatOpened{ChatID: id})
	}
	return promptTarget{session: session, isNew: isNew}, nil
}

// unseenForeignRoots returns the folders of a chat that belongs to another workspace and that the
// client has not been shown: a prompt for such a chat must be a mistake. It returns nil for all other
// chats.
func (ps *prompts) unseenForeignRoots(ctx context.Context, session *chat.Session) ([]string, error) {
	_, shown := ps.views.viewOf(session.ID())
	roots, here := session.Meta().Roots, ps.host.Roots()
	if shown || len(roots) == 0 || slices.ContainsFunc(roots, func(root string) bool { return slices.Contains(here, root) }) {
		return nil, nil
	}
	list, err := ps.host.Engine().List(ctx, chat.ByUpdated, 0)
	if err != nil || slices.ContainsFunc(list, func(c chat.Summary) bool { return c.ID == session.ID() }) {
		return nil, err
	}
	return roots, nil
}

// promptAfterDeletion repeats a prompt once its chat is deleted. The prompt then starts a new chat with the
// same id.
func (ps *prompts) promptAfterDeletion(deleted <-chan struct{}, req protocol.Request[protocol.ChatPromptParams]) protocol.AsyncResult[protocol.ChatPromptResult] {
	failed := failedPromptResult(string(req.Params.ChatID))
	return func(ctx context.Context) (protocol.ChatPromptResult, error) {
		select {
		case <-deleted:
		case <-ctx.Done():
			return failed, ctx.Err()
		}
		result, err := ps.ChatPrompt(ctx, req)
		if err != nil {
			return failed, err
		}
		return result(ctx)
	}
}

// submittedPrompt is a prompt that its session has not accepted yet.
type submittedPrompt struct {
	*chat.Submission
	protocol.ChatPromptParams
	session *chat.Session
	view    *view
	turnID  string
	request *promptRequest
	// begun is called when the chat runs, or the prompt is refused.
	begun func()
}

// submit passes a prompt to its session.
func (ps *prompts) submit(req protocol.Request[protocol.ChatPromptParams], target promptTarget) submittedPrompt {
	pr := prompt(req.Params)
	if target.isNew && pr.Agent == "" {
		pr.Agent = ps.settings.currentAgent()
	}
	pr.TurnID = ps.newID()
	kind := chat.ChatPrompted
	if target.isNew {
		kind = chat.ChatBegun
	}
	announced := ps.news.AnnouncePrompt(kind, target.session.ID()) // must come before the first event of the turn
	v := ps.views.get(target.session)
	request := v.expectRequest(pr.TurnID, req.Answered, ps.host.Config().Conformance().FixedOrder)
	return submittedPrompt{target.session.Submit(pr), req.Params, target.session, v, pr.TurnID, request, announced}
}

// awaitAccepted waits until the client has been shown that a prompt was accepted, and returns the response.
func (ps *prompts) awaitAccepted(ctx context.Context, p submittedPrompt) (protocol.ChatPromptResult, error) {
	failed := failedPromptResult(p.session.ID())
	acc, err := p.Wait(ctx)
	p.begun()
	if err != nil {
		p.view.takeRequest(p.turnID)
		if errors.Is(err, context.Canceled) {
			return failedPromptResult(string(p.ChatID)), err
		}
		if errors.Is(err, chat.ErrEmptyPrompt) && p.session.Running() { // refuse would tell the client that the running turn has ended
			ps.notify(ps.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: err.Error()})
			return failed, nil
		}
		message := *p.Message
		if p.session.AwaitsSecret() {
			message = chat.Masked
		}
		ps.refuse(p.session.ID(), message, err)
		return failed, nil
	}
	if !p.view.awaitPromptShown(ctx, p.request, acc.Done) || acc.Failed {
		return failed, nil
	}
	ps.background(func() { ps.host.AskTrust(ps.ctx, p.session.ID()) })
	status := protocol.StatusPrompting
	if acc.Dialog {
		status = protocol.StatusLogin
	}
	return protocol.ChatPromptResult{ChatID: p.session.ID(), Model: acc.Model, Status: status}, nil
}

func prompt(p protocol.ChatPromptParams) chat.Prompt {
	out := chat.Prompt{Text: *p.Message, Model: string(p.Model), Agent: string(p.Agent), Variant: string(p.Variant), Trust: p.Trust.Value, Limited: p.Limited}
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

// refuse shows a refused prompt and the error as chat content, because clients show content better
// than errors (eca-recorded, rules).
func (ps *prompts) refuse(id, message string, err error) {
	for _, c := range []protocol.ContentReceived{
		{ChatID: id, Role: protocol.RoleUser, Content: protocol.TextContent{Type: "text", ContentID: ps.newID(), Text: strings.TrimSpace(message) + "\n"}},
		{ChatID: id, Role: protocol.RoleSystem, Content: protocol.TextContent{Type: "text", Text: "\n\n" + err.Error()}},
	} {
		ps.notify(ps.ctx, "chat/contentReceived", c)
	}
	ps.notify(ps.ctx, "chat/statusChanged", protocol.ChatStatusChanged{ChatID: id, Status: "idle"})
	ps.notify(ps.ctx, "chat/contentReceived", protocol.ContentReceived{
		ChatID: id, Role: protocol.RoleSystem, Content: protocol.ProgressContent{Type: "progress", State: "finished", Reason: "failed"},
	})
}

// ChatPromptStop implements protocol.Server.
func (ps *prompts) ChatPromptStop(_ context.Context, p protocol.ChatParams) error {
	ps.sendToTurn(string(p.ChatID), (*chat.Session).Cancel)
	return nil
}

// ChatPromptSteer implements protocol.Server.
func (ps *prompts) ChatPromptSteer(_ context.Context, p protocol.SteerParams) error {
	ps.sendToTurn(string(p.ChatID), func(session *chat.Session) { session.Steer(string(p.Message)) })
	return nil
}

// sendToTurn passes an instruction to the running turn of a chat. If no turn is running and this
// daemon has not sent the client a status of the chat, sendToTurn sends one: the client might still
// show a turn of an earlier daemon as running, and would then let the user only stop or steer it.
func (ps *prompts) sendToTurn(id string, send func(*chat.Session)) {
	if chat.IsSubagent(id) {
		if session, ok := ps.host.Engine().Lookup(id); ok {
			send(session)
		}
		return
	}
	var idle *chat.Pending[chat.IdleState]
	session, ok := ps.host.Engine().Lookup(id)
	if ok {
		send(session)
		idle = session.IdleState()
	}
	ps.background(func() {
		if !ok {
			known, found, err := ps.host.Engine().OpenExisting(ps.ctx, id)
			if err != nil || !found {
				return // the client gets no notification about a chat that does not exist
			}
			session, idle = known, known.IdleState()
		}
		now, err := idle.Wait(ps.ctx)
		if err != nil || !now.Idle {
			return
		}
		v := ps.views.get(session)
		_ = v.runAfter(ps.ctx, now.Next, func(ctx context.Context) error {
			if !v.renderer.statusSent && !session.Running() { // otherwise the client is notified when the turn ends
				v.send(ctx, v.renderer.status("idle"))
			}
			return nil
		})
	})
}

// ChatPromptSteerRemove implements protocol.Server.
func (ps *prompts) ChatPromptSteerRemove(_ context.Context, p protocol.ChatParams) error {
	if session, ok := ps.host.Engine().Lookup(string(p.ChatID)); ok {
		session.Unsteer()
	}
	return nil
}

// ChatToolCallApprove implements protocol.Server.
func (ps *prompts) ChatToolCallApprove(_ context.Context, p protocol.ToolCallParams) error {
	d := chat.Decision{Approve: true, Auto: p.Auto}
	switch scope := tools.Scope(p.Save); scope {
	case tools.ForSession, tools.ForWorkspace, tools.Everywhere, tools.InSandbox:
		d.Remember = scope
	}
	ps.decide(p, d)
	return nil
}

// ChatToolCallReject implements protocol.Server.
func (ps *prompts) ChatToolCallReject(_ context.Context, p protocol.ToolCallParams) error {
	ps.decide(p, chat.Decision{GoOn: p.GoOn, Unasked: p.Unasked})
	return nil
}

// decide passes a decision to the session. Unknown chats and calls are ignored: some clients
// approve everything they see (eca-protocol.md 4.2).
func (ps *prompts) decide(p protocol.ToolCallParams, d chat.Decision) {
	if session, ok := ps.host.Engine().Lookup(string(p.ChatID)); ok {
		session.Decide(string(p.ToolCallID), d)
	}
}
