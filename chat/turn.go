package chat

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Texts of a turn's progress (eca-protocol 7.3).
const (
	progressContexts   = "Parsing given context"
	progressWaiting    = "Waiting model"
	progressGenerating = "Generating"
	progressApproval   = "Waiting for tool call approval"
	progressCalling    = "Calling tool"
)

const noticeStopped = "\nPrompt stopped\n"

// unwindTime bounds how long a cancelled turn waits for its tools to return.
const unwindTime = 5 * time.Second

// turn answers one prompt. It runs as one goroutine, plus one for each tool call
// that is being executed.
type turn struct {
	s      *Session
	id     string
	prompt Prompt
	agent  string
	cfg    *config.Config
	model  Model
	tools  *tools.Registry
	policy tools.Policy
	roots  []string

	ctx    context.Context
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup // executing calls
	done   chan struct{}

	mu      sync.Mutex // guards what follows, and the order of emitted events
	history *history
	over    bool                     // the terminal event is out; nothing may follow
	phase   string                   // the last progress
	waiting map[string]chan Decision // announced calls that wait for the user
}

func (s *Session) newTurn(p Prompt) *turn {
	deps := s.eng.deps
	t := &turn{
		s: s, id: p.TurnID, prompt: p, cfg: deps.Config(), tools: deps.Tools(), policy: deps.Policy(), roots: deps.Roots(),
		done: make(chan struct{}), history: s.history, waiting: map[string]chan Decision{},
	}
	if t.id == "" {
		t.id = deps.NewID()
	}
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	meta := s.log.Meta()
	t.agent = p.Agent
	if t.agent == "" {
		t.agent = meta.Agent
	}
	t.agent = t.cfg.AgentOrDefault(t.agent)
	return t
}

// emit records events of the turn. After the terminal event nothing is recorded.
func (t *turn) emit(bodies ...event.Body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emitLocked(bodies...)
}

func (t *turn) emitLocked(bodies ...event.Body) {
	if t.over {
		return
	}
	for _, b := range bodies {
		t.history.add(b)
		switch b := b.(type) {
		case event.Progress:
			t.phase = b.Text
		case event.TurnFinished:
			t.over = true
		}
	}
	t.s.log.Append(t.id, bodies...)
}

// enter shows a progress unless it is shown already.
func (t *turn) enter(phase string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != phase {
		t.emitLocked(event.Progress{Text: phase})
	}
}

// start shows the prompt and begins to answer it. It does not wait for a model.
func (t *turn) start() Accepted {
	meta := t.s.log.Meta()
	name := t.prompt.Model
	if name == "" {
		name = meta.Model
	}
	if name == "" {
		name = t.cfg.Agents[t.agent].DefaultModel
	}
	model, err := t.s.eng.deps.Models.Resolve(name, meta.Model)
	if err != nil && t.prompt.Model == "" && name != "" {
		// The chat's last model is gone; a default is better than nothing.
		model, err = t.s.eng.deps.Models.Resolve("", "")
	}
	t.model = model
	variant := t.prompt.Variant
	if variant == "" {
		variant = t.cfg.Agents[t.agent].Variant
	}
	t.s.log.SetMeta(func(m *Meta) {
		m.Agent, m.Variant = t.agent, variant
		if err == nil {
			m.Model = model.ID
		}
		if t.prompt.Trust != nil {
			m.Trust = *t.prompt.Trust
		}
		meta = *m
	})
	if len(t.prompt.Contexts) > 0 {
		t.emit(event.Progress{Text: progressContexts})
	}
	msg := event.UserMessage{ContentID: t.s.eng.deps.NewID(), Text: strings.TrimSpace(t.prompt.Text)}
	blocks, problems := t.s.eng.deps.Contexts.Resolve(t.ctx, t.roots, t.prompt.Contexts)
	for _, b := range blocks {
		msg.Context = append(msg.Context, event.Block(b))
	}
	bodies := []event.Body{msg, event.TurnStarted{Model: meta.Model, Agent: t.agent, Variant: variant, Trust: meta.Trust}}
	if len(problems) > 0 {
		bodies = append(bodies, event.Notice{Text: "Left out of the context: " + strings.Join(problems, "; ") + "\n\n"})
	}
	if err != nil {
		t.emit(bodies...)
		t.finish(fmt.Errorf("Error: %w", err)) //nolint:staticcheck // shown as it is
		t.cancel(nil)
		close(t.done)
		return Accepted{TurnID: t.id, Failed: true}
	}
	t.emit(append(bodies, event.Progress{Text: progressWaiting})...)
	t.title()
	go t.run()
	return Accepted{TurnID: t.id, Model: model.ID}
}

