package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// recorded returns a mapper of a turn that is over, and the bodies of the frames that it
// makes.
func recorded() (*mapper, *[]string) {
	n := 0
	request := "r"
	var out []string
	a := &answer{
		g: &Gateway{}, envelope: e2a.Envelope{RequestID: &request},
		Stream: e2a.NewStream(e2a.Envelope{RequestID: &request}, func() string { n++; return fmt.Sprint("id", n) }, func() time.Time { return time.Unix(0, 0) }),
		send: func(r e2a.Response) error {
			body, err := json.Marshal(r.Body)
			out = append(out, string(r.Kind)+" "+string(body))
			return err
		},
	}
	m := newMapper(a)
	m.replay = true
	return m, &out
}

// TestFrames has a row for each event (contract e2a.md 10, acp-a2a.md C2): the frames that
// tell it, or none.
func TestFrames(t *testing.T) {
	price, total := 0.5, 1.25
	tool := event.Tool{CallID: "c1", Name: "write_file", Server: "eca", Origin: "native"}
	const named = `"id":"c1","manual_approval":%s,"name":"write_file","origin":"native","outputs":%s,`
	base := func(manual, outputs string) string { return fmt.Sprintf(named, manual, outputs) }
	for _, c := range []struct {
		name string
		body event.Body
		want string // empty: nothing is told
	}{
		{"turn started", event.TurnStarted{Model: "p/m", Agent: "code", Variant: "high", Trust: true}, `{"delta":{"agent":"code","model":"p/m","trust":true,"variant":"high"},"delta_kind":"custom","event_type":"turn_started"}`},
		{"text", event.TextDelta{Text: "Hi"}, `{"delta":"Hi","delta_kind":"text"}`},
		{"reasoning starts", event.ReasoningStarted{ID: "r1"}, ``},
		{"reasoning", event.ReasoningDelta{ID: "r1", Text: "hm"}, `{"delta":"hm","delta_kind":"reasoning","reasoning_id":"r1"}`},
		{"reasoning ends", event.ReasoningFinished{ID: "r1", ElapsedMS: 3}, ``},
		{"call proposed", event.ToolProposed{Tool: tool, Summary: "Writing"}, `{"delta":{` + base("false", "[]") + `"phase":"prepare","server":"eca","summary":"Writing"},"delta_kind":"tool"}`},
		{"arguments", event.ToolArgsDelta{CallID: "c1", Text: `{"pa`}, `{"delta":{"arguments_text":"{\"pa",` + base("false", "[]") + `"phase":"prepare","server":"eca"},"delta_kind":"tool"}`},
		{
			"call judged",
			event.ToolJudged{Tool: tool, Arguments: json.RawMessage(`{"path":"/a"}`), Manual: true, Decision: "ask", Rule: "r", Reason: "why", Summary: "Write a", Details: &event.Details{FileChange: &event.FileChange{Path: "/a", Diff: "@@"}}},
			`{"delta":{"arguments":{"path":"/a"},"details":{"fileChange":{"path":"/a","diff":"@@","linesAdded":0,"linesRemoved":0}},` + base("true", "[]") + `"permission":{"reason":"why","rule":"r","verdict":"ask"},"phase":"run","server":"eca","summary":"Write a"},"delta_kind":"tool"}`,
		},
		{"call allowed", event.ToolJudged{Tool: tool, Arguments: json.RawMessage(`{}`), Decision: "allow"}, `{"delta":{"arguments":{},` + base("false", "[]") + `"permission":{"reason":"","rule":"","verdict":"allow"},"phase":"run","server":"eca"},"delta_kind":"tool"}`},
		{"call runs", event.ToolStarted{CallID: "c1"}, `{"delta":{` + base("false", "[]") + `"phase":"running","server":"eca"},"delta_kind":"tool"}`},
		{"call goes on", event.ToolUpdated{CallID: "c1"}, `{"delta":{` + base("false", "[]") + `"phase":"running","server":"eca"},"delta_kind":"tool"}`},
		{
			"call ended",
			event.ToolFinished{CallID: "c1", Outputs: []string{"done"}, Images: []event.Image{{MediaType: "image/png", Data: []byte("x")}}, ElapsedMS: 7},
			`{"delta":{"elapsed_ms":7,"error":false,` + base("false", `[{"text":"done","type":"text"},{"data":"eA==","mime_type":"image/png","type":"image"}]`) + `"phase":"called","server":"eca"},"delta_kind":"tool"}`,
		},
		{"call failed", event.ToolFinished{CallID: "c1", Outputs: []string{"no"}, Failed: true}, `{"delta":{"elapsed_ms":0,"error":true,` + base("false", `[{"text":"no","type":"text"}]`) + `"phase":"called","server":"eca"},"delta_kind":"tool"}`},
		{"call rejected", event.ToolRejected{CallID: "c1", Reason: "userChoiceDeny", Message: "No."}, `{"delta":{"id":"c1","manual_approval":false,"message":"No.","name":"write_file","origin":"native","outputs":[],"phase":"rejected","reason":"userChoiceDeny","server":"eca"},"delta_kind":"tool"}`},
		{
			"usage",
			event.UsageReported{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, Cost: &price, TotalCost: &total, ContextLimit: 100, OutputLimit: 10, Purpose: "title"},
			`{"delta":{"cache_read_tokens":3,"cache_write_tokens":4,"context_limit":100,"cost_usd":0.5,"input_tokens":1,"output_limit":10,"output_tokens":2,"purpose":"title","total_cost_usd":1.25},"delta_kind":"custom","event_type":"usage"}`,
		},
		{"usage of unknown price", event.UsageReported{}, `{"delta":{"cache_read_tokens":0,"cache_write_tokens":0,"context_limit":0,"cost_usd":null,"input_tokens":0,"output_limit":0,"output_tokens":0,"purpose":"","total_cost_usd":null},"delta_kind":"custom","event_type":"usage"}`},
		{"title", event.TitleChanged{Title: "T"}, `{"delta":{"title":"T"},"delta_kind":"custom","event_type":"metadata"}`},
		{"progress", event.Progress{Text: "Waiting"}, `{"delta":{"text":"Waiting"},"delta_kind":"custom","event_type":"progress"}`},
		{"notice", event.Notice{Text: "So"}, `{"delta":{"text":"So"},"delta_kind":"custom","event_type":"notice"}`},
		{"continued", event.Continued{Text: "Goes on"}, `{"delta":{"text":"Goes on"},"delta_kind":"custom","event_type":"notice"}`},
		{"continued silently", event.Continued{}, ``},
		{"images refused", event.ImagesRefused{Text: "No images"}, `{"delta":{"text":"No images"},"delta_kind":"custom","event_type":"notice"}`},
		{"compacted", event.Compacted{Summary: "s", Auto: true}, `{"delta":{"auto":true},"delta_kind":"custom","event_type":"compacted"}`},
		{"tasks cleared", event.TasksCleared{}, `{"delta":{"tasks":[]},"delta_kind":"custom","event_type":"tasks"}`},
		// What is said by the final frame, by history.get, or is of the chat's inside.
		{"turn finished", event.TurnFinished{Reason: event.FinishedDone}, ``},
		{"user message", event.UserMessage{Text: "Hi"}, ``},
		{"system prompt", event.SystemPrompt{}, ``},
		{"file changed", event.FileChanged{Path: "/a"}, ``},
		{"undo point", event.UndoPoint{CallID: "c"}, ``},
		{"flag", event.Flag{Text: "f"}, ``},
		{"pruned", event.Pruned{}, ``},
		{"truncated", event.Truncated{}, ``},
		{"hook started", event.HookStarted{}, ``},
		{"hook finished", event.HookFinished{}, ``},
		{"prompt amended", event.PromptAmended{}, ``},
		{"report", event.Report{}, ``},
		{"unknown", event.Unknown{}, ``},
	} {
		m, out := recorded()
		m.calls["c1"] = tool
		if err := m.show(event.Event{Body: c.body}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		want := ""
		if c.want != "" {
			want = "e2a.chunk " + c.want
		}
		if got := strings.Join(*out, "\n"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

// TestFinalFrames has a row for each end of a turn.
func TestFinalFrames(t *testing.T) {
	const usage = `"usage":{"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0,"input_tokens":0,"output_tokens":0}`
	for reason, want := range map[event.FinishReason]string{
		event.FinishedDone:        `e2a.complete {"result":{"content":"Hi","stop_reason":"end_turn",` + usage + `}}`,
		event.FinishedStopped:     `e2a.complete {"result":{"content":"Hi","stop_reason":"cancelled",` + usage + `}}`,
		event.FinishedSuperseded:  `e2a.complete {"result":{"content":"Hi","stop_reason":"cancelled",` + usage + `}}`,
		event.FinishedInterrupted: `e2a.complete {"result":{"content":"Hi","stop_reason":"cancelled",` + usage + `}}`,
		event.FinishedRejected:    `e2a.complete {"result":{"content":"Hi","stop_reason":"rejected",` + usage + `}}`,
		event.FinishedLoop:        `e2a.complete {"result":{"content":"Hi","stop_reason":"loop",` + usage + `}}`,
		event.FinishedBlocked:     `e2a.complete {"result":{"content":"Hi","stop_reason":"end_turn",` + usage + `}}`,
		event.FinishedFailed:      `E2A.AGENT_ERROR no such luck`,
	} {
		m, out := recorded()
		m.content.WriteString("Hi")
		err := m.a.finish(m, event.TurnFinished{Reason: reason, Err: "Error: no such luck"})
		got := strings.Join(*out, "\n")
		if f, ok := err.(*failure); ok { //nolint:errorlint // never wrapped
			got = f.code + " " + f.message
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", reason, got, want)
		}
	}
}

// A turn that was superseded ends when the next one of its chat has begun: it must not take
// away who shows that one's questions, nor the calls that wait in it.
func TestSuperseded(t *testing.T) {
	q := questions{newID: func() string { return "q" }}
	first := q.listen("c", func(string, ask.Question) { t.Error("the turn that was superseded is asked") })
	shown := make(chan string, 1)
	second := q.listen("c", func(id string, _ ask.Question) { shown <- id })
	first()
	go func() {
		select {
		case id := <-shown:
			q.answer(id, "yes")
		case <-t.Context().Done():
		}
	}()
	if a, err := q.Ask(t.Context(), ask.Question{ChatID: "c"}); err != nil || a.Text != "yes" {
		t.Errorf("%+v, %v", a, err)
	}
	second()
	if _, err := q.Ask(t.Context(), ask.Question{ChatID: "c"}); !errors.Is(err, errNoTurn) {
		t.Errorf("behind the last turn: %v", err)
	}

	var p pending
	before, now := &mapper{}, &mapper{}
	p.add(before, "c1")
	p.add(now, "c2")
	p.forget(before)
	if calls := p.calls[now]; len(p.calls) != 1 || len(calls) != 1 || calls[0] != "c2" {
		t.Errorf("%v", p.calls)
	}
}
