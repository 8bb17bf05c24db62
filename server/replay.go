package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// replayer maps a chat's past to notifications (eca-protocol 8.6): deltas are merged,
// a tool call's stages stand at its result, and there is no progress. In all else it
// shows what a live client saw.
type replayer struct {
	*mapper
	// find looks up a call that was announced in front of the replay.
	find func(callID string) (chat.CallStages, bool)
	// inside reads what a subagent did for a call.
	inside func(chatID, callID string, fn func(event.Event))

	// held is what was announced in a page that others follow: a call without a result
	// here is shown by the page that has it, with all its stages. It is nil in other
	// replays, where calls are announced where they were.
	held map[string]event.ToolProposed

	text    strings.Builder // of the run that is being merged
	reason  string          // id of the reasoning it is; empty: the model's text
	open    []string        // calls without a result, in order
	judged  map[string]event.ToolJudged
	started map[string]bool
	usage   []notification // the last one
}

func newReplayer(m *mapper, find func(string) (chat.CallStages, bool)) *replayer {
	return &replayer{mapper: m, find: find, inside: func(string, string, func(event.Event)) {}, judged: map[string]event.ToolJudged{}, started: map[string]bool{}}
}

// notifications returns what an event shows.
func (r *replayer) notifications(e event.Event) []notification {
	switch b := e.Body.(type) {
	case event.TextDelta:
		return r.merge("", b.Text)
	case event.ReasoningDelta:
		return r.merge(b.ID, b.Text)
	case event.UsageReported:
		if b.Purpose != "" {
			return nil
		}
	case event.ToolUpdated:
		if j, ok := r.judged[b.CallID]; ok {
			j.Details = b.Details
			r.judged[b.CallID] = j
		}
		return nil
	case event.Progress, event.TitleChanged, event.TurnStarted, event.ToolArgsDelta, event.Flag, event.Truncated, event.FileChanged, event.UndoPoint, event.Pruned, event.SystemPrompt, event.PromptAmended:
		if _, ok := b.(event.TurnStarted); ok {
			r.turns[e.Turn] = true
		}
		return nil
	}
	return append(r.flush(), r.whole(e)...)
}

// whole maps an event that is no delta.
func (r *replayer) whole(e event.Event) []notification {
	switch b := e.Body.(type) {
	case event.UsageReported:
		r.usage = r.content(protocol.RoleSystem, r.mapper.usage(b))
		return nil
	case event.ToolProposed:
		r.open = append(r.open, b.CallID)
		if r.held != nil {
			r.held[b.CallID] = b
			return nil
		}
		return r.tool(b)
	case event.ToolJudged:
		r.judged[b.CallID] = b
		return nil
	case event.ToolStarted:
		r.started[b.CallID] = true
		return nil
	case event.ToolFinished:
		return append(r.stages(b.CallID, true), r.tool(b)...)
	case event.ToolRejected:
		return append(r.stages(b.CallID, true), r.tool(b)...)
	case event.TurnFinished:
		delete(r.turns, e.Turn)
		clear(r.calls)
		r.open = nil
		if b.Reason == event.FinishedInterrupted && r.parent == "" {
			return r.interrupted()
		}
		return nil
	}
	r.turns[e.Turn] = true
	return r.mapper.notifications(e)
}

// stages returns what is shown of a call in front of its result, or of one that has
// none yet.
func (r *replayer) stages(id string, ended bool) []notification {
	var out []notification
	if proposed, ok := r.held[id]; ok {
		out = append(out, r.tool(proposed)...)
	} else if _, known := r.calls[id]; !known {
		if c, found := r.find(id); found {
			out = append(out, r.tool(c.Proposed)...)
			if c.Judged.CallID != "" {
				r.judged[id] = c.Judged
			}
			r.started[id] = c.Started
		}
	}
	if b, ok := r.judged[id]; ok {
		b.Manual = b.Manual && !ended && !r.started[id]
		out = append(out, r.tool(b)...)
	}
	if r.started[id] {
		out = append(out, r.tool(event.ToolStarted{CallID: id})...)
		if ended {
			out = append(out, r.child(id)...)
		}
	}
	delete(r.held, id)
	delete(r.judged, id)
	delete(r.started, id)
	for i, o := range r.open {
		if o == id {
			r.open = append(r.open[:i], r.open[i+1:]...)
			break
		}
	}
	return out
}

