package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a"
)

// newRecordingExchange returns an exchange, and the kinds and bodies of the frames that it sends.
func newRecordingExchange() (*exchange, *[]string) {
	n := 0
	request := "r"
	var out []string
	return &exchange{
		Stream: e2a.NewStream(e2a.Envelope{RequestID: &request}, func() string { n++; return fmt.Sprint("id", n) }, func() time.Time { return time.Unix(0, 0) }),
		send: func(r e2a.Response) error {
			out = append(out, string(r.Kind)+" "+string(r.Body))
			return nil
		},
	}, &out
}

// TestFrames has a row for each event (e2a.md 10, acp-a2a.md C2): the resulting frames, if
// any.
func TestFrames(t *testing.T) {
	price, total := 0.5, 1.25
	tool := event.Tool{CallID: "c1", Name: "write_file", Server: "eca", Origin: "native"}
	const named = `"id":"c1","manual_approval":%s,"name":"write_file","origin":"native","outputs":%s,`
	base := func(manual, outputs string) string { return fmt.Sprintf(named, manual, outputs) }
	for _, c := range []struct {
		name string
		body event.Body
		want string // empty: no frame is sent
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
		// Information that is in the final frame or in history.get, or that is internal to the chat.
		{"turn finished", event.TurnFinished{Reason: event.FinishedDone}, ``},
		{"user message, of history", event.UserMessage{Text: "Hi", ContentID: "m"}, `{"delta":{"message_id":"m","text":"Hi"},"delta_kind":"custom","event_type":"user_message"}`},
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
		a, out := newRecordingExchange()
		fold := transcript.New()
		fold.Adopt(transcript.Call{Tool: tool}, 1)
		if change, ok := fold.Add(event.Event{Body: c.body}); ok {
			if err := a.Show(change); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
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
