package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/e2a"
)

// TestTaskEvents has a row for each frame (acp-a2a.md C2): the events of the task that tell
// it, in 1.0 and in 0.3, or none. Rows of one group follow each other in one task.
func TestTaskEvents(t *testing.T) {
	chunk := func(body string) e2a.Response { return response(t, e2a.KindChunk, body) }
	const ids, at = `"contextId":"c","taskId":"t"`, `"timestamp":"1970-01-01T00:00:00.000Z"`
	status := func(state, message string) string {
		if message != "" {
			message = `"message":{` + ids + `,"messageId":"id%d","parts":` + message + `,"role":"ROLE_AGENT"},`
		}
		return `{"statusUpdate":{"contextId":"c","status":{` + message + `"state":"TASK_STATE_` + state + `",` + at + `},"taskId":"t"}}`
	}
	type row struct {
		frame        e2a.Response
		want, legacy string
	}
	for _, group := range []struct {
		name string
		rows []row
	}{
		{"an answer", []row{
			{chunk(`{"delta_kind":"custom","event_type":"turn_started","delta":{}}`), ``, ``},
			{
				chunk(`{"delta_kind":"reasoning","delta":"hm"}`),
				`{"statusUpdate":{"contextId":"c","metadata":{"thought":true},"status":{"message":{` + ids + `,"messageId":"id1","parts":[{"metadata":{"thought":true},"text":"hm"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING",` + at + `},"taskId":"t"}}`,
				`{"contextId":"c","final":false,"kind":"status-update","metadata":{"thought":true},"status":{"message":{"contextId":"c","kind":"message","messageId":"id1","parts":[{"kind":"text","metadata":{"thought":true},"text":"hm"}],"role":"agent","taskId":"t"},"state":"working",` + at + `},"taskId":"t"}`,
			},
			{
				chunk(`{"delta_kind":"text","delta":"Hi"}`),
				`{"artifactUpdate":{"artifact":{"artifactId":"response","name":"response","parts":[{"text":"Hi"}]},"contextId":"c","taskId":"t"}}`,
				`{"append":false,"artifact":{"artifactId":"response","name":"response","parts":[{"kind":"text","text":"Hi"}]},"contextId":"c","kind":"artifact-update","lastChunk":false,"taskId":"t"}`,
			},
			{chunk(`{"delta_kind":"text","delta":""}`), ``, ``},
			{
				chunk(`{"delta_kind":"text","delta":" you"}`),
				`{"artifactUpdate":{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"text":" you"}]},"contextId":"c","taskId":"t"}}`,
				`{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"kind":"text","text":" you"}]},"contextId":"c","kind":"artifact-update","lastChunk":false,"taskId":"t"}`,
			},
			{chunk(`{"delta_kind":"custom","event_type":"usage","delta":{"input_tokens":3}}`), ``, ``},
			{chunk(`{"delta_kind":"custom","event_type":"metadata","delta":{"title":"T"}}`), ``, ``},
			{
				response(t, e2a.KindComplete, `{"result":{"content":"Hi you","stop_reason":"end_turn","usage":{"input_tokens":3}}}`),
				`{"artifactUpdate":{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"text":""}]},"contextId":"c","lastChunk":true,"taskId":"t"}}` + "\n" +
					`{"statusUpdate":{"contextId":"c","metadata":{"stopReason":"end_turn","usage":{"inputTokens":3}},"status":{"state":"TASK_STATE_COMPLETED",` + at + `},"taskId":"t"}}`,
				`{"append":true,"artifact":{"artifactId":"response","name":"response","parts":[{"kind":"text","text":""}]},"contextId":"c","kind":"artifact-update","lastChunk":true,"taskId":"t"}` + "\n" +
					`{"contextId":"c","final":true,"kind":"status-update","metadata":{"stopReason":"end_turn","usage":{"inputTokens":3}},"status":{"state":"completed",` + at + `},"taskId":"t"}`,
			},
			{chunk(`{"delta_kind":"text","delta":"late"}`), ``, ``},
		}},
		{"a call that asks", []row{
			{chunk(`{"delta_kind":"tool","delta":{"phase":"prepare","id":"k","name":"write_file"}}`), ``, ``},
			{
				chunk(`{"delta_kind":"tool","delta":{"phase":"run","id":"k","name":"write_file","manual_approval":true,"arguments":{"path":"/a"},"summary":"Write a"}}`),
				fmt.Sprintf(status("INPUT_REQUIRED", `[{"text":"May this tool call run? Write a\nAnswer yes or no, or with data {\"tool_call_id\": \"k\", \"decision\": \"approve\" or \"reject\"}."},{"data":{"arguments":{"path":"/a"},"details":null,"name":"write_file","options":["approve","reject"],"summary":"Write a","tool_call_id":"k"},"mediaType":"application/json"}]`), 1), "-",
			},
			{chunk(`{"delta_kind":"tool","delta":{"phase":"running","id":"k"}}`), status("WORKING", ""), "-"},
			{chunk(`{"delta_kind":"tool","delta":{"phase":"called","id":"k"}}`), ``, ``},
			{chunk(`{"delta_kind":"tool","delta":{"phase":"run","id":"l","name":"read_file"}}`), ``, ``},
			{chunk(`{"delta_kind":"tool","delta":{"phase":"rejected","id":"l"}}`), ``, ``},
		}},
		{"a question", []row{
			{
				chunk(`{"delta_kind":"custom","event_type":"question","delta":{"question_id":"q","tool_call_id":"k","text":"Which?","options":[{"label":"A"}],"freeform":true}}`),
				fmt.Sprintf(status("INPUT_REQUIRED", `[{"text":"Which?"},{"data":{"freeform":true,"options":[{"label":"A"}],"question_id":"q","text":"Which?"},"mediaType":"application/json"}]`), 1), "-",
			},
			{chunk(`{"delta_kind":"tool","delta":{"phase":"running","id":"k"}}`), ``, ``},
			{chunk(`{"delta_kind":"tool","delta":{"phase":"called","id":"k"}}`), status("WORKING", ""), "-"},
		}},
		{"stopped", []row{{
			response(t, e2a.KindComplete, `{"result":{"stop_reason":"cancelled"}}`),
			`{"statusUpdate":{"contextId":"c","metadata":{"stopReason":"cancelled","usage":null},"status":{"message":{"contextId":"c","messageId":"id1","parts":[{"text":"The turn was stopped."}],"role":"ROLE_AGENT","taskId":"t"},"state":"TASK_STATE_CANCELED",` + at + `},"taskId":"t"}}`, "-",
		}}},
		{"failed", []row{{
			response(t, e2a.KindError, `{"code":"E2A.AGENT_ERROR","message":"no such luck"}`),
			`{"statusUpdate":{"contextId":"c","metadata":{"code":"E2A.AGENT_ERROR"},"status":{"message":{"contextId":"c","messageId":"id1","parts":[{"text":"no such luck"}],"role":"ROLE_AGENT","taskId":"t"},"state":"TASK_STATE_FAILED",` + at + `},"taskId":"t"}}`, "-",
		}}},
	} {
		n := 0
		s := New(Options{Now: func() time.Time { return time.Unix(0, 0) }, NewID: func() string { n++; return fmt.Sprint("id", n) }})
		j := &job{id: "t", contextID: "c", s: s, done: make(chan struct{}), task: task{ID: "t", ContextID: "c", Status: inState(working)}}
		sub := j.subscribe(nil)
		<-sub.ready
		sub.queue = nil // the task as it was
		for _, row := range group.rows {
			j.frame(row.frame)
			var modern, legacy []string
			for _, e := range sub.queue {
				modern, legacy = append(modern, sorted(t, e)), append(legacy, sorted(t, toLegacy(e)))
			}
			sub.queue = nil
			if got := strings.Join(modern, "\n"); got != inOrder(t, row.want) {
				t.Errorf("%s: %v\ngot  %s\nwant %s", group.name, row.frame.Body, got, row.want)
			}
			if got := strings.Join(legacy, "\n"); row.legacy != "-" && got != row.legacy {
				t.Errorf("%s, 0.3: %v\ngot  %s\nwant %s", group.name, row.frame.Body, got, row.legacy)
			}
		}
		s.Close()
	}
}

