package daemon

import (
	"cmp"
	"context"
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
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/chat/undo"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Replayed reports how much of a chat was replayed.
type Replayed struct {
	Turns, Requests, Tools int
	NotReplayed            string // why the rest was not replayed; empty if all of it was
}

// Difference is the first difference between a recorded chat and its replay.
type Difference struct{ What string }

func (d *Difference) Error() string { return d.What }

// Replay runs a recorded chat again: the engine gets the recorded prompts, and the recorded answers
// of models and tools. It calls no model, runs no tool, and changes none of the user's files. The
// error is a *Difference if the engine sends other requests than the recorded ones; other errors
// mean that nothing could be replayed. It does not compare system prompts, descriptions of tools,
// titles, decisions about calls, and the moments at which the conversation was compacted: these are
// taken from the record.
func Replay(ctx context.Context, chain *journal.Chain, chatID string) (Replayed, error) {
	record, err := chain.Conversation(chatID)
	if err != nil {
		return Replayed{}, err
	}
	if len(record.Turns) == 0 {
		return Replayed{}, fmt.Errorf("nothing of the chat %s can be replayed: %s", chatID, cmp.Or(record.NotReplayable, "it has no turns"))
	}
	dir, err := os.MkdirTemp("", "esrp-replay-")
	if err != nil {
		return Replayed{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := &replayer{record: record}
	engine, done := p.engine(dir)
	defer done()
	s, _, err := engine.Open(ctx, "replay")
	if err != nil {
		return Replayed{}, err
	}
	p.session = s
	return p.run(ctx, s.Events)
}

// run submits the recorded prompts to the engine. events returns the events of the session, which
// show the calls that wait for the user.
func (p *replayer) run(ctx context.Context, events func(context.Context, event.Seq) iter.Seq2[event.Event, error]) (Replayed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var deciding sync.WaitGroup
	defer deciding.Wait()
	defer cancel(nil)
	from := p.session.Next() // before the first prompt, so that no question is missed
	deciding.Go(func() {
		if err := p.rejectCalls(events(ctx, from)); err != nil { // waiting calls would wait forever
			cancel(fmt.Errorf("cannot read the engine's events: %w", err))
		}
	})
	for n, turn := range p.record.Turns {
		p.beginTurn(turn)
		accepted, err := p.session.Submit(chat.Prompt{Text: turn.Prompt, Model: turn.Model, Agent: turn.Agent, MayBeEmpty: true}).Wait(ctx)
		if err == nil {
			select {
			case <-accepted.Done:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return Replayed{}, context.Cause(ctx)
		}
		if err != nil {
			return Replayed{}, err
		}
		if err := p.endTurn(); err != nil {
			return Replayed{}, &Difference{fmt.Sprintf("turn %d: %v", n+1, err)}
		}
	}
	return Replayed{len(p.record.Turns), p.requests, p.tools, p.record.NotReplayable}, nil
}

// replayer plays a recorded chat to an engine.
type replayer struct {
	record  journal.Conversation
	session *chat.Session

	mu           sync.Mutex // guards the fields below
	turn         journal.Turn
	turnRequests int                            // requests of the turn
	calls        map[string]journal.ToolOutcome // of the turn, by id
	requests     int
	tools        int
	compactions  int   // how often a full context was reported
	err          error // the first difference
}

func (p *replayer) beginTurn(t journal.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn, p.turnRequests, p.calls = t, 0, map[string]journal.ToolOutcome{}
}

// rejectCalls rejects the calls that the user rejected, until there are no more events.
func (p *replayer) rejectCalls(events iter.Seq2[event.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if b, ok := e.Body.(event.ToolJudged); ok && b.Manual {
			p.session.Decide(b.CallID, chat.Decision{GoOn: p.outcome(b.CallID).GoOn})
		}
	}
	return nil
}

func (p *replayer) outcome(id string) journal.ToolOutcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// endTurn returns the first difference in the turn.
func (p *replayer) endTurn() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && p.turnRequests < len(p.turn.Requests) {
		p.err = fmt.Errorf("the engine made %d requests, and %d are on record; the first missing one is line %d", p.turnRequests, len(p.turn.Requests), p.turn.Requests[p.turnRequests].Seq)
	}
	return p.err
}

// recordDifference records the first difference and returns it.
func (p *replayer) recordDifference(format string, args ...any) error {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	return p.err
}

func (p *replayer) engine(dir string) (*chat.Engine, func()) {
	cfg := config.Load(config.Inputs{Getenv: func(string) string { return "" }, ConfigHome: dir}).Config
	const percentage = 90 // the usage that playedModel reports decides whether it is reached
	cfg.Chat.Title, cfg.AutoCompactPercentage = false, percentage
	for name, agent := range cfg.Agents {
		agent.AutoCompactPercentage = nil
		cfg.Agents[name] = agent
	}
	artifacts, events := artifact.New(dir+"/artifacts", artifact.Options{}), store.New(dir)
	var list []tools.Tool
	for _, spec := range p.record.Tools {
		list = append(list, playedTool{p, spec})
	}
	registry := tools.NewRegistry(list...)
	e := chat.New(chat.Deps{
		Store: events, Models: p, ModelIDs: func() []string { return nil }, Contexts: playedContexts{p}, Commands: playedCommands{p},
		Files: undo.New(undo.Options{Artifacts: func() *artifact.Store { return artifacts }}),
		Current: func() chat.Snapshot {
			return chat.Snapshot{Config: p.config(cfg), Models: p, Policy: playedPolicy{p}, Tools: func() *tools.Registry { return registry }}
		},
		Now: time.Now, NewID: uuid.NewString, Log: slog.New(slog.DiscardHandler),
	})
	return e, func() {
		e.Close()
		_ = events.Close()
	}
}

// config returns the configuration for the turn.
func (p *replayer) config(base *config.Config) *config.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	cfg := *base
	cfg.Compact.Model = p.turn.SummaryModel
	return &cfg
}

// Resolve implements chat.Models.
func (p *replayer) Resolve(name, _ string) (chat.Model, error) {
	m := chat.Model{ID: name, Name: name, Client: playedModel{p}}
	p.mu.Lock()
	m.Retry.MaxContinues = p.turn.Continues
	for _, a := range p.turn.Requests {
		if a.Model == name {
			m.Limit.Context = a.Context
		}
	}
	p.mu.Unlock()
	if p.record.Reasoning {
		m.ReadsReasoning = func(string) bool { return true }
	}
	return m, nil
}

// playedContexts supplies the recorded contexts of a prompt.
type playedContexts struct{ p *replayer }

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

type playedModel struct{ p *replayer }

// Stream implements llm.Model.
func (m playedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		answer, usedTokens, err := m.p.answer(req)
		if err == nil && answer.Steering != "" {
			m.p.session.Steer(answer.Steering)
			// Changes run in order, so the steering message has been taken when this one is done.
			_, err = m.p.session.Change(func(*chat.Meta) {}).Wait(ctx)
		}
		if err != nil {
			yield(llm.Delta{}, &llm.Error{Kind: llm.ErrBadRequest, Message: err.Error()})
			return
		}
		for _, d := range answer.Answer {
			if d.Kind == llm.UsageDelta {
				continue
			}
			if d.Kind == llm.StopDelta && !yield(llm.Delta{Kind: llm.UsageDelta, Usage: llm.Usage{Input: usedTokens}}, nil) {
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if answer.Failure != nil {
			yield(llm.Delta{}, failure(answer))
		}
	}
}

// failure returns the error of a recorded answer, in a form that makes the engine continue or end
// the turn as it did then.
func failure(recorded *journal.RecordedRequest) *llm.Error {
	if recorded.Continued {
		return recorded.Failure
	}
	return &llm.Error{Kind: llm.ErrBadRequest, Message: recorded.Failure.Message}
}

// answer compares a request with the next recorded one and returns the recorded one with its
// answer. usedTokens is the number of tokens to report: 1, or, if the conversation was compacted at this
// point, so many that it is compacted again.
func (p *replayer) answer(req llm.Request) (recorded *journal.RecordedRequest, usedTokens int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turnRequests >= len(p.turn.Requests) {
		return nil, 0, p.recordDifference("the engine makes a request that is not on record, after %d others", p.turnRequests)
	}
	recorded = p.turn.Requests[p.turnRequests]
	p.turnRequests++
	if summary := req.Purpose == llm.PurposeCompact; summary != recorded.Summary {
		return nil, 0, p.recordDifference("request %d, line %d of the journal: on record is one for %s, replayed one for %s", p.turnRequests, recorded.Seq, purpose(recorded.Summary), purpose(summary))
	}
	if at, want, got := recorded.Compare(req.Messages); at >= 0 {
		return nil, 0, p.recordDifference("request %d, line %d of the journal, message %d:\non record: %s\nreplayed:  %s", p.turnRequests, recorded.Seq, at+1, want, got)
	}
	p.requests++
	if usedTokens = 1; recorded.Compacted {
		const full = 1 << 40
		p.compactions++
		usedTokens = full * int64(p.compactions)
	}
	return recorded, usedTokens, nil
}

func purpose(summary bool) llm.Purpose {
	if summary {
		return llm.PurposeCompact
	}
	return llm.PurposeTurn
}

// playedTool returns recorded results.
type playedTool struct {
	p    *replayer
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

// Plan implements tools.Tool: it finds the recorded outcome of the call.
func (t playedTool) Plan(_ context.Context, call tools.Call) (tools.Plan, error) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	outcome, ok := t.p.turn.Take(call.ID, t.spec.Name, call.Arguments)
	if !ok {
		return tools.Plan{}, t.p.recordDifference("the engine calls %s with %s, which is not on record", t.spec.Name, shorten.Bytes(string(call.Arguments), 300))
	}
	t.p.calls[call.ID] = outcome
	t.p.tools++
	if outcome.Rejection == journal.RefusedInvalid {
		return tools.Plan{}, errors.New(strings.Join(outcome.Result.Outputs, "\n"))
	}
	return tools.Plan{}, nil
}

// Run implements tools.Tool.
func (t playedTool) Run(_ context.Context, call tools.Call, _ tools.Sink) (tools.Result, error) {
	return t.p.outcome(call.ID).Result, nil
}

// playedPolicy repeats the recorded decisions of the configuration and the user.
type playedPolicy struct{ p *replayer }

// Judge implements tools.Policy.
func (p playedPolicy) Judge(call tools.Call, _ tools.Spec, _ tools.Plan) tools.Verdict {
	v := tools.Verdict{Decision: tools.Allow, Rule: "replay", Reason: "it is on record"}
	switch p.p.outcome(call.ID).Rejection {
	case event.RejectedByUser:
		v.Decision = tools.Ask
	case event.RejectedByConfig:
		v.Decision = tools.Deny
	}
	return v
}

// Remember implements tools.Policy.
func (playedPolicy) Remember(tools.Call, tools.Spec, tools.Plan, tools.Scope) error {
	return errors.New("a replay remembers nothing")
}

// HiddenBy implements tools.Policy.
func (playedPolicy) HiddenBy(string, tools.Spec) string { return "" }

// playedCommands has the one command that affects a conversation: compaction.
type playedCommands struct{ p *replayer }

// Find implements chat.Commands.
func (c playedCommands) Find(string) (chat.Command, bool) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return chat.Command{}, c.p.turn.Compact
}

// ChangesBeyondChats implements chat.Commands.
func (playedCommands) ChangesBeyondChats(string) bool { return false }
