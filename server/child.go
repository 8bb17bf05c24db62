package server

import (
	"context"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
)

// The view of the parent shows the chats of subagents. It shows each one between the start and the
// end of the call that the subagent works for, because clients drop what comes later (eca-protocol
// 7.4, 8.5). Clients get no chat/statusChanged for subagents. The only progress shown is that a
// request is retried; some clients take any other progress for the parent's. The call of a background
// subagent ends as soon as the subagent has started, so the subagent is not shown live; replays show
// it where it was started.

// childView shows a subagent while its call runs.
type childView struct {
	chatID string
	drain  context.CancelFunc // called when the call has ended: only events that exist already are still shown
	quit   context.CancelFunc
	done   chan struct{}
}

// visibleInChild reports whether an item is shown to clients if it occurs in a subagent's chat.
func visibleInChild(i transcript.Item) bool {
	switch i := i.(type) {
	case transcript.Progress:
		return i.Retry // without it, the user does not know why nothing happens
	case transcript.Turn, transcript.Title:
		return false
	default:
	}
	return true
}

// forChild returns a renderer for the part of a subagent's chat that belongs to a call.
func (r *renderer) forChild(sub event.Subagent) *renderer {
	c := newRenderer(sub.ChatID, r.cfg)
	c.client, c.parent = r.client, r.chatID
	return c
}

// showChild starts to show a subagent if it runs in this process.
func (v *view) showChild(ctx context.Context, callID string, sub event.Subagent) {
	v.showChildFrom(ctx, callID, sub, position{})
}

// showChildFrom is like showChild for a client that has already been shown everything before a
// position.
func (v *view) showChildFrom(ctx context.Context, callID string, sub event.Subagent, from position) {
	session, ok := v.views.host.Engine().Lookup(sub.ChatID)
	if _, shown := v.children[callID]; shown || !ok || sub.Background {
		return
	}
	c := &childView{chatID: sub.ChatID, done: make(chan struct{})}
	ctx, c.quit = context.WithCancel(ctx)
	callCtx, drain := context.WithCancel(ctx)
	c.drain = drain
	r := v.renderer.forChild(sub)
	v.children[callID] = c
	go func() {
		defer close(c.done)
		defer c.quit()
		v.followChild(ctx, callCtx, session, callID, r, from)
	}()
}

// followChild sends what a subagent does for a call, until the subagent's turn for the call ends.
// Once callCtx is cancelled, it sends the events that are already stored, and returns.
func (v *view) followChild(ctx, callCtx context.Context, session *chat.Session, callID string, r *renderer, from position) {
	for reader := session.Read(1); ; {
		if reader.Position() == from.Seq && reader.Offset() < from.Offset {
			reader = session.ReadAt(from.Seq, from.Offset)
		}
		e, ok, err := reader.Next(callCtx)
		if !ok && err == nil {
			e, ok, err = reader.Try(ctx)
		}
		if err != nil {
			v.views.log.Error("cannot show a subagent", "chat", session.ID(), "err", err)
			if !pauseBeforeRetry(callCtx) { // the call has ended
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
		if e.Seq < from.Seq {
			r.showLive(e)
			continue
		}
		if v.views.followPeriod != nil {
			e = joinPieces(ctx, reader, e)
		}
		v.sendAt(ctx, r.chatID, reader, r.showLive(e))
		if v.views.followPeriod != nil && isGrowing(reader, e) {
			v.awaitPhase(callCtx)
		}
		if _, over := e.Body.(event.TurnFinished); over {
			return
		}
	}
}

// remindChild sends the pending approvals of a subagent again.
func (v *view) remindChild(ctx context.Context, callID string, sub event.Subagent) {
	session, ok := v.views.host.Engine().Lookup(sub.ChatID)
	if !ok {
		return
	}
	r := v.renderer.forChild(sub)
	for reader := session.Read(1); ; {
		e, ok, err := reader.Try(ctx)
		if !ok || err != nil {
			break
		}
		if e.Turn == callID {
			r.showLive(e)
		}
	}
	v.sendPending(ctx, r)
}

// endChildrenFor stops showing the subagents whose work ends with an event of the parent, before that
// event is shown.
func (v *view) endChildrenFor(ctx context.Context, e event.Event) {
	switch b := e.Body.(type) {
	case event.ToolFinished:
		v.endChild(ctx, e.Turn, b.CallID)
	case event.ToolRejected:
		v.endChild(ctx, e.Turn, b.CallID)
	case event.TurnFinished:
		v.stopChildren()
	default:
	}
}

// startChildFor starts to show the subagent that an event of the parent announces, after that event
// has been shown.
func (v *view) startChildFor(ctx context.Context, e event.Event) {
	if b, ok := e.Body.(event.ToolUpdated); ok && v.renderer.turns[e.Turn] && b.Details.Subagent != nil {
		v.showChild(ctx, b.CallID, *b.Details.Subagent)
	}
}

// endChild shows the rest of a subagent's work for a call that has ended.
func (v *view) endChild(ctx context.Context, turn, callID string) {
	if c := v.children[callID]; c != nil {
		delete(v.children, callID)
		c.drain()
		<-c.done
		return
	}
	call, _ := v.renderer.fold.Call(callID)
	sub := call.Subagent()
	if sub == nil || sub.Background || !v.renderer.turns[turn] {
		return
	}
	// The view has fallen behind and did not start to show this subagent.
	r := v.renderer.forChild(*sub)
	_, err := v.session.Child(ctx, sub.ChatID, callID, func(e event.Event) { v.send(ctx, r.showLive(e)) })
	if err != nil && ctx.Err() == nil {
		v.views.log.Error("cannot show a subagent", "chat", sub.ChatID, "err", err)
	}
}

// stopChildren stops showing the subagents.
func (v *view) stopChildren() {
	for id, c := range v.children {
		c.quit()
		<-c.done
		delete(v.children, id)
	}
}

// child returns what a replay shows of a subagent whose call has ended. view.replay shows the others
// live.
func (r *replayer) child(call transcript.Call) []notification {
	sub := call.Subagent()
	if sub == nil {
		return nil
	}
	c := newReplayer(r.forChild(*sub))
	var out []notification
	r.subagent(sub.ChatID, call.CallID, func(e event.Event) { out = append(out, c.showStored(e)...) })
	return append(out, c.end(tailDead)...)
}

// reportText returns the text shown when a background subagent has ended.
func reportText(r transcript.Report) string {
	if r.Failed {
		return fmt.Sprintf("\nThe subagent %s in the background did not finish.\n", r.Agent)
	}
	return fmt.Sprintf("\nThe subagent %s in the background has finished.\n", r.Agent)
}
