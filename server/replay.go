package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// replayer shows the stored events of a chat (eca-protocol.md 8.6). It joins the pieces of a text,
// shows all stages of a tool call at the position of its result, and shows no progress. Otherwise
// it sends what a client sees live.
type replayer struct {
	*renderer
	merger transcript.Merger
	// find looks up a call that was announced before the replay.
	find func(callID string) (transcript.Call, bool)
	// subagent calls fn with each event of a subagent that belongs to a call.
	subagent func(chatID, callID string, fn func(event.Event))
	// pageFollows is set if another page follows. A call without a result on this page is shown by the
	// page that has the result, with all its stages.
	pageFollows bool
	usage       []notification // the last usage
}

func newReplayer(r *renderer) *replayer {
	out := &replayer{
		renderer: r, find: func(string) (transcript.Call, bool) { return transcript.Call{}, false },
		subagent: func(string, string, func(event.Event)) {},
	}
	r.beforeEnd = out.child
	return out
}

// showStored returns the notifications for the next stored event.
func (r *replayer) showStored(e event.Event) []notification {
	switch b := e.Body.(type) {
	case event.ToolJudged:
		r.adopt(b.CallID, e.Seq)
	case event.ToolStarted:
		r.adopt(b.CallID, e.Seq)
	case event.ToolUpdated:
		r.adopt(b.CallID, e.Seq)
	case event.ToolFinished:
		r.adopt(b.CallID, e.Seq)
	case event.ToolRejected:
		r.adopt(b.CallID, e.Seq)
	default:
	}
	c, ok := r.fold.Add(e)
	if !ok {
		return nil
	}
	r.turns[e.Turn] = true
	switch item := c.Item.(type) {
	case transcript.Title, transcript.Flag: // these are shown elsewhere
		return nil
	case transcript.Turn:
		if item.End == nil {
			return nil
		}
		delete(r.turns, e.Turn)
	case transcript.Call:
		if !item.Ended() && (item.Stage > transcript.Announced || !c.Began()) {
			return nil
		}
	case transcript.Usage:
		if item.Purpose != "" {
			return nil
		}
	default:
	}
	return r.renderAll(r.merger.Add(c))
}

// adopt adds a call that was announced before the replay.
func (r *replayer) adopt(callID string, at event.Seq) {
	if _, known := r.fold.Call(callID); known {
		return
	}
	if c, found := r.find(callID); found {
		r.fold.Adopt(c, at)
	}
}

func (r *replayer) renderAll(changes []transcript.Change) (out []notification) {
	for _, c := range changes {
		switch item := c.Item.(type) {
		case transcript.Usage:
			r.usage = r.render(c)
			continue
		case transcript.Call:
			if r.pageFollows && !item.Ended() {
				continue
			}
		case transcript.Turn:
			clear(r.stages)
			if item.End.Reason == event.FinishedInterrupted && r.parent == "" {
				out = append(out, r.showInterrupted()...)
			}
			continue
		default:
		}
		out = append(out, r.render(c)...)
	}
	return out
}

// tail is what follows the last message of a replay.
type tail int

const (
	tailMore      tail = iota // more messages
	tailLive                  // a running turn
	tailElsewhere             // a turn that is running in another process
	tailDead                  // nothing: a turn without an end was cut off when its process exited
)

// end returns the remaining notifications: a text that may still grow, the calls that have no
// result yet, and the token usage.
func (r *replayer) end(next tail) []notification {
	out := r.renderAll(r.merger.Flush())
	for _, call := range r.fold.Calls() {
		if call.Ended() || next == tailMore {
			continue
		}
		if next == tailElsewhere {
			call.Judgment.Manual = false // this process cannot answer it
		}
		if next == tailDead {
			call.Stage, call.Rejection = transcript.Rejected, event.ToolRejected{CallID: call.CallID, Reason: event.Interrupted}
		} else if call.Stage == r.stages[call.CallID] {
			continue
		}
		out = append(out, r.showCall(call)...)
	}
	if next == tailElsewhere && r.parent == "" {
		out = append(out, r.text("\nThis turn runs in another eca process. Its next part appears here with your next prompt, or when you open the chat again.\n")...)
	}
	if next == tailDead {
		delete(r.turns, "")
		if len(r.turns) > 0 && r.parent == "" {
			out = append(out, r.showInterrupted()...)
		}
		clear(r.turns) // their ends, if another process writes them, need not be shown
	}
	r.beforeEnd = nil
	return append(out, r.usage...)
}

