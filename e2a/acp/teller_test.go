package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/e2a"
)

// telling returns a teller whose updates are kept.
func telling(t *testing.T, capabilities string) (tell *teller, told func() string) {
	t.Helper()
	var out bytes.Buffer
	n := 0
	a := &agent{
		opts: Options{NewID: func() string { n++; return fmt.Sprint("id", n) }}, log: slog.New(slog.DiscardHandler),
		peer: &peer{out: &out, gone: func(error) {}},
	}
	if err := json.Unmarshal([]byte(capabilities), &a.client.Capabilities); err != nil {
		t.Fatal(err)
	}
	tell = a.teller(&session{id: "s", place: &place{Place: Place{Folders: []string{"/w", "/more"}}}})
	return tell, func() string {
		var lines []string
		for line := range bytes.Lines(out.Bytes()) {
			var m struct {
				Method string
				Params struct {
					Update json.RawMessage
				}
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Method != "session/update" {
				t.Fatalf("%s: %v", line, err)
			}
			lines = append(lines, string(m.Params.Update))
		}
		out.Reset()
		return strings.Join(lines, "\n")
	}
}

// TestUpdates has a row for each frame (acp-a2a.md C2): the update that tells it, or none.
// Rows of one group follow each other in one turn.
func TestUpdates(t *testing.T) {
	const all = `{"session":{"notices":{},"compaction":{}}}`
	for _, group := range []struct {
		name, capabilities string
		replay             bool
		rows               [][2]string // body of the frame, update
	}{
		{"messages", `{}`, false, [][2]string{
			{`{"delta_kind":"text","delta":"Hi"}`, `{"content":{"text":"Hi","type":"text"},"messageId":"id1","sessionUpdate":"agent_message_chunk"}`},
			{`{"delta_kind":"custom","event_type":"notice","delta":{"text":"Wait."}}`, ``},
			{`{"delta_kind":"text","delta":" you"}`, `{"content":{"text":"\n\nWait.","type":"text"},"messageId":"id2","sessionUpdate":"agent_message_chunk"}` + "\n" + `{"content":{"text":" you","type":"text"},"messageId":"id3","sessionUpdate":"agent_message_chunk"}`},
			{`{"delta_kind":"reasoning","delta":"hm","reasoning_id":"r1"}`, `{"content":{"text":"hm","type":"text"},"messageId":"r1","sessionUpdate":"agent_thought_chunk"}`},
			{`{"delta_kind":"text","delta":"again"}`, `{"content":{"text":"again","type":"text"},"messageId":"id4","sessionUpdate":"agent_message_chunk"}`},
			{`{"delta_kind":"custom","event_type":"user_message","delta":{"text":"said","message_id":"m"}}`, ``},
			{`{"delta_kind":"custom","event_type":"turn_started","delta":{}}`, ``},
			{`{"delta_kind":"custom","event_type":"progress","delta":{"text":"x"}}`, ``},
			{`{"delta_kind":"custom","event_type":"nobody knows","delta":{}}`, ``},
			{`{"delta_kind":"custom","event_type":"metadata","delta":{"title":"T"}}`, `{"sessionUpdate":"session_info_update","title":"T"}`},
			{`{"delta_kind":"custom","event_type":"metadata","delta":{"title":"T"}}`, ``},
			{`{"delta_kind":"custom","event_type":"notice","delta":{"text":"So it is."}}`, ``},
			{`{"delta_kind":"custom","event_type":"notice","delta":{"text":" "}}`, `{"content":{"text":"So it is.","type":"text"},"messageId":"id5","sessionUpdate":"agent_message_chunk"}`},
			{`{"delta_kind":"custom","event_type":"compacted","delta":{"auto":true}}`, ``},
			{`{"delta_kind":"custom","event_type":"tasks","delta":{"tasks":[]}}`, `{"entries":[],"sessionUpdate":"plan"}`},
			{`{"delta_kind":"custom","event_type":"usage","delta":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"context_limit":100,"total_cost_usd":0.5}}`, `{"cost":{"amount":0.5,"currency":"USD"},"sessionUpdate":"usage_update","size":100,"used":10}`},
			{`{"delta_kind":"custom","event_type":"usage","delta":{"input_tokens":1,"context_limit":100}}`, `{"sessionUpdate":"usage_update","size":100,"used":1}`},
			{`{"delta_kind":"custom","event_type":"usage","delta":{"input_tokens":1}}`, ``},
			{`{"delta_kind":"custom","event_type":"usage","delta":{"input_tokens":1,"context_limit":100,"purpose":"title"}}`, ``},
		}},
		{"offered", all, false, [][2]string{
			{`{"delta_kind":"custom","event_type":"notice","delta":{"text":"So it is."}}`, `{"sessionUpdate":"notice","severity":"info","title":"So it is."}`},
			{`{"delta_kind":"custom","event_type":"compacted","delta":{}}`, `{"compactionId":"id1","sessionUpdate":"compaction_update","status":"completed"}`},
		}},
		{"replay", all, true, [][2]string{
			{`{"delta_kind":"custom","event_type":"user_message","delta":{"text":"said","message_id":"m"}}`, `{"content":{"text":"said","type":"text"},"messageId":"m","sessionUpdate":"user_message_chunk"}`},
			{`{"delta_kind":"custom","event_type":"notice","delta":{"text":"gone"}}`, ``},
			{`{"delta_kind":"custom","event_type":"question","delta":{"text":"Which?"}}`, ``},
			{
				`{"delta_kind":"tool","delta":{"phase":"run","id":"c","name":"ask_user","server":"eca","summary":"Q: Which?","arguments":{"question":"Which?","options":[{"label":"a","description":"b"}]}}}`,
				`{"kind":"other","name":"eca__ask_user","sessionUpdate":"tool_call","status":"pending","title":"Q: Which?","toolCallId":"c"}` + "\n" +
					`{"kind":"other","rawInput":{"options":[{"description":"b","label":"a"}],"question":"Which?"},"sessionUpdate":"tool_call_update","title":"Q: Which?","toolCallId":"c"}` + "\n" +
					`{"content":{"text":"Which?\n- a: b","type":"text"},"messageId":"id1","sessionUpdate":"agent_message_chunk"}`,
			},
		}},
		{"replay with forms", `{"elicitation":{"form":{}}}`, true, [][2]string{
			{
				`{"delta_kind":"tool","delta":{"phase":"run","id":"c","name":"ask_user","server":"eca","summary":"Q","arguments":{"question":"Which?"}}}`,
				`{"kind":"other","name":"eca__ask_user","sessionUpdate":"tool_call","status":"pending","title":"Q","toolCallId":"c"}` + "\n" +
					`{"kind":"other","rawInput":{"question":"Which?"},"sessionUpdate":"tool_call_update","title":"Q","toolCallId":"c"}`,
			},
		}},
		{"a call", `{}`, false, [][2]string{
			{`{"delta_kind":"tool","delta":{"phase":"prepare","id":"c","name":"edit_file","server":"eca","summary":"Editing"}}`, `{"kind":"edit","name":"eca__edit_file","sessionUpdate":"tool_call","status":"pending","title":"Editing","toolCallId":"c"}`},
			{`{"delta_kind":"tool","delta":{"phase":"prepare","id":"c","name":"edit_file","server":"eca","arguments_text":"{"}}`, ``},
			{
				`{"delta_kind":"tool","delta":{"phase":"run","id":"c","name":"edit_file","server":"eca","summary":"Edit a","arguments":{"path":"/a"},"details":{"fileChange":{"path":"/a","diff":"@@ -3,1 +3,1 @@\n-x\n+y\n"}}}}`,
				`{"content":[{"newText":"y\n","oldText":"x\n","path":"/a","type":"diff"}],"kind":"edit","locations":[{"line":3,"path":"/a"}],"rawInput":{"path":"/a"},"sessionUpdate":"tool_call_update","title":"Edit a","toolCallId":"c"}`,
			},
			{`{"delta_kind":"tool","delta":{"phase":"running","id":"c","name":"edit_file","server":"eca"}}`, `{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"c"}`},
			{
				`{"delta_kind":"tool","delta":{"phase":"called","id":"c","name":"edit_file","server":"eca","outputs":[{"type":"text","text":"ok"}]}}`,
				`{"content":[{"newText":"y\n","oldText":"x\n","path":"/a","type":"diff"}],"rawOutput":{"error":false,"outputs":["ok"]},"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"c"}`,
			},
		}},
		{"a call with a relative path", `{}`, false, [][2]string{
			{
				`{"delta_kind":"tool","delta":{"phase":"prepare","id":"c","name":"read_file","server":"eca","summary":"Reading\u202e\u001b"}}`,
				`{"kind":"read","name":"eca__read_file","sessionUpdate":"tool_call","status":"pending","title":"Reading\\u202e\\u001b","toolCallId":"c"}`,
			},
			{
				`{"delta_kind":"tool","delta":{"phase":"run","id":"c","name":"read_file","server":"eca","summary":"Reading b","arguments":{"path":"a/../b","line_offset":4}}}`,
				`{"kind":"read","locations":[{"line":5,"path":"/w/b"}],"rawInput":{"line_offset":4,"path":"a/../b"},"sessionUpdate":"tool_call_update","title":"Reading b","toolCallId":"c"}`,
			},
		}},
		{"a call that fails", `{}`, false, [][2]string{
			{`{"delta_kind":"tool","delta":{"phase":"prepare","id":"c","name":"look","server":"mine"}}`, `{"kind":"other","name":"mine__look","sessionUpdate":"tool_call","status":"pending","title":"look","toolCallId":"c"}`},
			{`{"delta_kind":"tool","delta":{"phase":"called","id":"c","name":"look","server":"mine","error":true,"outputs":[{"type":"text","text":"no"},{"type":"image","mime_type":"image/png","data":"eA=="}]}}`, `{"content":[{"content":{"text":"no","type":"text"},"type":"content"},{"content":{"data":"eA==","mimeType":"image/png","type":"image"},"type":"content"}],"rawOutput":{"error":true,"outputs":["no"]},"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"c"}`},
		}},
		{"a call that is refused", `{}`, false, [][2]string{
			{
				`{"delta_kind":"tool","delta":{"phase":"rejected","id":"c","name":"shell_command","server":"eca","reason":"userConfigDeny"}}`,
				`{"kind":"execute","name":"eca__shell_command","sessionUpdate":"tool_call","status":"pending","title":"shell_command","toolCallId":"c"}` + "\n" +
					`{"content":[{"content":{"text":"Denied by the configuration.","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"c"}`,
			},
		}},
		{"a subagent", `{}`, false, [][2]string{
			{`{"delta_kind":"tool","delta":{"phase":"prepare","id":"c","name":"spawn_agent","server":"eca"}}`, `{"kind":"think","name":"eca__spawn_agent","sessionUpdate":"tool_call","status":"pending","title":"spawn_agent","toolCallId":"c"}`},
			{`{"delta_kind":"tool","delta":{"phase":"running","id":"c","name":"spawn_agent","server":"eca","details":{"subagent":{"agent":"explorer","step":2}}}}`, `{"content":[{"content":{"text":"Subagent explorer, step 2","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"c"}`},
		}},
		{"tasks", `{}`, false, [][2]string{
			{
				`{"delta_kind":"tool","delta":{"phase":"called","id":"c","name":"task","server":"eca","outputs":[],"details":{"tasks":{"tasks":[{"subject":"A","status":"done","priority":"high"},{"subject":"B","status":"in-progress"},{"subject":"C","status":"pending","priority":"low"}]}}}}`,
				`{"kind":"think","name":"eca__task","sessionUpdate":"tool_call","status":"pending","title":"task","toolCallId":"c"}` + "\n" +
					`{"content":[],"rawOutput":{"error":false,"outputs":[]},"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"c"}` + "\n" +
					`{"entries":[{"content":"A","priority":"high","status":"completed"},{"content":"B","priority":"medium","status":"in_progress"},{"content":"C","priority":"low","status":"pending"}],"sessionUpdate":"plan"}`,
			},
		}},
	} {
		tell, told := telling(t, group.capabilities)
		tell.replay = group.replay
		for _, row := range group.rows {
			var body map[string]any
			if err := json.Unmarshal([]byte(row[0]), &body); err != nil {
				t.Fatalf("%s: %v", row[0], err)
			}
			if err := tell.tell(e2a.Response{Kind: e2a.KindChunk, Body: body}); err != nil {
				t.Errorf("%s: %s: %v", group.name, row[0], err)
			}
			if got := told(); got != row[1] {
				t.Errorf("%s: %s\ngot  %s\nwant %s", group.name, row[0], got, row[1])
			}
		}
	}
	tell, told := telling(t, `{}`)
	for _, kind := range []e2a.ResponseKind{e2a.KindComplete, e2a.KindError, e2a.KindExt} { // they end the prompt, or are none of ACP's
		if err := tell.tell(e2a.Response{Kind: kind, Body: map[string]any{}}); err != nil || told() != "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestEnds has a row for what is told at the end of a turn: an error that the client is told
// is not a message as well, and what the client writes behind text begins a line.
func TestEnds(t *testing.T) {
	const notice, text = `{"delta_kind":"custom","event_type":"notice","delta":{"text":"no such luck"}}`, `{"delta_kind":"text","delta":"Hi"}`
	failed := failure(codeInternal, "no such luck")
	for _, c := range []struct {
		frames []string
		err    error
		want   string

		cancelled bool
	}{
		{frames: []string{text, notice}, cancelled: true},
		{frames: []string{text}},
		{frames: []string{text, notice}, err: nil, want: "\n\nno such luck"},
		{frames: []string{notice}, err: nil, want: "no such luck"},
		{frames: []string{notice}, err: failed, want: ""},
		{frames: []string{text, notice}, err: failed, want: "\n\n"},
		{frames: []string{text, notice}, err: failure(codeInternal, "another"), want: "\n\nno such luck|\n\n"},
		{frames: []string{`{"delta_kind":"text","delta":"Hi\n"}`}, err: failed, want: ""},
	} {
		tell, told := telling(t, `{}`)
		for _, frame := range c.frames {
			var body map[string]any
			if err := json.Unmarshal([]byte(frame), &body); err != nil {
				t.Fatal(err)
			}
			if err := tell.tell(e2a.Response{Kind: e2a.KindChunk, Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		told()
		if err := tell.end(c.err, c.cancelled); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.SplitSeq(told(), "\n") {
			var u struct{ Content struct{ Text string } }
			if line != "" && json.Unmarshal([]byte(line), &u) == nil {
				got = append(got, u.Content.Text)
			}
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%v, %v: %q, want %q", c.frames, c.err, got, c.want)
		}
	}
}

// TestStopReasons has a row for each reason that results give.
func TestStopReasons(t *testing.T) {
	for said, want := range map[string]string{
		"end_turn": "end_turn", "cancelled": "cancelled", "rejected": "end_turn", "loop": "max_turn_requests",
		"max_tokens": "max_tokens", "max_turn_requests": "max_turn_requests", "refusal": "refusal", "": "end_turn", "other": "end_turn",
	} {
		if got := (&turn{}).reason(said); got != want {
			t.Errorf("%s: %s", said, got)
		}
	}
	if got := (&turn{asked: true}).reason("cancelled"); got != "end_turn" { // the question ended it
		t.Errorf("a question: %s", got)
	}
}

// TestRPCErrors has a row for each failure that a final frame tells.
func TestRPCErrors(t *testing.T) {
	for code, want := range map[string]int64{
		"E2A.INVALID_PARAMS": codeParams, "E2A.NOT_FOUND": codeNotFound, "E2A.AGENT_ERROR": codeInternal, "E2A.UNKNOWN_METHOD": codeInternal, "E2A.DISCONNECTED": codeInternal,
	} {
		_, err := resultOf(e2a.Response{Kind: e2a.KindError, Body: map[string]any{"code": code, "message": "why"}})
		if got := asError(err); got.Code != want || got.Message != "why" || got.Data.(object)["e2a_code"] != code {
			t.Errorf("%s: %+v", code, got)
		}
	}
}

// Names of agents are the user's: their first letter may be any.
func TestTitle(t *testing.T) {
	for id, want := range map[string]string{"code": "Code", "écrivain": "Écrivain", "": "", "漢": "漢"} {
		if got := title(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}