// merge adds a delta to the run it belongs to.
func (r *replayer) merge(reason, text string) []notification {
	var out []notification
	if reason != r.reason {
		out = r.flush()
	}
	r.reason = reason
	r.text.WriteString(text)
	return out
}

// flush returns the run that has ended.
func (r *replayer) flush() []notification {
	text, reason := r.text.String(), r.reason
	r.text.Reset()
	r.reason = ""
	switch {
	case text == "":
		return nil
	case reason != "":
		return r.content(protocol.RoleAssistant, protocol.ReasonContent{Type: "reasonText", ID: reason, Text: text})
	}
	return r.content(protocol.RoleAssistant, protocol.TextContent{Type: "text", Text: text})
}

// tail says what stands behind the last message of a replay.
type tail int

const (
	tailMore tail = iota // more messages
	tailLive             // a turn that runs
	tailDead             // nothing: if a turn has no end, its process died
)

// end returns what is left: the run that is being merged, the calls that have no result
// yet, and how full the context is.
func (r *replayer) end(behind tail) []notification {
	out := r.flush()
	for behind != tailMore && len(r.open) > 0 {
		id := r.open[0]
		out = append(out, r.stages(id, behind == tailDead)...)
		if behind == tailDead {
			out = append(out, r.tool(event.ToolRejected{CallID: id, Reason: event.Interrupted})...)
		}
	}
	if behind == tailDead {
		delete(r.turns, "")
		if len(r.turns) > 0 && r.parent == "" {
			out = append(out, r.interrupted()...)
		}
		clear(r.turns) // its end, when somebody writes it, is no news
	}
	return append(out, r.usage...)
}

// flag maps a flag, which stands elsewhere than in the log.
func (m *mapper) flag(b event.Flag) []notification {
	return m.content(protocol.RoleSystem, protocol.FlagContent{Type: "flag", Text: b.Text, ContentID: b.ContentID})
}

// replay sends what a span of a chat shows to emit. It returns the reader with which a
// view of the chat goes on behind it. Turns that m knows already run in front of the
// client. What is missing of a call, because it can not be read, is told to log: the rest of
// the chat is still worth showing.
func replay(ctx context.Context, session *chat.Session, span chat.Span, m *mapper, log *slog.Logger, emit func([]notification)) (*chat.Reader, error) {
	missing := func(what, callID string, err error) {
		if err != nil && ctx.Err() == nil {
			log.Error(what+" can not be shown", "chat", session.ID(), "call", callID, "err", err)
		}
	}
	r := newReplayer(m, func(id string) (chat.CallStages, bool) {
		c, found, err := session.Call(ctx, id)
		missing("how a tool call began", id, err)
		return c, found && err == nil
	})
	r.inside = func(chatID, callID string, fn func(event.Event)) {
		_, err := session.Child(ctx, chatID, callID, fn)
		missing("what a subagent did", callID, err)
	}
	if span.Older {
		m.tasks = nil
	}
	if span.Newer {
		r.held = map[string]event.ToolProposed{}
	}
	placeFlags := func(flags []chat.PlacedFlag, before event.Seq) ([]chat.PlacedFlag, error) {
		for len(flags) > 0 && flags[0].Before <= before {
			e, ok, err := session.Event(ctx, flags[0].Seq)
			if err != nil {
				return nil, err
			}
			if b, isFlag := e.Body.(event.Flag); ok && isFlag {
				emit(append(r.flush(), m.flag(b)...))
			}
			flags = flags[1:]
		}
		return flags, nil
	}
	running := session.Running() // before the end of the log is: a turn that ends now ends live
	last := session.Next() - 1
	reader, flags := session.Read(min(span.From, last+1)), span.Flags
	followed := maps.Clone(m.turns)
	delete(followed, "") // what stands outside of turns
	for reader.Position() <= last {
		e, ok, err := reader.Try(ctx)
		if err != nil {
			return nil, err
		}
		if !ok || e.Seq >= span.To {
			break
		}
		if _, ended := e.Body.(event.TurnFinished); ended && followed[e.Turn] {
			reader = session.Read(e.Seq)
			break // the client waits for the end of this turn: it comes live
		}
		if flags, err = placeFlags(flags, e.Seq); err != nil {
			return nil, err
		}
		emit(r.notifications(e))
		if e.Seq >= last {
			break // the rest of an event that is growing comes live
		}
	}
	if _, err := placeFlags(flags, span.To); err != nil {
		return nil, err
	}
	behind := tailDead
	switch {
	case span.Newer:
		behind = tailMore
	case running, len(followed) > 0:
		behind = tailLive
	}
	emit(r.end(behind))
	return reader, nil
}

