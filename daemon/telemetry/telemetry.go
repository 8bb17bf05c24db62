// Package telemetry reports turns, requests to models and tool calls to an OpenTelemetry collector,
// following the semantic conventions for generative AI and for MCP.
//
// A turn is a span; its requests and tool calls are child spans, and the turn of a subagent is a
// child of the call that started it. Span ids are derived from the ids of the chat, the turn and
// the call. Text of users and models is exported only if the configuration enables content, and
// without credentials. Paths are never exported.
//
// Telemetry wraps models and tools, and reads the events of chats as they are stored. Its only
// state is the running turns. While it is not configured, it costs one atomic load per operation.
//
// Entry points: New, then Telemetry.Use.
package telemetry

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/otlp"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Options are the dependencies of Telemetry.
type Options struct {
	Client  *http.Client
	Version string // of eca
	Now     func() time.Time
	NewID   func() string
	Clean   func(string) string // removes credentials from exported content
	Changed func()              // called when Notice changes; must not block
	Log     *slog.Logger
}

// Telemetry exports traces and metrics of chats. It is safe for concurrent use.
type Telemetry struct {
	o        Options
	exporter *otlp.Exporter

	mu     sync.Mutex // guards the fields below
	turns  map[string]*turn
	failed map[string]string // by signal: why it cannot be sent
}

// service is the service name that collectors get, unless the user sets another.
const service = "eca"

// New returns Telemetry that exports nothing until Use. Close must be called.
func New(o Options) *Telemetry {
	t := &Telemetry{o: o, turns: map[string]*turn{}, failed: map[string]string{}}
	t.exporter = otlp.New(otlp.Options{
		Client: o.Client, Scope: otlp.Scope{Name: service, Version: o.Version}, Now: o.Now, Failed: t.report,
	})
	return t
}

// Parse reads the section otlp of the configuration.
func Parse(properties map[string]string, version string) (otlp.Config, []*otlp.PropertyError) {
	return otlp.Parse(properties, service, version)
}

// Use applies a configuration.
func (t *Telemetry) Use(c otlp.Config) { t.exporter.Use(c) }

// Close sends the remaining data, for up to a second.
func (t *Telemetry) Close() { t.exporter.Close() }

// report records that a signal cannot be sent, or that it can be sent again.
func (t *Telemetry) report(signal string, err error) {
	t.mu.Lock()
	if err != nil {
		t.o.Log.Warn("cannot export telemetry", "signal", signal, "err", err)
		t.failed[signal] = err.Error()
	} else {
		delete(t.failed, signal)
	}
	t.mu.Unlock()
	t.o.Changed()
}

// Notice returns why telemetry cannot be exported, or "".
func (t *Telemetry) Notice() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, signal := range []string{"traces", "metrics"} {
		if why := t.failed[signal]; why != "" {
			return "Telemetry (otlp): cannot export " + signal + ": " + why + ". Chats are not affected."
		}
	}
	return ""
}

// turn is a running turn.
type turn struct {
	id     string
	trace  otlp.TraceID
	parent otlp.SpanID // the call that started the subagent
	start  time.Time
	model  string
	agent  string
	usage  llm.Usage
	cost   float64
	priced bool
}

// span returns the id of a turn's span.
func (u *turn) span(chat string) otlp.SpanID { return spanID("turn", chat, u.id) }

func digest(kind, chat, id string) [sha256.Size]byte {
	return sha256.Sum256([]byte(kind + "\x00" + chat + "\x00" + id))
}

func spanID(kind, chat, id string) otlp.SpanID {
	sum := digest(kind, chat, id)
	return otlp.SpanID(sum[:len(otlp.SpanID{})])
}

func traceID(chat, id string) otlp.TraceID {
	sum := digest("trace", chat, id)
	return otlp.TraceID(sum[:len(otlp.TraceID{})])
}

// Log reads events of a chat, after they were stored. parent is the parent chat of a subagent's
// chat. The turn of a subagent has the id of the call that started it.
func (t *Telemetry) Log(chat, parent string, events []event.Event) {
	if _, ok := t.exporter.Config(); !ok {
		return
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.TurnStarted:
			t.startTurn(chat, parent, e, b)
		case event.UsageReported:
			t.addUsage(chat, b)
		case event.TurnFinished:
			t.endTurn(chat, e, b)
		default: // other events have no spans
		}
	}
}

// startTurn records the start of a turn.
func (t *Telemetry) startTurn(chat, parent string, e event.Event, b event.TurnStarted) {
	u := &turn{id: e.Turn, trace: traceID(chat, e.Turn), start: e.Time, model: b.Model, agent: b.Agent}
	t.mu.Lock()
	if parentTurn := t.turns[parent]; parent != "" && parentTurn != nil {
		u.trace, u.parent = parentTurn.trace, spanID("call", parent, e.Turn)
	}
	t.turns[chat] = u
	t.mu.Unlock()
	if parent == "" {
		t.exporter.Add(prompts(), 1, otlp.Attribute{Key: "full-model", Value: b.Model}, otlp.Attribute{Key: "agent", Value: b.Agent})
	}
}

