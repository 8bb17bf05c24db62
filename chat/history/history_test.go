package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// renderMessages writes messages as one line.
func renderMessages(msgs []llm.Message) string {
	var out []string
	for _, m := range msgs {
		var parts []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				parts = append(parts, p.Text)
			case llm.Reasoning:
				parts = append(parts, "think("+p.Text+")")
			case llm.ToolCall:
				parts = append(parts, fmt.Sprintf("call(%s %s %s)", p.ID, p.Name, p.Arguments))
			case llm.ToolResult:
				parts = append(parts, fmt.Sprintf("result(%s %.16s)", p.ID, p.Text))
			}
		}
		out = append(out, string(m.Role)+": "+strings.Join(parts, " + "))
	}
	return strings.Join(out, "\n")
}

func tool(id string) event.Tool {
	return event.Tool{CallID: id, Name: "read", Server: "eca", Origin: "native"}
}

func judgedCall(id string) event.ToolJudged {
	return event.ToolJudged{Tool: tool(id), Arguments: json.RawMessage(`{}`)}
}

// Models accept the messages of a history, also after unfinished calls, interrupted answers,
// compaction and pruning.
func TestHistory(t *testing.T) {
	think := []event.Body{event.ReasoningStarted{ID: "r"}, event.ReasoningDelta{ID: "r", Text: "hm"}, event.ReasoningFinished{ID: "r"}}
	bodies := func(parts ...any) (out []event.Body) {
		for _, p := range parts {
			switch p := p.(type) {
			case []event.Body:
				out = append(out, p...)
			case event.Body:
				out = append(out, p)
			}
		}
		return out
	}
	hi := event.UserMessage{Text: "hi"}
	for _, c := range []struct {
		name   string
		events []event.Body
		want   string
	}{
		{"text in pieces", bodies(hi, event.TextDelta{Text: "a"}, event.Progress{Text: "p"}, event.TextDelta{Text: "b"}, event.Notice{Text: "n"}), "user: hi\nassistant: ab"},
		{"context", bodies(event.UserMessage{Text: "hi", Context: []event.Block{{Label: `a"b`, Text: "x\n"}}}), "user: hi + <context label=\"a\\\"b\">\nx\n</context>"},
		{
			"two calls, then text", bodies(hi, think, event.TextDelta{Text: "t"}, event.ToolProposed{Tool: tool("1")}, event.ToolProposed{Tool: tool("2")}, event.UsageReported{}, judgedCall("1"), judgedCall("2"), event.ToolFinished{CallID: "2", Outputs: []string{"two"}}, event.ToolFinished{CallID: "1", Outputs: []string{"one", "more"}}, event.TextDelta{Text: "end"}, event.TurnFinished{}),
			"user: hi\nassistant: think(hm) + t + call(1 eca__read {}) + call(2 eca__read {})\nuser: result(1 one\nmore\n) + result(2 two\n)\nassistant: end",
		},
		{
			"call in each of two responses", bodies(hi, event.ToolProposed{Tool: tool("1")}, judgedCall("1"), event.ToolFinished{CallID: "1", Outputs: []string{"a"}}, event.ToolProposed{Tool: tool("2")}, judgedCall("2"), event.ToolRejected{CallID: "2", Reason: event.RejectedByUser}),
			"user: hi\nassistant: call(1 eca__read {})\nuser: result(1 a\n)\nassistant: call(2 eca__read {})\nuser: result(2 The user rejecte)",
		},
		{"a call without a result", bodies(hi, event.ToolProposed{Tool: tool("1")}, judgedCall("1"), event.ToolStarted{CallID: "1"}), "user: hi\nassistant: call(1 eca__read {})\nuser: result(1 This call was in)"},
		{"calls that waited when the turn ended, and one that ran", bodies(hi, event.ToolProposed{Tool: tool("1")}, event.ToolProposed{Tool: tool("2")}, judgedCall("1"), judgedCall("2"), event.ToolStarted{CallID: "2"}, event.ToolRejected{CallID: "1", Reason: event.Interrupted}, event.ToolRejected{CallID: "2", Reason: event.Interrupted}), "user: hi\nassistant: call(1 eca__read {}) + call(2 eca__read {})\nuser: result(1 The turn was int) + result(2 This call was in)"},
		{"a call that was only proposed", bodies(hi, event.TextDelta{Text: "t"}, event.ToolProposed{Tool: tool("1")}, event.ToolArgsDelta{CallID: "1", Text: "{"}, event.UserMessage{Text: "again"}), "user: hi\nassistant: t\nuser: again"},
		{"reasoning that led to nothing", bodies(hi, think, event.ToolProposed{Tool: tool("1")}, event.TurnFinished{}, event.UserMessage{Text: "again"}), "user: hi\nuser: again"},
		{"reasoning between and behind calls", bodies(hi, event.ToolProposed{Tool: tool("1")}, think, event.ToolProposed{Tool: tool("2")}, think, judgedCall("1"), judgedCall("2")), "user: hi\nassistant: think(hm) + call(1 eca__read {}) + think(hm) + call(2 eca__read {})\nuser: result(1 The turn was int) + result(2 The turn was int)"},
		{"compacted", bodies(hi, event.TextDelta{Text: "a"}, event.UserMessage{Text: "next"}, event.Compacted{Summary: "S"}), "user: This conversation was compacted. This is a summary of it:\n\nS\nuser: next"},
		{"pruned", bodies(hi, event.ToolProposed{Tool: tool("1")}, judgedCall("1"), event.ToolFinished{CallID: "1", Outputs: []string{"long"}}, event.TextDelta{Text: "a"}, event.Pruned{CallIDs: []string{"1"}}), "user: hi\nassistant: call(1 eca__read {})\nuser: result(1 (This result was)\nassistant: a"},
		{"an answer that was gone on with", bodies(hi, event.TextDelta{Text: "a"}, event.ToolProposed{Tool: tool("1")}, event.ToolRejected{CallID: "1"}, event.Continued{Prompt: "go on"}, event.TextDelta{Text: "b"}), "user: hi\nassistant: a\nuser: go on\nassistant: b"},
		{"an answer of which nothing stays", bodies(hi, think, event.Continued{}, event.TextDelta{Text: "b"}), "user: hi\nassistant: b"},
		{"reasoning that was cut", bodies(hi, event.ReasoningStarted{ID: "r"}, event.ReasoningDelta{ID: "r", Text: "hm"}, event.TurnFinished{}), "user: hi"},
		{"events of the future", bodies(hi, event.Unknown{Name: "x"}, event.TextDelta{Text: "a"}), "user: hi\nassistant: a"},
		{"an unknown tool", bodies(hi, event.ToolJudged{Tool: event.Tool{CallID: "1", Name: "frob", Server: "unknown", Origin: "unknown"}, Arguments: json.RawMessage(`{}`)}, event.ToolFinished{CallID: "1", Outputs: []string{"no"}}), "user: hi\nassistant: call(1 frob {})\nuser: result(1 no\n)"},
	} {
		h := New()
		for _, b := range c.events {
			h.Add(b)
		}
		if got := renderMessages(h.Messages()); got != c.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
