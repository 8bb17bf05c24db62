package gateway

import (
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/e2a"
)

// mapper turns the events of a turn into frames (e2a.md 10). Its state is what later stages
// of a call repeat, and what the result sums up.
type mapper struct {
	a       *answer
	session *chat.Session   // whose turn it is
	replay  bool            // it is over: nothing is to be decided
	content strings.Builder // the answer's text
	calls   map[string]event.Tool
	started map[string]bool            // calls that were shown to run
	early   map[string][]shownQuestion // by call: of those that were not, yet
	usage   usage
}

func newMapper(a *answer) *mapper {
	return &mapper{a: a, calls: map[string]event.Tool{}, started: map[string]bool{}, early: map[string][]shownQuestion{}}
}

// custom shows something that has no kind of its own.
func (m *mapper) custom(kind string, delta map[string]any) error {
	return m.a.put(m.a.Chunk(e2a.DeltaCustom, delta, map[string]any{"event_type": kind}))
}

// show sends what an event says, if it says something.
func (m *mapper) show(e event.Event) error {
	switch b := e.Body.(type) {
	case event.TextDelta:
		m.content.WriteString(b.Text)
		return m.a.put(m.a.Chunk(e2a.DeltaText, b.Text, nil))
	case event.ReasoningDelta:
		return m.a.put(m.a.Chunk(e2a.DeltaReasoning, b.Text, map[string]any{"reasoning_id": b.ID}))
	case event.ToolProposed, event.ToolArgsDelta, event.ToolJudged, event.ToolStarted, event.ToolUpdated, event.ToolFinished, event.ToolRejected:
		return m.tool(b)
	case event.UsageReported:
		m.usage.add(b)
		return m.custom("usage", usageOf(b))
	case event.TurnStarted:
		return m.custom("turn_started", map[string]any{"model": b.Model, "agent": b.Agent, "variant": b.Variant, "trust": b.Trust})
	case event.TitleChanged:
		return m.custom("metadata", map[string]any{"title": b.Title})
	case event.Progress:
		return m.custom("progress", map[string]any{"text": b.Text})
	case event.Notice:
		return m.custom("notice", map[string]any{"text": b.Text})
	case event.Continued:
		return m.note(b.Text)
	case event.ImagesRefused:
		return m.note(b.Text)
	case event.Compacted:
		return m.custom("compacted", map[string]any{"auto": b.Auto})
	case event.TasksCleared:
		return m.custom("tasks", map[string]any{"tasks": []any{}})
	}
	return nil
}

func (m *mapper) note(text string) error {
	if text == "" {
		return nil
	}
	return m.custom("notice", map[string]any{"text": text})
}

// tool shows a stage of a call. Each chunk says which tool it is.
func (m *mapper) tool(body event.Body) error {
	switch b := body.(type) {
	case event.ToolProposed:
		m.calls[b.CallID] = b.Tool
		return m.stage("prepare", b.CallID, map[string]any{"summary": b.Summary})
	case event.ToolArgsDelta:
		return m.stage("prepare", b.CallID, map[string]any{"arguments_text": b.Text})
	case event.ToolJudged:
		m.calls[b.CallID] = b.Tool
		if b.Manual && !m.replay {
			m.a.g.pending.add(m, b.CallID)
		}
		return m.stage("run", b.CallID, map[string]any{
			"arguments": b.Arguments, "manual_approval": b.Manual, "summary": b.Summary, "details": details(b.Details),
			"permission": map[string]any{"verdict": b.Decision, "rule": b.Rule, "reason": b.Reason},
		})
	case event.ToolStarted:
		if err := m.stage("running", b.CallID, nil); err != nil {
			return err
		}
		return m.askEarly(b.CallID)
	case event.ToolUpdated:
		return m.stage("running", b.CallID, map[string]any{"details": details(b.Details)})
	case event.ToolFinished:
		outputs := []any{}
		for _, o := range b.Outputs {
			outputs = append(outputs, map[string]any{"type": "text", "text": o})
		}
		for _, i := range b.Images {
			outputs = append(outputs, map[string]any{"type": "image", "mime_type": i.MediaType, "data": i.Data})
		}
		return m.stage("called", b.CallID, map[string]any{"outputs": outputs, "error": b.Failed, "elapsed_ms": b.ElapsedMS, "details": details(b.Details)})
	case event.ToolRejected:
		return m.stage("rejected", b.CallID, map[string]any{"reason": string(b.Reason), "message": b.Message, "outputs": []any{}})
	}
	return nil
}