// run answers the prompt and ends the turn, whatever happens.
func (t *turn) run() {
	defer close(t.done)
	var err error
	defer func() {
		if p := recover(); p != nil {
			t.s.eng.deps.Log.Error("turn panicked", "chat", t.s.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
		}
		t.finish(err)
		t.cancel(nil)
		t.unwind()
	}()
	err = t.answer()
}

// errRejected ends a turn in which the user refused a call.
var errRejected = errors.New("tool call rejected")

// answer is the loop of a turn: ask the model, run its calls, ask again.
func (t *turn) answer() error {
	for {
		calls, stop, err := t.request()
		if err != nil {
			return err
		}
		if len(calls) == 0 {
			switch stop {
			case llm.StopLength:
				t.emit(event.Notice{Text: "\n\nThe answer reached the model's output limit and is cut here.\n"})
			case llm.StopRefusal:
				t.emit(event.Notice{Text: "\n\nThe model refused to go on.\n"})
			}
			return nil
		}
		if err := t.runCalls(calls); err != nil {
			return err
		}
	}
}

// finish emits the terminal event. err is nil, a cause of cancellation, errRejected,
// or a failure that the user is told.
func (t *turn) finish(err error) {
	if t.ctx.Err() != nil {
		err = context.Cause(t.ctx)
	}
	end := event.TurnFinished{Reason: event.FinishedDone}
	var notice event.Body
	switch {
	case err == nil:
	case errors.Is(err, errRejected):
		end.Reason = event.FinishedRejected
		notice = event.Notice{Text: "Tell ECA what to do differently for the rejected tool(s)"}
	case errors.Is(err, errStopped):
		end.Reason = event.FinishedStopped
		notice = event.Notice{Text: noticeStopped}
	case errors.Is(err, errSuperseded):
		end.Reason = event.FinishedSuperseded
	case errors.Is(err, errShutdown), errors.Is(err, context.Canceled):
		end.Reason = event.FinishedInterrupted
	default:
		end.Reason, end.Err = event.FinishedFailed, err.Error()
		notice = event.Notice{Text: "\n\n" + err.Error()}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var bodies []event.Body
	if notice != nil {
		bodies = append(bodies, notice)
	}
	reason := event.Interrupted
	if end.Reason == event.FinishedStopped || end.Reason == event.FinishedSuperseded {
		reason = event.RejectedByStop
	}
	for _, id := range t.history.openCalls() {
		bodies = append(bodies, event.ToolRejected{CallID: id, Reason: reason})
	}
	t.emitLocked(append(bodies, end)...)
}

// unwind waits until the calls that were cancelled have returned.
func (t *turn) unwind() {
	returned := make(chan struct{})
	go func() {
		t.calls.Wait()
		close(returned)
	}()
	timer := time.NewTimer(unwindTime)
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		t.s.eng.deps.Log.Warn("a cancelled tool call does not return", "chat", t.s.id)
	}
}

// decide passes a decision to the call that waits for it.
func (t *turn) decide(callID string, d Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ch, ok := t.waiting[callID]; ok {
		delete(t.waiting, callID)
		ch <- d // has room for the one decision it gets
	}
}

// request asks the model once and streams its answer into the log.
func (t *turn) request() (calls []call, stop llm.StopReason, err error) {
	req := t.build()
	a := answer{t: t, reasoning: map[string]string{}, started: map[string]time.Time{}}
	for d, err := range t.model.Client.Stream(t.ctx, req) {
		if err != nil {
			a.endReasoning()
			return nil, "", err
		}
		a.delta(d)
	}
	a.endReasoning()
	if t.ctx.Err() != nil {
		return nil, "", context.Cause(t.ctx)
	}
	if a.stop == "" {
		return nil, "", &llm.Error{Kind: llm.ErrPrematureStop, Message: "the model's answer ended without saying why"}
	}
	t.emit(t.usage(req, a))
	return a.calls, a.stop, nil
}

// build makes the request from the history.
func (t *turn) build() llm.Request {
	agent := t.cfg.Agents[t.agent]
	system := agent.SystemPrompt
	for _, p := range []string{agent.Prompts.Chat, t.cfg.Prompts.Chat} {
		if system == "" {
			system = p
		}
	}
	t.mu.Lock()
	messages := t.history.messages()
	t.mu.Unlock()
	req := llm.Request{
		Purpose:   llm.PurposeTurn,
		Model:     t.model.Name,
		System:    system + "\n\n" + environment(t.roots),
		Messages:  messages,
		MaxOutput: t.model.Limit.Output,
		Reasoning: t.model.Reasoning,
		CacheKey:  t.s.id,
		Headers:   t.model.Headers,
		Extra:     t.extra(),
	}
	for _, tool := range t.tools.All() {
		if !t.policy.Hidden(t.agent, tool.Spec()) {
			req.Tools = append(req.Tools, fullSpec(tool, t.cfg.Prompts.Tools))
		}
	}
	return req
}

// extra is the model's extra payload with the chosen variant over it.
func (t *turn) extra() map[string]any {
	out := map[string]any{}
	for k, v := range t.model.Extra {
		out[k] = v
	}
	for k, v := range t.model.Variants[t.s.log.Meta().Variant] {
		out[k] = v
	}
	return out
}

// environment tells the model where it is. It should change as seldom as possible: the
// provider's prompt cache is lost when it does, as when a chat goes on in another folder.
func environment(roots []string) string {
	var b strings.Builder
	b.WriteString("## Workspace folders\n")
	for _, r := range roots {
		b.WriteString("- " + r + "\n")
	}
	if len(roots) == 0 {
		b.WriteString("(none)\n")
	}
	b.WriteString("\nPaths in tool calls are absolute.")
	return b.String()
}

// answer collects one response of the model.
type answer struct {
	t         *turn
	any       bool
	reasoning map[string]string    // the provider's id -> ours
	started   map[string]time.Time // by our id
	calls     []call
	usage     llm.Usage
	stop      llm.StopReason
	output    int // bytes of text, for an estimate if the provider reports no usage
}

// call is one tool call of the model.
type call struct {
	event.Tool
	providerID string
	arguments  string
	ended      bool // the arguments are complete
}

// delta records one delta.
func (a *answer) delta(d llm.Delta) {
	t := a.t
	if !a.any && d.Kind != llm.RetryDelta && d.Kind != llm.UsageDelta && d.Kind != llm.StopDelta {
		a.any = true
		t.enter(progressGenerating)
	}
	a.output += len(d.Text)
	switch d.Kind {
	case llm.TextDelta:
		t.emit(event.TextDelta{Text: d.Text})
	case llm.ReasoningStart:
		a.startReasoning(d.ID)
	case llm.ReasoningDelta:
		if _, ok := a.reasoning[d.ID]; !ok {
			a.startReasoning(d.ID)
		}
		t.emit(event.ReasoningDelta{ID: a.reasoning[d.ID], Text: d.Text})
	case llm.ReasoningEnd:
		if _, ok := a.reasoning[d.ID]; !ok {
			a.startReasoning(d.ID)
		}
		id := a.reasoning[d.ID]
		delete(a.reasoning, d.ID)
		t.emit(event.ReasoningFinished{ID: id, ElapsedMS: t.since(a.started[id]), API: d.API, Opaque: d.Opaque})
	case llm.ToolStart:
		a.proposeCall(d)
	case llm.ToolArgs:
		if c := a.call(d.ID); c != nil {
			t.emit(event.ToolArgsDelta{CallID: c.CallID, Text: d.Text})
		}
	case llm.ToolEnd:
		if c := a.call(d.ID); c != nil {
			c.arguments, c.ended = d.Text, true
		}
	case llm.UsageDelta:
		a.usage = d.Usage
	case llm.StopDelta:
		a.stop = d.Stop
	case llm.RetryDelta:
		t.emit(event.Progress{Text: retryText(d)})
	}
}

func (a *answer) startReasoning(providerID string) {
	// Providers number their blocks anew in each response; clients key on the id.
	id := a.t.s.eng.deps.NewID()
	a.reasoning[providerID] = id
	a.started[id] = a.t.s.eng.deps.Now()
	a.t.emit(event.ReasoningStarted{ID: id})
}

func (a *answer) endReasoning() {
	for _, id := range a.reasoning {
		a.t.emit(event.ReasoningFinished{ID: id, ElapsedMS: a.t.since(a.started[id])})
	}
	clear(a.reasoning)
}

func (a *answer) proposeCall(d llm.Delta) {
	t := a.t
	c := call{providerID: d.ID}
	summary := ""
	if tool, ok := t.tools.Lookup(d.Name); ok && !t.policy.Hidden(t.agent, tool.Spec()) {
		spec := tool.Spec()
		c.Tool = event.Tool{Name: spec.Name, Server: spec.Server, Origin: spec.Origin}
		summary = spec.Preparing
	} else {
		c.Tool = event.Tool{Name: d.Name, Server: "unknown", Origin: "unknown"}
	}
	t.mu.Lock()
	c.CallID = t.history.uniqueID(d.ID, t.s.eng.deps.NewID)
	t.emitLocked(event.ToolProposed{Tool: c.Tool, Summary: summary})
	t.mu.Unlock()
	a.calls = append(a.calls, c)
}

// call returns the call a delta belongs to: a provider may use an id again once the
// call is complete.
func (a *answer) call(providerID string) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].providerID == providerID && !a.calls[i].ended {
			return &a.calls[i]
		}
	}
	return nil
}

func (t *turn) since(start time.Time) int64 {
	return t.s.eng.deps.Now().Sub(start).Milliseconds()
}

func retryText(d llm.Delta) string {
	what := "The provider failed"
	switch d.Err.Kind {
	case llm.ErrRateLimited:
		what = "Rate limited"
	case llm.ErrOverloaded:
		what = "Provider overloaded"
	case llm.ErrNetwork, llm.ErrPrematureStop:
		what = "Connection lost"
	case llm.ErrTimeout:
		what = "No answer in time"
	}
	return fmt.Sprintf("⏳ %s. Retrying in %s (attempt %d/%d)", what, d.Retry.Delay.Round(time.Second/10), d.Retry.Attempt, d.Retry.Max)
}
