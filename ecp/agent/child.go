package agent

import (
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// What subagents do belongs to the step: their calls are decided about, and recorded below
// the call they work for.

// child follows a subagent's part for one call.
type child struct {
	drain context.CancelFunc // the call has ended: what is there already is the rest
	quit  context.CancelFunc
	done  chan struct{}
}

// behindChild begins to follow a subagent.
func (r *run) behindChild(ctx context.Context, body event.Body) {
	callID, details := "", (*event.Details)(nil)
	switch b := body.(type) {
	case event.ToolUpdated:
		callID, details = b.CallID, b.Details
	case event.ToolFinished: // of one in the background, or that was not heard of before
		callID, details = b.CallID, b.Details
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
			r.agent.log.Warn("what a subagent does can not be read", "chat", session.ID(), "err", err)
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

// beforeChild records the rest of what a subagent did, before its call ends. One in the
// background goes on behind its call.
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

// leaveChildren records what there is of subagents: the turn has ended, and so have they.
func (r *run) leaveChildren() {
	for _, c := range r.children {
		c.drain()
		<-c.done
	}
}
