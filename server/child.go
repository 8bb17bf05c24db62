package server

import (
	"context"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// The chats of subagents are shown by the view of their parent, each between the running
// and the end of the call it works for: behind that clients drop what they hear of it
// (eca-protocol 7.4, 8.5). They have no status, and no progress but that a request is repeated, which some clients take
// for the parent's. A subagent in the background, whose call ends at once, is not shown
// live; replays show it where it was started.

// childView shows a subagent while its call runs.
type childView struct {
	drain context.CancelFunc // the call has ended: what is there already is the rest
	quit  context.CancelFunc
	done  chan struct{}
}

// ofChild says whether clients hear of an event in the chat of a subagent.
func ofChild(b event.Body) bool {
	switch b := b.(type) {
	case event.Progress:
		return b.Retry // without it, nobody knows why nothing happens
	case event.TurnStarted, event.TurnFinished, event.TitleChanged:
		return false
	}
	return true
}

// forChild returns a mapper for the part of a subagent's chat that belongs to a call.
func (m *mapper) forChild(sub event.Subagent) *mapper {
	c := newMapper(sub.ChatID, m.cfg)
	c.client, c.parent = m.client, m.chatID
	return c
}

// showChild begins to show a subagent, if it works in this process.
func (v *view) showChild(ctx context.Context, callID string, sub event.Subagent) {
	session, ok := v.s.host.Engine().Lookup(sub.ChatID)
	if _, shown := v.children[callID]; shown || !ok || sub.Background {
		return
	}
	c := &childView{done: make(chan struct{})}
	ctx, c.quit = context.WithCancel(ctx)
	waiting, drain := context.WithCancel(ctx)
	c.drain = drain
	m := v.mapper.forChild(sub)
	v.children[callID] = c
	go func() {
		defer close(c.done)
		defer c.quit()
		v.followChild(ctx, waiting, session, callID, m)
	}()
}

// followChild sends what a subagent does for a call, until that ends or waiting has.
func (v *view) followChild(ctx, waiting context.Context, session *chat.Session, callID string, m *mapper) {
	for r := session.Read(1); ; {
		e, ok, err := r.Next(waiting)
		if !ok && err == nil {
			e, ok, err = r.Try(ctx)
		}
		if err != nil {
			v.s.log.Error("subagent can not be shown", "chat", session.ID(), "err", err)
			if !pauseUnless(waiting) { // the call has ended
				return
			}
			continue
		}
		if !ok {
			return
		}
		if e.Turn != callID {
			continue
		}
		v.send(ctx, m.notifications(e))
		if _, over := e.Body.(event.TurnFinished); over {
			return
		}
	}
}

// beforeChild brings the subagents in line with an event of the parent, before that is shown.
func (v *view) beforeChild(ctx context.Context, e event.Event) {
	switch b := e.Body.(type) {
	case event.ToolFinished:
		v.endChild(ctx, e.Turn, b.CallID)
	case event.ToolRejected:
		v.endChild(ctx, e.Turn, b.CallID)
	case event.TurnFinished:
		v.leaveChildren()
	}
}

// behindChild is beforeChild for what follows an event.
func (v *view) behindChild(ctx context.Context, e event.Event) {
	if b, ok := e.Body.(event.ToolUpdated); ok && v.mapper.turns[e.Turn] && b.Details.Subagent != nil {
		v.showChild(ctx, b.CallID, *b.Details.Subagent)
	}
}

// endChild shows the rest of what a subagent did for a call that has ended.
func (v *view) endChild(ctx context.Context, turn, callID string) {
	if c := v.children[callID]; c != nil {
		delete(v.children, callID)
		c.drain()
		<-c.done
		return
	}
	call := v.mapper.calls[callID]
	if call == nil || call.sub == nil || call.sub.Background || !v.mapper.turns[turn] {
		return
	}
	// The view has fallen behind and did not hear that it began.
	m := v.mapper.forChild(*call.sub)
	_, err := v.session.Child(ctx, call.sub.ChatID, callID, func(e event.Event) { v.send(ctx, m.notifications(e)) })
	if err != nil && ctx.Err() == nil {
		v.s.log.Error("subagent can not be shown", "chat", call.sub.ChatID, "err", err)
	}
}

// leaveChildren shows nothing more of the subagents.
func (v *view) leaveChildren() {
	for id, c := range v.children {
		c.quit()
		<-c.done
		delete(v.children, id)
	}
}

// child returns what a replay shows of a subagent. The call, if it is not over, is shown
// live from its beginning.
func (r *replayer) child(callID string) []notification {
	call := r.calls[callID]
	if call == nil || call.sub == nil {
		return nil
	}
	c := newReplayer(r.forChild(*call.sub), func(string) (chat.CallStages, bool) {
		return chat.CallStages{}, false
	})
	var out []notification
	r.inside(call.sub.ChatID, callID, func(e event.Event) { out = append(out, c.notifications(e)...) })
	return append(out, c.end(tailDead)...)
}

// reportText tells the user that a subagent in the background has ended.
func reportText(r event.Report) string {
	if r.Failed {
		return fmt.Sprintf("\nThe subagent %s in the background did not finish.\n", r.Agent)
	}
	return fmt.Sprintf("\nThe subagent %s in the background has finished.\n", r.Agent)
}
