package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	chatevent "github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
	asktool "github.com/seed-dec29ce4/eca/tools/ask"
)

// TestTaskEvents has a row for each step of a turn (acp-a2a.md C2): the resulting events of the
// task in 1.0 and in 0.3, if any. Rows of one group follow each other in one task.
func TestTaskEvents(t *testing.T) {
	tool := chatevent.Tool{CallID: "k", Name: "write_file"}
	other := chatevent.Tool{CallID: "l", Name: "read_file"}
	world := daemontest.New(t, "turns: []", nil)
	host := world.Daemon()
	defer host.Close()
	turns := turn.New(turn.Options{Host: host, Workspace: world.Root})
	defer turns.Close()
	const ids, at = `"contextId":"c","taskId":"t"`, `"timestamp":"1970-01-01T00:00:00.000Z"`
	status := func(state, message string) string {
		if message != "" {
			message = `"message":{` + ids + `,"messageId":"id%d","parts":` + message + `,"role":"ROLE_AGENT"},`
		}
		return `{"statusUpdate":{"contextId":"c","status":{` + message + `"state":"TASK_STATE_` + state + `",` + at + `},"taskId":"t"}}`
	}
	type row struct {
		step         any // an event of the chat, a question or the end of the turn
		want, legacy string
	}
	for _, group := range []struct {
		name string
		rows []row
	}{
		{"an answer", []row{
			{chatevent.TurnStarted{}, ``, ``},
			{
				chatevent.ReasoningDelta{ID: "r", Text: "hm"},
				`{"statusUpdate":{"contextId":"c","metadata":{"thought":true},"status":{"message":{` + ids + `,"messageId":"id1","parts":[{"metadata":{"thought":true},"text":"hm"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING",` + at + `},"taskId":"t"}}`,
				`{"contextId":"c","final":false,"kind":"status-update","metadata":{"thought":true},"status":{"message":{"contextId":"c","kind":"message","messageId":"id1","parts":[{"kind":"text","metadata":{"thought":true},"text":"hm"}],"role":"agent","taskId":"t"},"state":"working",` + at + `},"taskId":"t"}`,
			},
			{
				chatevent.TextDelta{Text: "Hi"},
				`{"artifactUpdate":{"artifact":{"artifactId":"response","name":"response","parts":[{"text":"Hi"}]},"contextId":"c","taskId":"t"}}`,
				`{"append":false,"artifact":{"artifactId":"response","name":"response","parts":[{"kind":"text","text":"Hi"}]},"contextId":"c","kind":"artifact-update","lastChunk":false,"taskId":"t"}`,
			},
			{chatevent.TextDelta{}, ``, ``},
			{
				chatevent.TextDelta{Text: " you"},
				`{"artifactUpdate":{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"text":" you"}]},"contextId":"c","taskId":"t"}}`,
				`{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"kind":"text","text":" you"}]},"contextId":"c","kind":"artifact-update","lastChunk":false,"taskId":"t"}`,
			},
			{chatevent.UsageReported{InputTokens: 3}, ``, ``},
			{chatevent.TitleChanged{Title: "T"}, ``, ``},
			{
				ending{turn.Outcome{Content: "Hi you", Reason: turn.EndTurn, Usage: turn.Usage{InputTokens: 3}}, nil},
				`{"artifactUpdate":{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"text":""}]},"contextId":"c","lastChunk":true,"taskId":"t"}}` + "\n" +
					`{"statusUpdate":{"contextId":"c","metadata":{"stopReason":"end_turn","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":null,"inputTokens":3,"outputTokens":0}},"status":{"state":"TASK_STATE_COMPLETED",` + at + `},"taskId":"t"}}`,
				`{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"kind":"text","text":""}]},"contextId":"c","kind":"artifact-update","lastChunk":true,"taskId":"t"}` + "\n" +
					`{"contextId":"c","final":true,"kind":"status-update","metadata":{"stopReason":"end_turn","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":null,"inputTokens":3,"outputTokens":0}},"status":{"state":"completed",` + at + `},"taskId":"t"}`,
			},
			{chatevent.TextDelta{Text: "late"}, ``, ``},
		}},
		{"a call that asks", []row{
			{chatevent.ToolProposed{Tool: tool}, ``, ``},
			{
				chatevent.ToolJudged{Tool: tool, Manual: true, Arguments: json.RawMessage(`{"path":"/a"}`), Summary: "Write a"},
				fmt.Sprintf(status("INPUT_REQUIRED", `[{"text":"May this tool call run? Write a\nAnswer yes or no, or with data {\"tool_call_id\": \"k\", \"decision\": \"approve\" or \"reject\"}."},{"data":{"arguments":{"path":"/a"},"details":null,"name":"write_file","options":["approve","reject"],"summary":"Write a","tool_call_id":"k"},"mediaType":"application/json"}]`), 1), "-",
			},
			{chatevent.ToolStarted{CallID: "k"}, status("WORKING", ""), "-"},
			{chatevent.ToolFinished{CallID: "k"}, ``, ``},
			{chatevent.ToolJudged{Tool: other}, ``, ``},
			{chatevent.ToolRejected{CallID: "l"}, ``, ``},
		}},
		{"a question", []row{
			{
				turn.Question{ID: "q", Question: asktool.Question{CallID: "k", Text: "Which?", Options: []asktool.Option{{Label: "A"}}, Freeform: true}},
				fmt.Sprintf(status("INPUT_REQUIRED", `[{"text":"Which?"},{"data":{"freeform":true,"options":[{"label":"A"}],"question_id":"q","text":"Which?"},"mediaType":"application/json"}]`), 1), "-",
			},
			{chatevent.ToolStarted{CallID: "k"}, ``, ``},
			{chatevent.ToolFinished{CallID: "k"}, status("WORKING", ""), "-"},
		}},
		{"stopped", []row{{
			ending{turn.Outcome{Reason: turn.Cancelled}, nil},
			`{"statusUpdate":{"contextId":"c","metadata":{"stopReason":"cancelled","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":null,"inputTokens":0,"outputTokens":0}},"status":{"message":{"contextId":"c","messageId":"id1","parts":[{"text":"The turn was stopped."}],"role":"ROLE_AGENT","taskId":"t"},"state":"TASK_STATE_CANCELED",` + at + `},"taskId":"t"}}`, "-",
		}}},
		{"failed", []row{{
			ending{err: turn.Errorf(turn.Failed, "no such luck")},
			`{"statusUpdate":{"contextId":"c","metadata":{"code":"E2A.AGENT_ERROR"},"status":{"message":{"contextId":"c","messageId":"id1","parts":[{"text":"no such luck"}],"role":"ROLE_AGENT","taskId":"t"},"state":"TASK_STATE_FAILED",` + at + `},"taskId":"t"}}`, "-",
		}}},
	} {
		n := 0
		s := New(Options{Turns: turns, Now: func() time.Time { return time.Unix(0, 0) }, NewID: func() string { n++; return fmt.Sprint("id", n) }})
		j := &job{id: "t", contextID: "c", server: s, ctx: t.Context(), done: make(chan struct{}), task: task{ID: "t", ContextID: "c", Status: inState(working)}}
		sub := j.subscribe(nil)
		<-sub.ready
		sub.queue = nil // drop the initial task
		fold := transcript.New()
		for _, row := range group.rows {
			switch step := row.step.(type) {
			case chatevent.Body:
				if c, ok := fold.Add(chatevent.Event{Body: step}); ok {
					_ = j.Show(c) // which cannot fail
				}
			case turn.Question:
				_ = j.Ask(step)
			case ending:
				j.end(step.outcome, step.err)
			}
			var modern, legacy []string
			for _, e := range sub.queue {
				modern, legacy = append(modern, sortedJSON(t, e)), append(legacy, sortedJSON(t, toLegacy(e)))
			}
			sub.queue = nil
			if got := strings.Join(modern, "\n"); got != inOrder(t, row.want) {
				t.Errorf("%s: %+v\ngot  %s\nwant %s", group.name, row.step, got, row.want)
			}
			if got := strings.Join(legacy, "\n"); row.legacy != "-" && got != row.legacy {
				t.Errorf("%s, 0.3: %v\ngot  %s\nwant %s", group.name, row.step, got, row.legacy)
			}
		}
		s.Close()
	}
}

