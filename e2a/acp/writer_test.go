package acp

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// newRecordedWriter returns a writer whose updates are recorded.
func newRecordedWriter(t *testing.T, capabilities string) (w *updateWriter, updates func() string) {
	t.Helper()
	var sent []string
	n := 0
	a := &agent{
		ctx:  t.Context(),
		opts: Options{NewID: func() string { n++; return fmt.Sprint("id", n) }}, log: slog.New(slog.DiscardHandler),
		conn: jsonrpc.NewConn(strings.NewReader(""), io.Discard, jsonrpc.Options{Codec: jsonrpc.Lines, Trace: func(_ bool, body []byte) {
			sent = append(sent, string(body))
		}}),
	}
	t.Cleanup(a.conn.Close)
	if err := json.Unmarshal([]byte(capabilities), &a.client.Capabilities); err != nil {
		t.Fatal(err)
	}
	s := &session{agent: a, id: "s", instance: &instance{Setup: Setup{Folders: []string{"/w", "/more"}}}}
	w = newWriter(s, newDialog(t.Context(), s, &prompt{}))
	return w, func() string {
		var lines []string
		for _, line := range sent {
			var m struct {
				Method string
				Params struct {
					Update json.RawMessage
				}
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Method != "session/update" {
				t.Fatalf("%s: %v", line, err)
			}
			lines = append(lines, string(m.Params.Update))
		}
		sent = nil
		return strings.Join(lines, "\n")
	}
}

// show shows the items that result from events of a chat.
func show(t *testing.T, w *updateWriter, fold *transcript.Fold, bodies ...event.Body) {
	t.Helper()
	for _, body := range bodies {
		if c, ok := fold.Add(event.Event{Body: body}); ok {
			if err := w.Show(c); err != nil {
				t.Errorf("%+v: %v", body, err)
			}
		}
	}
}

// TestUpdates checks which updates result from events (acp-a2a.md C2). The rows of one group follow
// each other in one turn.
func TestUpdates(t *testing.T) {
	const all = `{"session":{"notices":{},"compaction":{}}}`
	price := 0.5
	type row struct {
		body event.Body
		want string
	}
	native := func(name string) event.Tool {
		return event.Tool{CallID: "c", Name: name, Server: "eca", Origin: "native"}
	}
	mine := event.Tool{CallID: "c", Name: "look", Server: "mine"}
	change := &event.Details{FileChange: &event.FileChange{Path: "/a", Diff: "@@ -3,1 +3,1 @@\n-x\n+y\n"}}
	tasks := &event.Details{Tasks: &event.Tasks{Tasks: []event.Task{
		{Subject: "A", Status: event.TaskDone, Priority: "high"}, {Subject: "B", Status: event.TaskInProgress}, {Subject: "C", Status: event.TaskPending, Priority: "low"},
	}}}
	for _, group := range []struct {
		name, capabilities string
		replay             bool
		rows               []row
	}{
		{"messages", `{}`, false, []row{
			{event.TextDelta{Text: "Hi"}, `{"content":{"text":"Hi","type":"text"},"messageId":"id1","sessionUpdate":"agent_message_chunk"}`},
			{event.Notice{Text: "Wait."}, ``},
			{event.TextDelta{Text: " you"}, `{"content":{"text":"\n\nWait.","type":"text"},"messageId":"id2","sessionUpdate":"agent_message_chunk"}` + "\n" + `{"content":{"text":" you","type":"text"},"messageId":"id3","sessionUpdate":"agent_message_chunk"}`},
			{event.ReasoningStarted{ID: "r1"}, ``},
			{event.ReasoningDelta{ID: "r1", Text: "hm"}, `{"content":{"text":"hm","type":"text"},"messageId":"r1","sessionUpdate":"agent_thought_chunk"}`},
			{event.ReasoningFinished{ID: "r1"}, ``},
			{event.TextDelta{Text: "again"}, `{"content":{"text":"again","type":"text"},"messageId":"id4","sessionUpdate":"agent_message_chunk"}`},
			{event.TurnStarted{}, ``},
			{event.Progress{Text: "x"}, ``},
			{event.HookStarted{}, ``},
			{event.Flag{}, ``},
			{event.TitleChanged{Title: "T"}, `{"sessionUpdate":"session_info_update","title":"T"}`},
			{event.TitleChanged{Title: "T"}, ``},
			{event.Notice{Text: "So it is."}, ``},
			{event.Notice{Text: " "}, `{"content":{"text":"\n\nSo it is.","type":"text"},"messageId":"id5","sessionUpdate":"agent_message_chunk"}`},
			{event.Compacted{Auto: true}, ``},
			{event.TasksCleared{}, `{"entries":[],"sessionUpdate":"plan"}`},
			{event.UsageReported{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ContextLimit: 100, TotalCost: &price}, `{"cost":{"amount":0.5,"currency":"USD"},"sessionUpdate":"usage_update","size":100,"used":10}`},
			{event.UsageReported{InputTokens: 1, ContextLimit: 100}, `{"sessionUpdate":"usage_update","size":100,"used":1}`},
			{event.UsageReported{InputTokens: 1}, ``},
			{event.UsageReported{InputTokens: 1, ContextLimit: 100, Purpose: "title"}, ``},
		}},
		{"with client capabilities", all, false, []row{
			{event.Notice{Text: "So it is."}, `{"sessionUpdate":"notice","severity":"info","title":"So it is."}`},
			{event.Compacted{}, `{"compactionId":"id1","sessionUpdate":"compaction_update","status":"completed"}`},
		}},
		{"replay", all, true, []row{
			{event.UserMessage{Text: "said", ContentID: "m"}, `{"content":{"text":"said","type":"text"},"messageId":"m","sessionUpdate":"user_message_chunk"}`},
			{event.Notice{Text: "gone"}, ``},
			{event.TextDelta{Text: "Hi"}, `{"content":{"text":"Hi","type":"text"},"messageId":"id1","sessionUpdate":"agent_message_chunk"}`},
			{event.UserMessage{Text: "and"}, `{"content":{"text":"and","type":"text"},"sessionUpdate":"user_message_chunk"}`},
			{
				event.ToolJudged{Tool: native("ask_user"), Summary: "Q: Which?", Arguments: json.RawMessage(`{"options":[{"description":"b","label":"a"}],"question":"Which?"}`)},
				`{"kind":"other","name":"eca__ask_user","sessionUpdate":"tool_call","status":"pending","title":"Q: Which?","toolCallId":"c"}` + "\n" +
					`{"kind":"other","rawInput":{"options":[{"description":"b","label":"a"}],"question":"Which?"},"sessionUpdate":"tool_call_update","title":"Q: Which?","toolCallId":"c"}` + "\n" +
					`{"content":{"text":"Which?\n- a: b","type":"text"},"messageId":"id2","sessionUpdate":"agent_message_chunk"}`,
			},
		}},
		{"replay with forms", `{"elicitation":{"form":{}}}`, true, []row{
			{event.ToolJudged{Tool: native("ask_user"), Summary: "Q", Arguments: json.RawMessage(`{"question":"Which?"}`)}, `{"kind":"other","name":"eca__ask_user","sessionUpdate":"tool_call","status":"pending","title":"Q","toolCallId":"c"}` + "\n" +
				`{"kind":"other","rawInput":{"question":"Which?"},"sessionUpdate":"tool_call_update","title":"Q","toolCallId":"c"}`},
		}},
		{"a call", `{}`, false, []row{
			{event.ToolProposed{Tool: native("edit_file"), Summary: "Editing"}, `{"kind":"edit","name":"eca__edit_file","sessionUpdate":"tool_call","status":"pending","title":"Editing","toolCallId":"c"}`},
			{event.ToolArgsDelta{CallID: "c", Text: "{"}, ``},
			{event.ToolJudged{Tool: native("edit_file"), Summary: "Edit a", Arguments: json.RawMessage(`{"path":"/a"}`), Details: change}, `{"content":[{"newText":"y\n","oldText":"x\n","path":"/a","type":"diff"}],"kind":"edit","locations":[{"line":3,"path":"/a"}],"rawInput":{"path":"/a"},"sessionUpdate":"tool_call_update","title":"Edit a","toolCallId":"c"}`},
			{event.ToolStarted{CallID: "c"}, `{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"c"}`},
			{event.ToolFinished{CallID: "c", Outputs: []string{"ok"}}, `{"content":[{"newText":"y\n","oldText":"x\n","path":"/a","type":"diff"}],"rawOutput":{"error":false,"outputs":["ok"]},"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"c"}`},
		}},
		{"a call with a relative path", `{}`, false, []row{
			{event.ToolProposed{Tool: native("read_file"), Summary: "Reading\u202e\x1b"}, `{"kind":"read","name":"eca__read_file","sessionUpdate":"tool_call","status":"pending","title":"Reading\\u202e\\u001b","toolCallId":"c"}`},
			{event.ToolJudged{Tool: native("read_file"), Summary: "Reading b", Arguments: json.RawMessage(`{"line_offset":4,"path":"a/../b"}`)}, `{"kind":"read","locations":[{"line":5,"path":"/w/b"}],"rawInput":{"line_offset":4,"path":"a/../b"},"sessionUpdate":"tool_call_update","title":"Reading b","toolCallId":"c"}`},
		}},
		{"a call that fails", `{}`, false, []row{
			{event.ToolProposed{Tool: mine}, `{"kind":"other","name":"mine__look","sessionUpdate":"tool_call","status":"pending","title":"look","toolCallId":"c"}`},
			{event.ToolFinished{CallID: "c", Failed: true, Outputs: []string{"no"}, Images: []event.Image{{MediaType: "image/png", Data: []byte("x")}}}, `{"content":[{"content":{"text":"no","type":"text"},"type":"content"},{"content":{"data":"eA==","mimeType":"image/png","type":"image"},"type":"content"}],"rawOutput":{"error":true,"outputs":["no"]},"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"c"}`},
		}},
		{"a call that is refused", `{}`, false, []row{
			{event.ToolProposed{Tool: native("shell_command")}, `{"kind":"execute","name":"eca__shell_command","sessionUpdate":"tool_call","status":"pending","title":"shell_command","toolCallId":"c"}`},
			{event.ToolRejected{CallID: "c", Reason: "userConfigDeny"}, `{"content":[{"content":{"text":"Denied by the configuration.","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"c"}`},
		}},
		{"a subagent", `{}`, false, []row{
			{event.ToolProposed{Tool: native("spawn_agent")}, `{"kind":"think","name":"eca__spawn_agent","sessionUpdate":"tool_call","status":"pending","title":"spawn_agent","toolCallId":"c"}`},
			{event.ToolUpdated{CallID: "c", Details: &event.Details{Subagent: &event.Subagent{Agent: "explorer", Step: 2}}}, `{"content":[{"content":{"text":"Subagent explorer, step 2","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"c"}`},
		}},
		{"tasks", `{}`, false, []row{
			{event.ToolProposed{Tool: native("task")}, `{"kind":"think","name":"eca__task","sessionUpdate":"tool_call","status":"pending","title":"task","toolCallId":"c"}`},
			{event.ToolFinished{CallID: "c", Details: tasks}, `{"content":[],"rawOutput":{"error":false,"outputs":[]},"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"c"}` + "\n" +
				`{"entries":[{"content":"A","priority":"high","status":"completed"},{"content":"B","priority":"medium","status":"in_progress"},{"content":"C","priority":"low","status":"pending"}],"sessionUpdate":"plan"}`},
		}},
	} {
		w, updates := newRecordedWriter(t, group.capabilities)
		if group.replay {
			w.dialog = nil
		}
		fold := transcript.New()
		for _, row := range group.rows {
			show(t, w, fold, row.body)
			if got := updates(); got != row.want {
				t.Errorf("%s: %+v\ngot  %s\nwant %s", group.name, row.body, got, row.want)
			}
		}
	}
}

// TestEnds has a row for each way to end a turn: an error that the client gets is not also sent as
// a message, and the text that the client adds starts on a new line.
func TestEnds(t *testing.T) {
	notice, text := event.Notice{Text: "no such luck"}, event.TextDelta{Text: "Hi"}
	failed := failure(codeInternal, "no such luck")
	for _, c := range []struct {
		bodies []event.Body
		err    error
		want   string

		cancelled bool
	}{
		{bodies: []event.Body{text, notice}, cancelled: true},
		{bodies: []event.Body{text}},
		{bodies: []event.Body{text, notice}, err: nil, want: "\n\nno such luck"},
		{bodies: []event.Body{notice}, err: nil, want: "no such luck"},
		{bodies: []event.Body{notice, event.TurnFinished{}}, err: failed, want: ""},
		{bodies: []event.Body{text, notice, event.TurnFinished{}}, err: failed, want: "\n\n"},
		{bodies: []event.Body{text, notice}, err: failure(codeInternal, "another"), want: "\n\nno such luck|\n\n"},
		{bodies: []event.Body{event.TextDelta{Text: "Hi\n"}}, err: failed, want: ""},
	} {
		w, updates := newRecordedWriter(t, `{}`)
		show(t, w, transcript.New(), c.bodies...)
		updates()
		if err := w.end(c.err, c.cancelled); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.SplitSeq(updates(), "\n") {
			var u struct{ Content struct{ Text string } }
			if line != "" && json.Unmarshal([]byte(line), &u) == nil {
				got = append(got, u.Content.Text)
			}
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%v, %v: %q, want %q", c.bodies, c.err, got, c.want)
		}
	}
}

// TestStopReasons has a row for each stop reason of turns.
func TestStopReasons(t *testing.T) {
	for said, want := range map[turn.StopReason]turn.StopReason{
		turn.EndTurn: "end_turn", turn.Cancelled: "cancelled", turn.Rejected: "end_turn", turn.Loop: "max_turn_requests", turn.Budget: "max_turn_requests",
		turn.MaxTokens: "max_tokens", turn.Refusal: "refusal",
	} {
		if got := (&prompt{}).reason(said); got != want {
			t.Errorf("%s: %s", said, got)
		}
	}
	if got := (&prompt{endedWithQuestion: true}).reason(turn.Cancelled); got != "end_turn" { // the question ended it
		t.Errorf("a question: %s", got)
	}
}

// TestRPCErrors has a row for each kind of error of a turn.
func TestRPCErrors(t *testing.T) {
	for code, want := range map[turn.Code]int{
		turn.BadParams: codeParams, turn.NotFound: codeNotFound, turn.Failed: codeInternal, turn.Disconnected: codeInternal,
	} {
		got, err := json.Marshal(callError(turn.Errorf(code, "why")))
		if text := fmt.Sprintf(`{"code":%d,"message":"why","data":{"e2a_code":%q}}`, want, code); err != nil || string(got) != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
}

// Users choose the names of agents: the first letter may be any character.
func TestTitle(t *testing.T) {
	for id, want := range map[string]string{"code": "Code", "écrivain": "Écrivain", "": "", "漢": "漢"} {
		if got := title(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}
