package llm

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
)

type seen struct{ messages []Message }

func (s *seen) Stream(_ context.Context, req Request) iter.Seq2[Delta, error] {
	s.messages = req.Messages
	return func(func(Delta, error) bool) {}
}

func TestReasoningHistory(t *testing.T) {
	history := []Message{
		{User, []Part{Text{"one"}}},
		{Assistant, []Part{Reasoning{Text: "early"}, Text{"a"}}},
		{User, []Part{Text{"two"}}},
		{Assistant, []Part{Reasoning{Text: "late"}, ToolCall{ID: "c"}}},
		{User, []Part{ToolResult{ID: "c"}}},
	}
	for mode, want := range map[string]string{"": "early late", "all": "early late", "odd": "early late", "turn": "late", "off": ""} {
		model := &seen{}
		for range WithReasoningHistory(model, mode).Stream(context.Background(), Request{Messages: history}) {
			t.Error("the stream of a model without deltas returned a delta")
		}
		var got []string
		for _, m := range model.messages {
			for _, p := range m.Parts {
				if r, ok := p.(Reasoning); ok {
					got = append(got, r.Text)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v", mode, got)
		}
		if len(model.messages) != len(history) {
			t.Errorf("%q: the model received %d messages of %d", mode, len(model.messages), len(history))
		}
	}
	if fmt.Sprint(history[1].Parts[0]) != fmt.Sprint(Reasoning{Text: "early"}) {
		t.Error("the history was changed")
	}
}

func TestInstructions(t *testing.T) {
	for _, c := range []struct{ system, tail, want string }{{"a", "b", "a\n\nb"}, {"a", "", "a"}, {"", "b", "b"}, {"", "", ""}} {
		if got := (Request{System: c.system, SystemTail: c.tail}).Instructions(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
