package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// answering is a model that gives the answer to which next points.
type answering struct{ next *[]llm.Delta }

func (a answering) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for _, d := range *a.next {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// recordChat records a turn with one tool call. result is the result that the second request contains,
// and stop stops the first answer.
func recordChat(t *testing.T, result string, stop bool) *journal.Chain {
	t.Helper()
	state := t.TempDir()
	j := journal.New(state, journal.Options{})
	var next []llm.Delta
	m := j.Model(answering{&next}, "p/m")
	call := llm.ToolCall{ID: "c1", Name: "eca__look", Arguments: json.RawMessage(`{"at":"x"}`)}
	ask := func(answer []llm.Delta, messages ...llm.Message) {
		next = answer
		for _, err := range m.Stream(context.Background(), llm.Request{
			Purpose: llm.PurposeTurn, Model: "m", Messages: messages, Origin: llm.Origin{Chat: "c", Turn: "t", Agent: "code"},
			Tools: []llm.ToolSpec{{Name: "eca__look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)}},
		}) {
			if err != nil {
				t.Fatal(err)
			}
			if stop {
				break
			}
		}
	}
	prompt := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "look"}}}
	ask([]llm.Delta{
		{Kind: llm.ToolStart, ID: call.ID, Name: call.Name}, {Kind: llm.ToolEnd, ID: call.ID, Text: string(call.Arguments)}, {Kind: llm.StopDelta, Stop: llm.StopToolCalls},
	}, prompt)
	tool := tools.Definition[struct {
		At string `json:"at"`
	}]{
		Name: "look", Description: "Looks.",
		Run: func(context.Context, tools.Call, struct {
			At string `json:"at"`
		}, tools.Sink,
		) (tools.Result, error) {
			return tools.Text("nothing there"), nil
		},
	}.Build()
	if _, err := j.Tool(tool).Run(context.Background(), tools.Call{ID: "c1", ChatID: "c", Arguments: call.Arguments}, nil); err != nil {
		t.Fatal(err)
	}
	ask([]llm.Delta{{Kind: llm.TextDelta, Text: "I looked."}, {Kind: llm.StopDelta, Stop: llm.StopEnd}},
		prompt, llm.Message{Role: llm.Assistant, Parts: []llm.Part{call}},
		llm.Message{Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "c1", Text: result}}})
	j.Close()
	chain := journal.At(state)
	t.Cleanup(chain.Close)
	return chain
}

// A replay reports a request that differs from the recorded one, and a turn that cannot be repeated. It
// counts what it repeated.
func TestReplay(t *testing.T) {
	for name, c := range map[string]struct {
		chat, result string
		stop         bool
		want         string // of the error; empty: equal
	}{
		"equal":     {"c", "nothing there\n", false, ""},
		"different": {"c", "a treasure", false, `"text":"a treasure"`},
		"stopped":   {"c", "nothing there\n", true, "stopped"},
		"unknown":   {"d", "nothing there\n", false, "not on record"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Replay(context.Background(), recordChat(t, c.result, c.stop), c.chat)
			switch {
			case c.want == "" && (err != nil || r != Replayed{Turns: 1, Requests: 2, Tools: 1}):
				t.Errorf("replayed %+v, %v", r, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// A replay refuses a call that the user refused. If the replay's own log fails, so that it cannot see the
// waiting call, it ends with the error instead of waiting forever.
func TestReplayLogFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	for name, c := range map[string]struct {
		fails bool
		want  error
	}{"it can be read": {false, nil}, "it fails": {true, broken}} {
		t.Run(name, func(t *testing.T) {
			record, err := recordRefused(t).Conversation("c")
			if err != nil || len(record.Turns) != 1 || record.NotReplayable != "" {
				t.Fatal(record, err)
			}
			p := &replayer{record: record}
			engine, done := p.engine(t.TempDir())
			defer done()
			p.session, _, err = engine.Open(t.Context(), "replay")
			if err != nil {
				t.Fatal(err)
			}
			events := p.session.Events
			if c.fails {
				events = func(context.Context, event.Seq) iter.Seq2[event.Event, error] {
					return func(yield func(event.Event, error) bool) { yield(event.Event{}, broken) }
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if r, err := p.run(ctx, events); !errors.Is(err, c.want) || err == nil && r.Turns != 1 {
				t.Errorf("replayed %+v, %v", r, err)
			}
		})
	}
}

// recordRefused records a turn that ended because the user refused a call.
func recordRefused(t *testing.T) *journal.Chain {
	t.Helper()
	state := t.TempDir()
	j := journal.New(state, journal.Options{})
	next := []llm.Delta{
		{Kind: llm.ToolStart, ID: "c1", Name: "eca__look"}, {Kind: llm.ToolEnd, ID: "c1", Text: `{"at":"x"}`}, {Kind: llm.StopDelta, Stop: llm.StopToolCalls},
	}
	for _, err := range j.Model(answering{&next}, "p/m").Stream(t.Context(), llm.Request{
		Purpose: llm.PurposeTurn, Model: "m", Origin: llm.Origin{Chat: "c", Turn: "t", Agent: "code"},
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "look"}}}},
		Tools:    []llm.ToolSpec{{Name: "eca__look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`)}},
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	tool := event.Tool{CallID: "c1", Name: "look", Server: "eca", Origin: "native"}
	j.Log("c", []event.Event{
		{Turn: "t", Body: event.ToolJudged{Tool: tool, Arguments: json.RawMessage(`{"at":"x"}`), Decision: "ask", Manual: true}},
		{Turn: "t", Body: event.ToolRejected{CallID: "c1", Reason: event.RejectedByUser}},
	})
	j.Close()
	chain := journal.At(state)
	t.Cleanup(chain.Close)
	return chain
}
