package agent

import (
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// The work of subagents belongs to the step: the approval policy applies to their calls, and the
// calls are recorded below the call that started the subagent.

// child follows a subagent's work for one call.
type child struct {
	drain context.CancelFunc // the call has ended: only the events that exist already are still read
	quit  context.CancelFunc
	done  chan struct{}
}

// behindChild begins to follow a subagent.
func (r *run) behindChild(ctx context.Context, body event.Body) {
	callID, details := "", (*event.Details)(nil)
	switch b := body.(type) {
	case event.ToolUpdated:
		callID, details = b.CallID, b.Details
	case event.ToolFinished: // of a background subagent, or one that was not announced before
		callID, details = b.CallID, b.Details
	default:
	}
	if details == nil || details.Subagent == nil || r.children[callID] != nil {
		return
	}
	session, ok := r.agent.host.Engine().Lookup(details.Subagent.ChatID)
	if !ok {
		return
	}
	c := &child{done: make(chan struct{})}
	ctx, c.quit = context.WithCancel(ctx)
	waiting, drain := context.WithCancel(ctx)
	c.drain = drain
	r.children[callID] = c
	go func() {
		defer close(c.done)
		defer c.quit()
		r.followChild(ctx, waiting, session, callID)
	}()
}

func (r *run) followChild(ctx, waiting context.Context, session *chat.Session, callID string) {
	for reader := session.Read(1); ; {
		e, ok, err := reader.Next(waiting)
		if !ok && err == nil {
			e, ok, err = reader.Try(ctx)
		}
		if err != nil {
			r.agent.log.Warn("cannot read the events of a subagent", "chat", session.ID(), "err", err)
			return
		}
		if !ok {
			return
		}
		if e.Turn != callID {
			continue
		}
		r.decide(session, e.Body)
		r.update(func() { r.record.add(e, session.ID(), callID) })
		if _, over := e.Body.(event.TurnFinished); over {
			return
		}
	}
}

// beforeChild records the rest of a subagent's work before its call ends. A background subagent
// continues after its call.
func (r *run) beforeChild(body event.Body) {
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

// leaveChildren records the rest of the subagents' work: they have ended with the turn.
func (r *run) leaveChildren() {
	for _, c := range r.children {
		c.drain()
		<-c.done
	}
}