// replay passes the notifications for a span of a chat to emit. It returns the reader with which a
// view of the chat continues. The client already sees the turns in show.turns live. Parts of a call
// that cannot be read are logged and left out: the rest of the chat is still worth showing.
func replay(ctx context.Context, session *chat.Session, span chat.Span, show *renderer, log *slog.Logger, emit func([]notification)) (*eventlog.Reader, error) {
	logUnreadable := func(what, callID string, err error) {
		if err != nil && ctx.Err() == nil {
			log.Error("cannot show "+what, "chat", session.ID(), "call", callID, "err", err)
		}
	}
	r := newReplayer(show)
	r.find = func(id string) (transcript.Call, bool) {
		c, found, err := session.Call(ctx, id)
		logUnreadable("how a tool call began", id, err)
		return c, found && err == nil
	}
	r.subagent = func(chatID, callID string, fn func(event.Event)) {
		_, err := session.Child(ctx, chatID, callID, fn)
		logUnreadable("what a subagent did", callID, err)
	}
	if span.Older {
		show.tasks = nil
	}
	r.pageFollows = span.Newer
	placeFlags := func(flags []chat.PlacedFlag, before event.Seq) ([]chat.PlacedFlag, error) {
		for len(flags) > 0 && flags[0].NextMessage <= before {
			e, ok, err := session.Event(ctx, flags[0].Seq)
			if err != nil {
				return nil, err
			}
			if b, isFlag := e.Body.(event.Flag); ok && isFlag {
				emit(append(r.renderAll(r.merger.Flush()), show.render(transcript.Change{Item: transcript.Flag{Flag: b}})...))
			}
			flags = flags[1:]
		}
		return flags, nil
	}
	running := session.Running() // read before the end of the log: a turn that ends meanwhile is shown live
	last := session.Next() - 1
	reader, flags := session.Read(min(span.From, last+1)), span.Flags
	liveTurns := maps.Clone(show.turns)
	delete(liveTurns, "") // events outside turns
	for reader.Position() <= last {
		e, ok, err := reader.Try(ctx)
		if err != nil {
			return nil, err
		}
		if !ok || e.Seq >= span.To {
			break
		}
		if _, ended := e.Body.(event.TurnFinished); ended && liveTurns[e.Turn] {
			reader = session.Read(e.Seq)
			break // the client waits for the end of this turn; it is shown live
		}
		if flags, err = placeFlags(flags, e.Seq); err != nil {
			return nil, err
		}
		emit(r.showStored(e))
		if e.Seq >= last {
			break // the rest of a growing event is shown live
		}
	}
	if _, err := placeFlags(flags, span.To); err != nil {
		return nil, err
	}
	next := tailDead
	switch {
	case span.Newer:
		next = tailMore
	case running, len(liveTurns) > 0:
		next = tailLive
	case r.inTurn() && session.RunsElsewhere():
		next = tailElsewhere
	}
	emit(r.end(next))
	return reader, nil
}

func (v *view) showTitle(ctx context.Context, meta chat.Meta) {
	v.title = meta.Title
	if meta.Title != "" {
		v.send(ctx, v.renderer.content(protocol.RoleSystem, protocol.MetadataContent{Type: "metadata", Title: meta.Title}))
	}
}

// replay shows a span. If the span reaches the end of the chat, the view continues after it.
func (v *view) replay(ctx context.Context, span chat.Span) error {
	if v.views.followPeriod != nil {
		for _, c := range v.children { // they are shown from their beginning
			v.views.notify(ctx, "$/positioned", positionedParams{ChatID: c.chatID})
		}
	}
	v.stopChildren()
	r := v.views.newRenderer(v.session)
	maps.Copy(r.turns, v.renderer.turns)
	r.statusSent = v.renderer.statusSent
	v.mu.Lock()
	for id := range v.requests {
		r.turns[id] = true
	}
	v.mu.Unlock()
	reader, err := replay(ctx, v.session, span, r, v.views.log, func(list []notification) { v.send(ctx, list) })
	if err != nil {
		return err
	}
	if !span.Newer {
		v.renderer = r
		if span.Returned > 0 {
			v.reader = reader
		}
	}
	for _, c := range v.renderer.fold.Calls() {
		if sub := c.Subagent(); sub != nil && c.Stage == transcript.Running {
			v.showChild(ctx, c.CallID, *sub)
		}
	}
	return nil
}

// open shows a chat, or a window of it, that the client opens (eca-protocol.md 8.6).
func (v *view) open(ctx context.Context, span chat.Span) error {
	meta := v.session.Meta()
	v.views.notify(ctx, "chat/cleared", protocol.ChatCleared{ChatID: v.chatID, Messages: true})
	v.views.notify(ctx, "chat/opened", protocol.ChatOpened{ChatID: v.chatID, Title: meta.Title})
	if err := v.replay(ctx, span); err != nil {
		return err
	}
	v.showTitle(ctx, meta)
	v.showSelection(ctx, meta)
	if v.session.Running() {
		v.send(ctx, v.renderer.status("running"))
	}
	v.sendPosition(ctx)
	return nil
}

// showSelection sends the model, the agent and the other settings of a chat.
func (v *view) showSelection(ctx context.Context, meta chat.Meta) {
	if sel := v.views.selection(meta); sel.Model != nil {
		v.views.notify(ctx, "config/updated", protocol.ConfigUpdated{ChatID: v.chatID, Chat: &protocol.ChatConfig{
			SelectModel: *sel.Model, Variants: &sel.Variants, SelectVariant: variantJSON(sel.Variant),
		}})
	}
	v.views.notify(ctx, "config/updated", protocol.ConfigUpdated{ChatID: v.chatID, Chat: &protocol.ChatConfig{
		SelectAgent: meta.Agent, SelectBehavior: meta.Agent, SelectTrust: &meta.Trust,
	}})
}

func variantJSON(v *string) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	raw, _ := json.Marshal(*v)
	return raw
}