func (v *view) showTitle(ctx context.Context, meta chat.Meta) {
	v.title = meta.Title
	if meta.Title != "" {
		v.send(ctx, v.mapper.content(protocol.RoleSystem, protocol.MetadataContent{Type: "metadata", Title: meta.Title}))
	}
}

// replay shows a span. If that is where the chat ends, the view goes on behind it.
func (v *view) replay(ctx context.Context, span chat.Span) error {
	v.leaveChildren()
	m := v.s.newMapper(v.chatID)
	maps.Copy(m.turns, v.mapper.turns)
	m.told = v.mapper.told
	v.mu.Lock()
	for id := range v.turns {
		m.turns[id] = true
	}
	v.mu.Unlock()
	reader, err := replay(ctx, v.session, span, m, v.s.log, func(list []notification) { v.send(ctx, list) })
	if err != nil {
		return err
	}
	if !span.Newer {
		v.mapper = m
		if span.Returned > 0 {
			v.reader = reader
		}
	}
	for id, c := range v.mapper.calls {
		if c.running && c.sub != nil {
			v.showChild(ctx, id, *c.sub)
		}
	}
	return nil
}

// open shows a chat that the client opens, or a window of it (8.6).
func (v *view) open(ctx context.Context, span chat.Span) error {
	meta := v.session.Meta()
	v.s.notify(ctx, "chat/cleared", protocol.ChatCleared{ChatID: v.chatID, Messages: true})
	v.s.notify(ctx, "chat/opened", protocol.ChatOpened{ChatID: v.chatID, Title: meta.Title})
	if err := v.replay(ctx, span); err != nil {
		return err
	}
	v.showTitle(ctx, meta)
	v.showSelection(ctx, meta)
	if v.session.Running() {
		v.send(ctx, v.mapper.status("running"))
	}
	return nil
}

// showSelection tells what a chat uses.
func (v *view) showSelection(ctx context.Context, meta chat.Meta) {
	if sel := v.s.selection(meta); sel.Model != nil {
		v.s.notify(ctx, "config/updated", protocol.ConfigUpdated{ChatID: v.chatID, Chat: &protocol.ChatConfig{
			SelectModel: *sel.Model, Variants: &sel.Variants, SelectVariant: variantJSON(sel.Variant),
		}})
	}
	v.s.notify(ctx, "config/updated", protocol.ConfigUpdated{ChatID: v.chatID, Chat: &protocol.ChatConfig{
		SelectAgent: meta.Agent, SelectBehavior: meta.Agent, SelectTrust: &meta.Trust,
	}})
}

// selection describes what a chat uses (4.8). A model that is gone is null.
func (s *Server) selection(meta chat.Meta) protocol.Selection {
	out := protocol.Selection{Agent: s.host.Config().AgentOrDefault(meta.Agent), Variants: []string{}, Trust: meta.Trust}
	if meta.Variant != "" {
		out.Variant = &meta.Variant
	}
	if variants, ok := s.host.Variants(meta.Model); ok {
		out.Model, out.Variants = &meta.Model, variants
	}
	return out
}

func variantJSON(v *string) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	raw, _ := json.Marshal(*v)
	return raw
}
