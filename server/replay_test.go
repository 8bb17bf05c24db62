package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// lastingView returns what a client keeps of a chat: texts, reasoning, flags and tool calls in
// their order, with merged deltas and without temporary messages.
func lastingView(t *testing.T, chat string, heard []fake.Message) []string {
	t.Helper()
	var out []map[string]any
	for _, m := range heard {
		var p struct {
			ChatID  string
			Role    string
			Content map[string]any
		}
		if m.Method == "chat/cleared" {
			out = nil
		}
		if m.Method != "chat/contentReceived" {
			continue
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		if p.ChatID != chat {
			continue
		}
		c := p.Content
		c["role"] = p.Role
		switch c["type"] {
		case "progress", "usage", "metadata", "toolCallPrepare", "toolCallRunning":
			continue
		case "toolCallRun":
			continue // its content is repeated in the later stages
		}
		if n := len(out); n > 0 && c["type"] == out[n-1]["type"] && c["role"] == "assistant" && out[n-1]["role"] == "assistant" && c["id"] == out[n-1]["id"] {
			if text, ok := c["text"].(string); ok {
				out[n-1]["text"] = out[n-1]["text"].(string) + text
				continue
			}
		}
		out = append(out, c)
	}
	lines := make([]string, len(out))
	for i, c := range out {
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(raw)
	}
	return lines
}

// checkReplay opens a chat and compares the replay with the live messages.
func checkReplay(t *testing.T, r *rig, chat string, live []fake.Message) {
	t.Helper()
	mark := r.Mark()
	res := string(r.Call("chat/open", map[string]any{"chatId": chat}))
	if !strings.Contains(res, `"found":true`) {
		t.Fatalf("chat/open: %s", res)
	}
	var heard []fake.Message
	for _, m := range r.Since(mark) {
		if strings.HasPrefix(m.Method, "chat/") {
			heard = append(heard, m)
		}
	}
	want, got := lastingView(t, chat, live), lastingView(t, chat, heard)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the replay shows\n%s\nlive it was\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	prepared, ran := map[any]bool{}, map[any]bool{}
	for i, m := range heard {
		var p struct{ Content map[string]any }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		id := p.Content["id"]
		switch p.Content["type"] {
		case "progress":
			t.Errorf("progress in a replay: %s", m)
		case "toolCallPrepare":
			prepared[id] = true
			if p.Content["argumentsText"] != "" {
				t.Errorf("arguments in a replay's prepare: %s", m)
			}
		case "toolCallRun":
			ran[id] = true
			if p.Content["manualApproval"] != false {
				t.Errorf("a replay asks for approval: %s", m)
			}
		case "toolCallRunning", "toolCalled":
			if id != nil && (!prepared[id] || !ran[id]) { // without an id: the list of tasks is cleared
				t.Errorf("%d: toolCallPrepare or toolCallRun is missing before %s", i, m)
			}
		}
	}
	if len(heard) < 2 || heard[0].Method != "chat/cleared" || heard[1].Method != "chat/opened" {
		t.Errorf("the replay begins with %v", heard[:min(2, len(heard))])
	}
}

const talk = `
cassette: 1
default:
  steps:
    - reasoning: "let me think"
      text: "Looking."
      calls: [{id: call, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
    - {text: "That is all."}
turns: []
`

// newRigWithTurns returns a rig with a chat of n turns, and the names of its user messages.
func newRigWithTurns(t *testing.T, n int) (*rig, string, []string) {
	t.Helper()
	r := newRig(t, options{model: talk})
	r.Await(0, "the start", fake.Ready()) // tests check all messages after this
	const chat = "c-1"
	for i := range n {
		r.Call("chat/prompt", map[string]any{"chatId": chat, "message": fmt.Sprintf("prompt %d", i+1)})
		r.Await(0, "the end", fake.Times(i+1, "chat/contentReceived", `"finished"`))
	}
	var ids []string
	for _, m := range r.Since(0) {
		var p struct {
			Role    string
			Content struct{ ContentID string }
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Role == "user" {
			ids = append(ids, p.Content.ContentID)
		}
	}
	return r, chat, ids
}

// Covers: chat/open
func TestOpen(t *testing.T) {
	t.Parallel()
	r, chat, _ := newRigWithTurns(t, 3)
	checkReplay(t, r, chat, r.Since(0))
	mark := r.Mark()
	if got := string(r.Call("chat/open", map[string]any{"chatId": "nope"})); got != `{"found":false}` || len(r.Since(mark)) > 0 {
		t.Errorf("unknown chat: %s, %v", got, r.Since(mark))
	}
	// After a restart, it is the same.
	again := newRig(t, options{model: talk, root: r.root, state: r.state})
	again.Await(0, "the start", fake.Ready())
	checkReplay(t, again, chat, r.Since(0))
	// And it can continue.
	mark = again.Mark()
	again.Call("chat/prompt", map[string]any{"chatId": chat, "message": "more"})
	again.Await(mark, "the end", fake.Finished())
	for _, m := range again.Since(mark) {
		if m.Method == "chat/opened" {
			t.Error("a chat that is known was opened again")
		}
	}
	checkReplay(t, again, chat, append(r.Since(0), again.Since(mark)...))
}

type meta struct {
	Total, Returned            int
	BeforeCursor, AfterCursor  *string
	CompactionCursor           *string
	Code                       string
	Contents, Selection, Error json.RawMessage
}

// Pages, read backwards and forwards, add up to the whole chat.
//
// Covers: chat/history
func TestHistoryPages(t *testing.T) {
	t.Parallel()
	r, chat, ids := newRigWithTurns(t, 4)
	r.Call("chat/addFlag", map[string]any{"chatId": chat, "contentId": ids[1], "text": "here"})
	page := func(params map[string]any) (meta, []json.RawMessage) {
		t.Helper()
		params["chatId"] = chat
		var res struct {
			Meta     meta
			Contents []json.RawMessage
			Error    *meta
		}
		raw := r.Call("chat/history", params)
		if err := json.Unmarshal(raw, &res); err != nil {
			t.Fatal(err)
		}
		if res.Error != nil {
			res.Meta.Code = res.Error.Code
		}
		return res.Meta, res.Contents
	}
	all, whole := page(map[string]any{})
	if all.Total != all.Returned || all.BeforeCursor != nil || all.AfterCursor != nil || len(whole) < all.Total {
		t.Fatalf("the whole: %+v, %d contents", all, len(whole))
	}
	for _, limit := range []int{1, 2, 3, 7, 100} {
		var back, forth []json.RawMessage
		m, contents := page(map[string]any{"limit": limit})
		for back = contents; m.BeforeCursor != nil; back = append(contents, back...) {
			m, contents = page(map[string]any{"limit": limit, "before": *m.BeforeCursor})
			if m.Returned > limit || m.AfterCursor == nil {
				t.Fatalf("limit %d: %+v", limit, m)
			}
		}
		// Forward from the first message.
		first, contents := page(map[string]any{"limit": 1, "before": cursorOfSecond(t, page)})
		for m, forth = first, contents; m.AfterCursor != nil; forth = append(forth, contents...) {
			m, contents = page(map[string]any{"limit": limit, "after": *m.AfterCursor})
		}
		for name, got := range map[string][]json.RawMessage{"backwards": back, "forwards": forth} {
			if g, w := texts(t, got), texts(t, whole); g != w {
				t.Errorf("limit %d, %s:\n%s\nwant\n%s", limit, name, g, w)
			}
		}
	}
	if m, _ := page(map[string]any{"before": "???"}); m.Code != "invalid_request" {
		t.Errorf("a bad cursor: %+v", m)
	}
	m, _ := page(map[string]any{"limit": 1})
	r.Call("chat/clear", map[string]any{"chatId": chat, "messages": true})
	if m, _ := page(map[string]any{"before": *m.BeforeCursor}); m.Code != "cursor_expired" {
		t.Errorf("a stale cursor: %+v", m)
	}
	if got := string(r.Call("chat/history", map[string]any{"chatId": "nope"})); !strings.Contains(got, `"code":"chat_not_found"`) {
		t.Errorf("unknown chat: %s", got)
	}
}

// cursorOfSecond returns the cursor of the second message; only the first message is before it.
func cursorOfSecond(t *testing.T, page func(map[string]any) (meta, []json.RawMessage)) string {
	t.Helper()
	m, _ := page(map[string]any{})
	m, _ = page(map[string]any{"limit": m.Total - 1})
	return *m.BeforeCursor
}

// texts renders contents without usage. It leaves out announcements, because a page that begins
// within a tool call announces the call again.
func texts(t *testing.T, contents []json.RawMessage) string {
	t.Helper()
	var b strings.Builder
	for _, raw := range contents {
		if s := string(raw); !strings.Contains(s, `"type":"usage"`) && !strings.Contains(s, `"type":"toolCallPrepare"`) && !strings.Contains(s, `"type":"toolCallRun`) {
			b.WriteString(s + "\n")
		}
	}
	return b.String()
}

// A window shows only its messages, with the context that they need.
func TestOpenWindow(t *testing.T) {
	t.Parallel()
	r, chat, _ := newRigWithTurns(t, 3)
	mark := r.Mark()
	// The last two: a tool's result and the answer after it.
	var res struct{ Meta meta }
	if err := json.Unmarshal(r.Call("chat/open", map[string]any{"chatId": chat, "limit": 2}), &res); err != nil {
		t.Fatal(err)
	}
	if res.Meta.Returned != 2 || res.Meta.BeforeCursor == nil || res.Meta.AfterCursor != nil {
		t.Errorf("meta %+v", res.Meta)
	}
	var types []string
	for _, m := range r.Since(mark) {
		var p struct{ Content struct{ Type string } }
		_ = json.Unmarshal(m.Params, &p)
		if p.Content.Type != "" {
			types = append(types, p.Content.Type)
		}
	}
	if got := strings.Join(types, " "); got != "toolCallPrepare toolCallRun toolCallRunning toolCalled text usage" {
		t.Errorf("contents: %s", got)
	}
	// The chat continues after the window.
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": chat, "message": "more"})
	r.Await(mark, "the end", fake.Finished())
	if got := lastingView(t, chat, r.Since(mark)); len(got) != 7 {
		t.Errorf("the turn behind the window: %v", got)
	}
}

// A chat that is opened while it runs is shown up to the current event, and continues.
func TestOpenWhileRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - steps:
      - text: "one two three four five six "
        repeat: 40
        delay: 1ms
        calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a", content: "x"}}]
      - {text: "END"}
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	for range 5 {
		r.Await(0, "some text", fake.Content("text", `"assistant"`))
		r.Call("chat/open", map[string]any{"chatId": "c"})
	}
	r.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
	mark := r.Mark()
	r.Call("chat/open", map[string]any{"chatId": "c"})
	r.Await(mark, "the question again", fake.Content("toolCallRun", `"manualApproval":true`))
	r.Await(mark, "the status", fake.Contains("chat/statusChanged", `"running"`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
	r.Await(mark, "the end", fake.Finished())
	got := lastingView(t, "c", r.Since(0))
	want := strings.Repeat("one two three four five six ", 40)
	if len(got) != 4 || !strings.Contains(got[1], `"`+want+`"`) || !strings.Contains(got[3], "END") {
		t.Errorf("the client has %q", got)
	}
}

// If the daemon died during a call, the chat shows the call as ended, and the prompt that continues
// the chat has one end.
func TestOpenAfterDeath(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - {user: go, steps: [{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a", content: "x"}}]}]}
  - {user: on, steps: [{text: "END"}]}
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(0, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
	// The store at this moment is what a killed daemon leaves.
	dead := tempDir(t)
	for _, name := range []string{"chats.db", "chats.db-wal"} {
		data, err := os.ReadFile(filepath.Join(r.state, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dead, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := newRig(t, options{model: "cassette: 1\ndefault:\n  steps:\n    - {text: END}\nturns: []\n", root: r.root, state: dead})
	mark := again.Mark()
	again.Call("chat/open", map[string]any{"chatId": "c"})
	again.Await(mark, "the end of the call", fake.Content("toolCallRejected", `"id":"call_1"`))
	for _, m := range again.Since(mark) {
		if strings.Contains(string(m.Params), `"manualApproval":true`) || m.Method == "chat/statusChanged" {
			t.Errorf("a dead turn looks alive: %s", m)
		}
	}
	mark = again.Mark()
	again.Call("chat/prompt", map[string]any{"chatId": "c", "message": "on"})
	again.Await(mark, "the end", fake.Content("text", "END"))
	again.Await(mark, "the end", fake.Finished())
	ends := 0
	for _, m := range again.Since(mark) {
		if strings.Contains(string(m.Params), `"finished"`) {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d ends of one turn", ends)
	}
}