func inState(s state) status { return status{State: s, Timestamp: formatTime(time.Unix(0, 0))} }

// ending is the end of a turn.
type ending struct {
	outcome turn.Outcome
	err     error
}

// sortedJSON returns JSON with the keys of objects sorted.
func sortedJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return inOrder(t, string(raw))
}

// inOrder sorts the keys of encoded JSON, line by line.
func inOrder(t *testing.T, lines string) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(lines) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(raw))
	}
	return strings.Join(out, "\n")
}

// TestMessages has a row for each possible content of a message (acp-a2a.md C1): the resulting
// request of the turn.
func TestMessages(t *testing.T) {
	for in, want := range map[string]string{
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"metadata":{"model":"p/m","agent":"plan","variant":"high","trust":true}}`:                                                                                                           `c p/m plan high false [{"text":"hi","type":"text"}]`,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi","data":null,"metadata":null}]},"metadata":{"model":1,"variant":""}}`:                                                                                                                   `c    false [{"text":"hi","type":"text"}]`,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"eA==","mediaType":"text/plain","filename":"a.txt"},{"raw":"eA==","mediaType":"image/png"},{"url":"https://x/y"},{"data":{"k":1}}]},"configuration":{"acceptedOutputModes":["text/plain"]}}`: `c    false [{"text":"a.txt\nx","type":"text"},{"data":"eA==","mime_type":"image/png","type":"image"},{"name":"https://x/y","type":"resource_link","uri":"https://x/y"},{"text":"{\"k\":1}","type":"text"}]`,
	} {
		var p sendParams
		if err := decode([]byte(in), &p); err != nil {
			t.Fatal(err)
		}
		if err := checkMessage(&p, false); err != nil {
			t.Fatal(err)
		}
		p.Message.ContextID = "c"
		r := requestOf(&p, p.Message)
		variant := ""
		if r.Variant != nil {
			variant = *r.Variant
		}
		if got := fmt.Sprintf("%s %s %s %s %v %s", r.Session, r.Model, r.Agent, variant, r.Trust != nil, sortedJSON(t, r.Blocks)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}
