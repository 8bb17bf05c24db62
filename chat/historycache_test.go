package chat_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// listener is a model that keeps its last request and answers "Yes." It also resolves models and
// commands for the engine.
type listener struct{ heard atomic.Pointer[string] }

// Stream implements llm.Model.
func (l *listener) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var heard []string
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				if text, ok := p.(llm.Text); ok && m.Role == llm.User {
					heard = append(heard, strings.TrimLeft(text.Text, "."))
				}
			}
		}
		all := strings.Join(heard, " ")
		l.heard.Store(&all)
		if yield(llm.Delta{Kind: llm.TextDelta, Text: "Yes."}, nil) {
			yield(llm.Delta{Kind: llm.StopDelta, Stop: llm.StopEnd}, nil)
		}
	}
}

// Resolve implements chat.Models.
func (l *listener) Resolve(string, string) (chat.Model, error) {
	return chat.Model{ID: "p/m", Name: "m", Client: l}, nil
}

// Find implements chat.Commands.
func (*listener) Find(string) (chat.Command, bool) { return chat.Command{}, false }
func (*listener) ChangesBeyondChats(string) bool   { return false }

// newEngine returns an engine whose models are m.
func newEngine(t *testing.T, m interface {
	chat.Models
	chat.Commands
},
) *chat.Engine {
	t.Helper()
	dir := t.TempDir()
	events := store.New(dir)
	t.Cleanup(func() { _ = events.Close() })
	cfg := config.Load(config.Inputs{Getenv: func(string) string { return "" }, ConfigHome: dir}).Config
	cfg.Chat.Title, cfg.Prompts.Chat, cfg.Prompts.Environment = false, "Listen.", ""
	for name, agent := range cfg.Agents {
		agent.SystemPrompt, agent.Prompts.Chat = "", ""
		cfg.Agents[name] = agent
	}
	registry := tools.NewRegistry()
	var ids atomic.Int64
	e := chat.New(chat.Deps{
		Store: events, Models: m, ModelIDs: func() []string { return nil }, Contexts: contexts.Local{}, Commands: m,
		Current: func() chat.Snapshot {
			return chat.Snapshot{Config: cfg, Models: m, Tools: func() *tools.Registry { return registry }}
		},
		Now: time.Now, NewID: func() string { return fmt.Sprint(ids.Add(1)) }, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(e.Close)
	return e
}

// The engine keeps the histories of the most recently used idle chats in memory, up to a limit. Chats
// whose histories were evicted continue with the same messages.
func TestHistoriesAreLetGo(t *testing.T) {
	l := &listener{}
	e := newEngine(t, l)
	const long = 10_000
	e.SetMaxCachedHistories(4 * long)
	holds := func(id string) bool {
		t.Helper()
		s, _, err := e.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for { // until the session is idle
			state, err := s.HoldsHistory().Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if state[0] {
				return state[1]
			}
		}
	}
	say := func(id, text string, size int) {
		t.Helper()
		s, _, err := e.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		acc, err := s.Submit(chat.Prompt{Text: strings.Repeat(".", size) + text}).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-acc.Done
		if !holds(id) {
			t.Errorf("the history of %s, which was used last, is not in memory", id)
		}
	}
	say("a", "one", long)
	say("b", "two", long)
	say("a", "three", long)
	if !holds("b") {
		t.Error("b was evicted, although there is room for a and b")
	}
	say("b", "four", long)
	if holds("a") {
		t.Error("a is still in memory, although there is room only for b")
	}
	say("a", "five", 0)
	if got := *l.heard.Load(); got != "one three five" {
		t.Errorf("the model heard %q", got)
	}
	if holds("b") {
		t.Error("b is still in memory, although there is room only for a")
	}
	say("c", "six", 5*long) // exceeds the limit alone, but stays because it was used last
	say("b", "seven", 0)
	if got := *l.heard.Load(); got != "two four seven" {
		t.Errorf("the model heard %q", got)
	}
	if holds("a") || holds("c") {
		t.Error("a or c is still in memory, although there is room only for b")
	}
}
