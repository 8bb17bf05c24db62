package server

import (
	"context"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// ChatQueryCommands implements protocol.Server (eca-protocol.md 4.7).
func (q *queries) ChatQueryCommands(_ context.Context, req protocol.Request[protocol.QueryParams]) (protocol.AsyncResult[protocol.QueryCommandsResult], error) {
	query := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(string(req.Params.Query)), "/"))
	out := protocol.QueryCommandsResult{ChatID: chatRef(req.Params.ChatID), Commands: []protocol.ChatCommand{}}
	for _, c := range q.host.Commands() {
		if !strings.Contains(strings.ToLower(c.Name), query) && !strings.Contains(strings.ToLower(c.Description), query) {
			continue
		}
		var args []protocol.CommandArgument
		if len(c.Arguments) > 0 || c.Type != "skill" { // the reference server sends null for a skill without arguments
			args = make([]protocol.CommandArgument, len(c.Arguments))
		}
		for i, a := range c.Arguments {
			args[i] = protocol.CommandArgument(a)
		}
		out.Commands = append(out.Commands, protocol.ChatCommand{Name: c.Name, Description: c.Description, Type: c.Type, Arguments: args})
	}
	return protocol.Immediate(out), nil
}

// applySideEffects does what an event requires beyond showing it: it shows a fork, and after a
// slash command has changed the chat's settings it sends them, because clients send their own
// selection with each prompt.
func (v *view) applySideEffects(ctx context.Context, e event.Event) {
	switch b := e.Body.(type) {
	case event.Notice:
		if b.Chat != "" {
			if err := v.views.showFork(ctx, b.Chat); err != nil && ctx.Err() == nil {
				v.views.log.Error("cannot show a fork", "chat", b.Chat, "err", err)
			}
		}
	case event.TitleChanged:
		v.title = b.Title
	case event.TurnStarted:
		v.lastStart = b
	case event.TurnFinished:
		if meta := v.session.Meta(); meta.Model != v.lastStart.Model || meta.Variant != v.lastStart.Variant || meta.Agent != v.lastStart.Agent {
			v.showSelection(ctx, meta)
		}
	default:
	}
}
