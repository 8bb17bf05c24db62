package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/chat/undo"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Replayed says how far a chat was run again.
type Replayed struct {
	Turns, Requests, Tools int
	Left                   string // why the rest could not be; empty: all of it was
}

// Replay runs a recorded chat again: the engine is given its prompts, and the answers of
// models and tools from the record. No model is called, no tool runs, nothing of the user's
// is changed. An error is the first difference between what the engine asks and what is on
// record, or says why nothing could be replayed. System prompts, descriptions of tools and
// titles are taken as they are.
func Replay(ctx context.Context, chain *journal.Chain, chatID string) (Replayed, error) {
	record, err := chain.Conversation(chatID)
	if err != nil {
		return Replayed{}, err
	}
	if len(record.Turns) == 0 {
		return Replayed{}, fmt.Errorf("nothing of the chat %s can be replayed: %s", chatID, record.Left)
	}
	dir, err := os.MkdirTemp("", "esrp-replay-")
	if err != nil {
		return Replayed{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := &replaying{record: record}
	engine, done := p.engine(dir)
	defer done()
	s, _, err := engine.Open(ctx, "replay")
	if err != nil {
		return Replayed{}, err
	}
	for n, turn := range record.Turns {
		p.begin(turn)
		accepted, err := s.Submit(chat.Prompt{Text: turn.Prompt, Model: turn.Model, Agent: turn.Agent}).Wait(ctx)
		if err != nil {
			return Replayed{}, err
		}
		select {
		case <-accepted.Done:
		case <-ctx.Done():
			return Replayed{}, context.Cause(ctx)
		}
		if err := p.end(); err != nil {
			return Replayed{}, fmt.Errorf("turn %d: %w", n+1, err)
		}
	}
	return Replayed{len(record.Turns), p.requests, p.tools, record.Left}, nil
}

// replaying plays what is on record to an engine.
type replaying struct {
	record journal.Conversation

	mu       sync.Mutex // guards what follows
	turn     journal.Turn
	asked    int // requests of the turn
	requests int
	tools    int
	err      error // the first difference
}

func (p *replaying) begin(t journal.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn, p.asked = t, 0
}

// end says what was different in the turn.
func (p *replaying) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && p.asked < len(p.turn.Requests) {
		p.err = fmt.Errorf("the engine made %d requests, and %d are on record: line %d is the first that is missing", p.asked, len(p.turn.Requests), p.turn.Requests[p.asked].Seq)
	}
	return p.err
}

// differs notes the first difference.
func (p *replaying) differs(format string, args ...any) error {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	return p.err
}

func (p *replaying) engine(dir string) (*chat.Engine, func()) {
	cfg := config.Load(config.Inputs{Getenv: func(string) string { return "" }, ConfigHome: dir}).Config
	cfg.Chat.Title, cfg.AutoCompactPercentage = false, 0
	for name, agent := range cfg.Agents {
		agent.AutoCompactPercentage = nil
		cfg.Agents[name] = agent
	}
	kept, events := artifact.New(dir+"/artifacts", artifact.Options{}), store.New(dir)
	var list []tools.Tool
	for _, spec := range p.record.Tools {
		list = append(list, playedTool{p, spec})
	}
	registry := tools.NewRegistry(list...)
	e := chat.New(chat.Deps{
		Store: events, Models: p, ModelIDs: func() []string { return nil }, Contexts: playedContexts{p},
		Tools: func() *tools.Registry { return registry }, Policy: func() tools.Policy { return playedPolicy{} },
		Files: undo.New(func() *artifact.Store { return kept }), Commands: noCommands{},
		Config: func() *config.Config { return cfg }, Roots: func() []string { return nil },
		Now: time.Now, NewID: uuid.NewString, Log: slog.New(slog.DiscardHandler),
	})
	return e, func() {
		e.Close()
		_ = events.Close()
	}
}

// Resolve implements chat.Models.
func (p *replaying) Resolve(name, _ string) (chat.Model, error) {
	m := chat.Model{ID: name, Name: name, Client: playedModel{p}}
	if p.record.Reasoning {
		m.Reads = func(string) bool { return true }
	}
	return m, nil
}

// playedContexts has what a prompt pointed at, as it was sent.
type playedContexts struct{ p *replaying }

// Resolve implements contexts.Source.
func (c playedContexts) Resolve(context.Context, contexts.Query) ([]contexts.Block, []string) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	var out []contexts.Block
	for _, b := range c.p.turn.Contexts {
		out = append(out, contexts.Block{Label: b.Label, Text: b.Text, MediaType: b.Image.MediaType, Data: b.Image.Data})
	}
	return out, nil
}

type playedModel struct{ p *replaying }

// Stream implements llm.Model.
func (m playedModel) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		answer, err := m.p.answer(req)
		if err != nil {
			yield(llm.Delta{}, &llm.Error{Kind: llm.ErrBadRequest, Message: err.Error()})
			return
		}
		for _, d := range answer {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// answer compares a request with the next one on record and returns its answer.
func (p *replaying) answer(req llm.Request) ([]llm.Delta, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked >= len(p.turn.Requests) {
		return nil, p.differs("the engine makes a request that is not on record, after %d others", p.asked)
	}
	on := p.turn.Requests[p.asked]
	p.asked++
	if at, want, got := on.Compare(req.Messages); at >= 0 {
		return nil, p.differs("request %d, line %d of the journal, message %d:\non record: %s\nreplayed:  %s", p.asked, on.Seq, at+1, want, got)
	}
	p.requests++
	return on.Answer, nil
}

// playedTool has the results that are on record.
type playedTool struct {
	p    *replaying
	spec llm.ToolSpec
}

// Spec implements tools.Tool.
func (t playedTool) Spec() tools.Spec {
	server, name, found := strings.Cut(t.spec.Name, "__")
	if !found {
		server, name = tools.Native, t.spec.Name
	}
	origin := "mcp"
	if server == tools.Native {
		origin = "native"
	}
	return tools.Spec{Server: server, Name: name, Origin: origin, Description: t.spec.Description, Schema: t.spec.Schema}
}

// Plan implements tools.Tool.
func (t playedTool) Plan(context.Context, tools.Call) (tools.Plan, error) { return tools.Plan{}, nil }

// Run implements tools.Tool.
func (t playedTool) Run(_ context.Context, call tools.Call, _ tools.Sink) (tools.Result, error) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	on, ok := t.p.turn.Call(t.spec.Name, call.Arguments)
	if !ok {
		return tools.Result{}, t.p.differs("the engine calls %s with %s, which is not on record", t.spec.Name, shortened(call.Arguments))
	}
	t.p.tools++
	return on, nil
}

func shortened(data json.RawMessage) string {
	const shown = 300
	if len(data) > shown {
		return strings.ToValidUTF8(string(data[:shown]), "") + "..."
	}
	return string(data)
}

type playedPolicy struct{}

// Judge implements tools.Policy.
func (playedPolicy) Judge(tools.Call, tools.Spec, tools.Plan) tools.Verdict {
	return tools.Verdict{Decision: tools.Allow, Rule: "replay", Reason: "its result is on record"}
}

// Remember implements tools.Policy.
func (playedPolicy) Remember(tools.Call, tools.Spec, tools.Plan, tools.Scope) error {
	return errors.New("a replay remembers nothing")
}

// Hidden implements tools.Policy.
func (playedPolicy) Hidden(string, tools.Spec) bool { return false }

type noCommands struct{}

// Find implements chat.Commands.
func (noCommands) Find(string) (chat.Command, bool) { return chat.Command{}, false }