// stage sends a tool chunk: {phase, id, name, server, origin, manual_approval, outputs, ...}.
// What has nothing to say is left out, but for the two that callers look for.
func (m *mapper) stage(phase, id string, more map[string]any) error {
	t := m.calls[id]
	delta := map[string]any{
		"phase": phase, "id": id, "name": t.Name, "server": t.Server, "origin": t.Origin, "manual_approval": false, "outputs": []any{},
	}
	for key, v := range more {
		if v != nil && v != "" {
			delta[key] = v
		}
	}
	return m.a.put(m.a.Chunk(e2a.DeltaTool, delta, nil))
}

// details are shown as the log has them; nil is none.
func details(d *event.Details) any {
	if d == nil {
		return nil
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil
	}
	return json.RawMessage(raw)
}

// askEarly shows what a call asked before it was shown to run.
func (m *mapper) askEarly(callID string) error {
	m.started[callID] = true
	early := m.early[callID]
	delete(m.early, callID)
	for _, q := range early {
		if err := m.question(q); err != nil {
			return err
		}
	}
	return nil
}

// question shows what the model asks; chat.answer with its id answers. What a call asks comes
// behind its start, and so behind all that the model said before.
func (m *mapper) question(q shownQuestion) error {
	if q.CallID != "" && !m.started[q.CallID] {
		m.early[q.CallID] = append(m.early[q.CallID], q)
		return nil
	}
	options := make([]any, len(q.Options))
	for i, o := range q.Options {
		options[i] = map[string]any{"label": o.Label, "description": o.Description}
	}
	return m.custom("question", map[string]any{
		"question_id": q.id, "tool_call_id": q.CallID, "text": q.Text, "options": options, "freeform": q.Freeform,
	})
}

// usage sums up what a turn took.
type usage struct {
	input, output, cacheRead, cacheWrite int64
	cost                                 float64
	unpriced                             bool
}

func (u *usage) add(b event.UsageReported) {
	u.input += b.InputTokens
	u.output += b.OutputTokens
	u.cacheRead += b.CacheReadTokens
	u.cacheWrite += b.CacheWriteTokens
	if b.Cost == nil {
		u.unpriced = true
	} else {
		u.cost += *b.Cost
	}
}

func (u *usage) result() map[string]any {
	out := map[string]any{"input_tokens": u.input, "output_tokens": u.output, "cache_read_tokens": u.cacheRead, "cache_write_tokens": u.cacheWrite, "cost_usd": nil}
	if !u.unpriced {
		out["cost_usd"] = u.cost
	}
	return out
}

// usageOf shows what one request took, and how full the context is.
func usageOf(b event.UsageReported) map[string]any {
	out := map[string]any{
		"input_tokens": b.InputTokens, "output_tokens": b.OutputTokens, "cache_read_tokens": b.CacheReadTokens, "cache_write_tokens": b.CacheWriteTokens,
		"context_limit": b.ContextLimit, "output_limit": b.OutputLimit, "purpose": b.Purpose, "cost_usd": nil, "total_cost_usd": nil,
	}
	if b.Cost != nil {
		out["cost_usd"] = *b.Cost
	}
	if b.TotalCost != nil {
		out["total_cost_usd"] = *b.TotalCost
	}
	return out
}
