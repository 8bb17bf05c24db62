package agent

import (
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// The work of subagents belongs to the step: the approval policy applies to their calls, and the
// calls are recorded with the call that started the subagent as their parent.

// child is a goroutine that follows the subagent of one call.
type child struct {
	drain  context.CancelFunc // makes it end after the events that exist already
	cancel context.CancelFunc
	done   chan struct{}
}

// startChild starts to follow the subagent of a call when an event first names it.
func (r *run) startChild(ctx context.Context, body event.Body) {
	callID, details := "", (*event.Details)(nil)
	switch b := body.(type) {
	case event.ToolUpdated:
		callID, details = b.CallID, b.Details
	case event.ToolFinished: // a background subagent, or a subagent without an earlier ToolUpdated
		callID, details = b.CallID, b.Details
	default:
	}
	if details == nil || details.Subagent == nil || r.children[callID] != nil {
		return
	}
	session, ok := r.agent.opts.Host.Engine().Lookup(details.Subagent.ChatID)
	if !ok {
		return
	}
	c := &child{done: make(chan struct{})}
	ctx, c.cancel = context.WithCancel(ctx)
	drainCtx, drain := context.WithCancel(ctx)
	c.drain = drain
	r.children[callID] = c
	go func() {
		defer close(c.done)
		defer c.cancel()
		r.followChild(ctx, drainCtx, session, callID)
	}()
}

func (r *run) followChild(ctx, drainCtx context.Context, session *chat.Session, callID string) {
	for reader := session.Read(1); ; {
		e, ok, err := reader.Next(drainCtx)
		if !ok && err == nil {
			e, ok, err = reader.Try(ctx)
		}
		if err != nil {
			r.agent.opts.Log.Warn("cannot read the events of a subagent", "chat", session.ID(), "err", err)
			return
		}
		if !ok {
			return
		}
		if e.Turn != callID {
			continue
		}
		r.decideApproval(session, e.Body)
		r.update(func() { r.record.add(e, session.ID(), callID) })
		if _, over := e.Body.(event.TurnFinished); over {
			return
		}
	}
}

// drainChild records the rest of a subagent's work before the end of its call is recorded. It leaves a
// background subagent running, which continues after its call.
func (r *run) drainChild(body event.Body) {
	var callID string
	switch b := body.(type) {
	case event.ToolFinished:
		if b.Details != nil && b.Details.Subagent != nil && b.Details.Subagent.Background {
			return
		}
		callID = b.CallID
	case event.ToolRejected:
		callID = b.CallID
	case event.Report:
		callID = b.CallID
	default:
		return
	}
	if c := r.children[callID]; c != nil {
		c.drain()
		<-c.done
	}
}

// drainChildren records the rest of the subagents' work at the end of the turn.
func (r *run) drainChildren() {
	for _, c := range r.children {
		c.drain()
		<-c.done
	}
}