// addUsage adds the usage of a response to its turn. The usage of a subagent is counted in the
// subagent's own chat, where it is reported too.
func (t *Telemetry) addUsage(chat string, b event.UsageReported) {
	if b.Purpose == "subagent" {
		return
	}
	t.mu.Lock()
	u := t.turns[chat]
	model := ""
	if u != nil {
		model = u.model
		u.usage.Input += b.InputTokens
		u.usage.Output += b.OutputTokens
		u.usage.CacheRead += b.CacheReadTokens
		u.usage.CacheWrite += b.CacheWriteTokens
		if b.Cost != nil {
			u.cost, u.priced = u.cost+*b.Cost, true
		}
	}
	t.mu.Unlock()
	if b.Cost != nil {
		t.exporter.Add(costs(), *b.Cost, modelAttributes(model)...)
	}
}

// endTurn exports the span of a turn.
func (t *Telemetry) endTurn(chat string, e event.Event, b event.TurnFinished) {
	t.mu.Lock()
	u := t.turns[chat]
	if u == nil || u.id != e.Turn {
		t.mu.Unlock()
		return // the turn began before telemetry was configured
	}
	delete(t.turns, chat)
	t.mu.Unlock()
	s := otlp.Span{
		Trace: u.trace, ID: u.span(chat), Parent: u.parent, Name: "invoke_agent " + u.agent, Kind: otlp.Internal, Start: u.start, End: e.Time,
	}
	s.Attributes = append(operation("invoke_agent", chat, u.agent), modelAttributes(u.model)...)
	s.Attributes = append(s.Attributes, usageAttributes(u.usage)...)
	s.Attributes = append(s.Attributes, otlp.Attribute{Key: "eca.turn.finish_reason", Value: string(b.Reason)})
	if u.priced {
		s.Attributes = append(s.Attributes, otlp.Attribute{Key: "eca.usage.cost", Value: u.cost})
	}
	if b.Reason == event.FinishedFailed {
		fail(&s, string(b.Reason))
	}
	t.exporter.Span(s)
}

// setParent makes a span a child of the chat's running turn. Without a running turn, the span gets its
// own trace.
func (t *Telemetry) setParent(s *otlp.Span, chat string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.turns[chat]; u != nil {
		s.Trace, s.Parent = u.trace, u.span(chat)
		return
	}
	s.Trace = traceID(chat, t.o.NewID())
}

// fail marks a span as failed. The kind of the error is its only description: messages may quote
// the conversation.
func fail(s *otlp.Span, kind string) {
	s.Failed = true
	s.Attributes = append(s.Attributes, otlp.Attribute{Key: "error.type", Value: kind})
}

// errorKind classifies an error for the attribute error.type.
func errorKind(err error) string {
	var typed *llm.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &typed):
		return string(typed.Kind)
	}
	return "_OTHER" // as the conventions require
}

// Model wraps a model so that each request is exported; id is its full name. A request with its
// retries counts as one.
func (t *Telemetry) Model(m llm.Model, id string) llm.Model { return model{m, id, t} }

type model struct {
	llm.Model
	id string
	t  *Telemetry
}

// Stream implements llm.Model.
func (m model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	c, ok := m.t.exporter.Config()
	if !ok {
		return m.Model.Stream(ctx, req)
	}
	return m.export(ctx, req, c.Content)
}

// export is Stream with telemetry. It is a function of its own because the closure moves req to the
// heap, which must cost nothing without telemetry.
func (m model) export(ctx context.Context, req llm.Request, content bool) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		a := answer{start: m.t.o.Now(), content: content}
		defer func() { m.t.exportAnswer(m.id, req, &a) }()
		for d, err := range m.Model.Stream(ctx, req) {
			a.add(d, err, m.t.o.Now)
			if !yield(d, err) {
				return
			}
		}
	}
}

// Tool wraps a tool so that each call that runs is exported.
func (t *Telemetry) Tool(inner tools.Tool) tools.Tool { return tool{inner, t} }

type tool struct {
	tools.Tool
	t *Telemetry
}

// Run implements tools.Tool.
func (w tool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	c, ok := w.t.exporter.Config()
	if !ok {
		return w.Tool.Run(ctx, call, out)
	}
	start := w.t.o.Now()
	res, err := w.Tool.Run(ctx, call, out)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	w.t.exportCall(w.Spec(), call, start, res, err, c.Content)
	return res, err
}
