package service

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

// refusedCall is a tool call of a turn that was not allowed to run, for the caller.
type refusedCall struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// refusals rejects the calls of a turn and its subagents that need approval, because no user can
// be asked, and collects all refused calls.
type refusals struct {
	engine   *chat.Engine
	children sync.WaitGroup

	mu   sync.Mutex // guards list
	list []refusedCall
}

// follow handles the events of a turn until it ends, and calls each with every event.
func (r *refusals) follow(ctx context.Context, session *chat.Session, turn string, from event.Seq, each func(event.Body)) error {
	judged, subagents := map[string]event.ToolJudged{}, map[string]bool{}
	for ev, err := range session.Events(ctx, from) {
		if err != nil {
			return err
		}
		if ev.Turn != turn {
			continue
		}
		switch b := ev.Body.(type) {
		case event.ToolJudged:
			judged[b.CallID] = b
			if b.Manual {
				session.Decide(b.CallID, chat.Decision{Auto: true, GoOn: true, Unasked: true})
			}
		case event.ToolRejected:
			r.add(judged[b.CallID], b.Reason)
		case event.ToolUpdated:
			r.followSubagent(ctx, b, subagents)
		default:
		}
		each(ev.Body)
		if _, ended := ev.Body.(event.TurnFinished); ended {
			return nil
		}
	}
	return nil
}

// followSubagent follows the subagent of a call, once.
func (r *refusals) followSubagent(ctx context.Context, b event.ToolUpdated, followed map[string]bool) {
	if b.Details == nil || b.Details.Subagent == nil || followed[b.CallID] {
		return
	}
	if session, ok := r.engine.Lookup(b.Details.Subagent.ChatID); ok {
		followed[b.CallID] = true
		r.children.Go(func() {
			_ = r.follow(ctx, session, b.CallID, 1, func(event.Body) {}) // its result says what failed
		})
	}
}

func (r *refusals) add(call event.ToolJudged, why event.RejectReason) {
	reason := ""
	switch why {
	case event.RejectedByUser:
		reason = "not approved: there is no user to ask (" + cmp.Or(call.Reason, call.Rule, "no rule allows it") + ")"
	case event.RejectedByConfig:
		reason = "denied by " + cmp.Or(call.Rule, "the configuration")
	case event.RejectedByHook:
		reason = "denied by a hook"
	default:
		return // it was stopped
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, refusedCall{tools.FullName(call.Server, call.Name), reason})
}

// output is the list as an output of the turn. It is empty if nothing was refused.
func (r *refusals) output() []Output {
	r.children.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return nil
	}
	doc, err := json.Marshal(r.list)
	if err != nil {
		return nil // strings always encode
	}
	return []Output{{"refused", "application/json", doc}}
}