func inState(s state) status { return status{State: s, Timestamp: stamp(time.Unix(0, 0))} }

func response(t *testing.T, kind e2a.ResponseKind, body string) e2a.Response {
	t.Helper()
	r := e2a.Response{Kind: kind}
	if err := json.Unmarshal([]byte(body), &r.Body); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// sorted is JSON with the keys of objects in order.
func sorted(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return inOrder(t, string(raw))
}

// inOrder is that of JSON which is written already, line by line.
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

// TestMessages has a row for each thing that a message can bring (acp-a2a.md C1): what the
// envelope says of it.
func TestMessages(t *testing.T) {
	s := New(Options{Now: func() time.Time { return time.Unix(0, 0) }, Runner: nil})
	defer s.Close()
	for in, want := range map[string]string{
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"metadata":{"model":"p/m","agent":"plan","variant":"high","trust":true}}`:                                                                                                           `a2a agent c t m false [] {"agent":"plan","blocks":[{"text":"hi","type":"text"}],"model":"p/m","variant":"high"}`,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"eA==","mediaType":"text/plain","filename":"a.txt"},{"raw":"eA==","mediaType":"image/png"},{"url":"https://x/y"},{"data":{"k":1}}]},"configuration":{"acceptedOutputModes":["text/plain"]}}`: `a2a agent c t m false [text/plain] {"blocks":[{"text":"a.txt\nx","type":"text"},{"data":"eA==","mime_type":"image/png","type":"image"},{"name":"https://x/y","type":"resource_link","uri":"https://x/y"},{"text":"{\"k\":1}","type":"text"}]}`,
	} {
		var p sendParams
		if err := decode([]byte(in), &p); err != nil {
			t.Fatal(err)
		}
		if err := check(&p, false); err != nil {
			t.Fatal(err)
		}
		p.Message.TaskID, p.Message.ContextID = "t", "c"
		e, err := s.envelope(&p, p.Message, false)
		if err != nil {
			t.Fatal(err)
		}
		params := map[string]any{"blocks": e.Params["content_blocks"]}
		for _, key := range []string{"model", "agent", "variant", "trust"} {
			if v, ok := e.Params[key]; ok {
				params[key] = v
			}
		}
		got := fmt.Sprintf("%s %s %s %s %s %v %v %s", *e.Channel, e.IdentityOrigin, *e.SessionID, *e.RequestID, *e.MessageID, e.IsStream, e.ExpectedOutputModes, sorted(t, params))
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}
