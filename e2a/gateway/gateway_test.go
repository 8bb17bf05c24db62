package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/e2a"
)

const session = "session_id"

// A turn with a tool is sent in order: reasoning, text, the stages of the call, the end.
func TestTurn(t *testing.T) {
	r := newRig(t, `
turns:
  - steps:
      - reasoning: let me see
        text: I look.
        calls: [{id: c1, tool: eca__read_file, arguments: {path: "${workspace}/notes.txt"}}]
        usage: {input: 10, output: 5}
      - text: 'It says: ${result:(?s)(.*)}'
        usage: {input: 20, output: 7, cacheRead: 3}
  - steps: [{text: Second.}]
`)
	r.Write("notes.txt", "the answer is 42\n")
	c := r.connect()
	frames := c.answer(c.say(map[string]any{"method": "chat.send", "channel": "test", "is_stream": true, "params": map[string]any{"content": "What do the notes say?"}}))
	if got, want := summarize(frames), "reasoning text prepare run running called text e2a.complete"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	last := frames[len(frames)-1]
	res := result(t, last)
	if s := fmt.Sprint(res["content"]); !strings.Contains(s, "I look.") || !strings.Contains(s, "the answer is 42") || res["stop_reason"] != "end_turn" {
		t.Errorf("%v", res)
	}
	if u := fmt.Sprint(res["usage"]); !strings.Contains(u, "cache_read_tokens:3") || !strings.Contains(u, "input_tokens:30") || !strings.Contains(u, "output_tokens:12") {
		t.Error(u)
	}
	if last.SessionID == nil || *last.Channel != "test" || *last.Method != "chat.send" || !last.IsStream {
		t.Errorf("%+v", last)
	}
	for _, f := range frames {
		if d, ok := tool(f); ok && (d["id"] != "c1" || d["name"] != "read_file" || d["server"] != "eca" || d["origin"] != "native" || d["outputs"] == nil || d["manual_approval"] != false) {
			t.Errorf("%v", d)
		}
	}
	again := c.call(map[string]any{"method": "chat.send", session: *last.SessionID, "params": map[string]any{"prompt": []any{map[string]any{"type": "text", "text": "And?"}}}})
	if res := result(t, again); res["content"] != "Second." || *again.SessionID != *last.SessionID {
		t.Errorf("%v", again)
	}
	history := c.answer(c.say(map[string]any{"method": "history.get", session: *last.SessionID}))
	if got, want := summarize(history), "reasoning text prepare run running called text e2a.complete"; got != want {
		t.Errorf("history: %s, want %s", got, want)
	}
	said := 0
	for _, f := range history {
		if body(f.Body)["event_type"] == "user_message" {
			said++
		}
	}
	if said != 2 {
		t.Errorf("the user said %d things", said)
	}
}

const writes = `
turns: []
default:
  steps:
    - calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "hello"}}]
    - text: 'Then: ${result:(?s)(.*)}'
`

// Calls that ask wait for chat.approve or chat.reject.
func TestApproval(t *testing.T) {
	r := newRig(t, writes)
	c := r.connect()
	for _, approve := range []bool{false, true} {
		id := fmt.Sprint("chat-", approve)
		request := c.say(map[string]any{"method": "chat.send", session: id, "params": map[string]any{"text": "Write."}})
		frames := c.readUntil(request, asks)
		call, _ := tool(frames[len(frames)-1])
		if call["permission"] == nil || call["details"] == nil {
			t.Errorf("%v", call)
		}
		method := "chat.reject"
		if approve {
			method = "chat.approve"
		}
		c.say(map[string]any{"method": method, session: id, "params": map[string]any{"tool_call_id": "c1", "go_on": true}})
		rest := c.answer(request)
		_, err := os.Stat(filepath.Join(r.Root, "out.txt"))
		if approve != (err == nil) || result(t, rest[len(rest)-1])["stop_reason"] != "end_turn" {
			t.Errorf("approve %v: %v, %s", approve, err, summarize(rest))
		}
	}
	stopped := c.say(map[string]any{"method": "chat.send", session: "chat-3", "params": map[string]any{"text": "Write."}})
	c.readUntil(stopped, asks)
	c.say(map[string]any{"method": "chat.reject", session: "chat-3", "params": map[string]any{"tool_call_id": "c1"}})
	frames := c.answer(stopped)
	if got := result(t, frames[len(frames)-1])["stop_reason"]; got != "rejected" {
		t.Errorf("a call that is refused without more ends the turn: %v", got)
	}
}

// A caller that has left cannot decide: calls that ask are refused, and the answer still completes.
func TestCallerOfLinesLeaves(t *testing.T) {
	r := newRig(t, writes)
	c := r.connect()
	request := c.say(map[string]any{"method": "chat.send", "params": map[string]any{"text": "Write."}})
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	frames := c.answer(request)
	if got := result(t, frames[len(frames)-1]); !strings.Contains(fmt.Sprint(got["content"]), "Then:") {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(r.Root, "out.txt")); err == nil {
		t.Error("the call wrote the file without an approval")
	}
	if _, err := c.out.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

// When the program has to end, it answers all running envelopes: each gets its final frame.
func TestTheProgramEnds(t *testing.T) {
	for _, model := range []string{writes, hangs} {
		r := newRig(t, model)
		c := r.connect()
		request := c.say(map[string]any{"method": "chat.send", "params": map[string]any{"text": "Go"}})
		if <-r.Heard; model == writes {
			c.readUntil(request, asks)
		}
		c.stop()
		frames := c.answer(request)
		if got := code(t, frames[len(frames)-1]); got != "E2A.DISCONNECTED" {
			t.Error(got)
		}
		if _, err := c.out.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last frame: %v", err)
		}
	}
}

const hangs = `
turns: []
default: {steps: [{text: "one two three four", delay: 1h}]}
`

// A stopped turn is complete, not failed.
func TestInterrupt(t *testing.T) {
	r := newRig(t, hangs)
	c := r.connect()
	request := c.say(map[string]any{"method": "chat.send", session: "s", "params": map[string]any{"query": "Go"}})
	<-r.Heard
	stop := c.say(map[string]any{"method": "chat.interrupt", session: "s"})
	var stopped, ended bool
	for !stopped || !ended {
		f := c.frame()
		switch {
		case *f.RequestID == stop:
			stopped = true
			if result(t, f)["interrupted"] != true {
				t.Errorf("%v", body(f.Body))
			}
		case f.IsFinal && *f.RequestID == request:
			ended = true
			if result(t, f)["stop_reason"] != "cancelled" {
				t.Errorf("%v", body(f.Body))
			}
		}
	}
	if res := result(t, c.call(map[string]any{"method": "chat.interrupt", session: "s"})); res["interrupted"] != false {
		t.Errorf("%v", res)
	}
}

// When a model fails, the answer ends with an e2a.error, after all the model's output.
func TestModelFails(t *testing.T) {
	r := newRig(t, `
turns: []
default: {steps: [{text: So far, error: {status: 400, message: "no such thing: sk-mock-0123456789"}}]}
`)
	c := r.connect()
	f := c.call(map[string]any{"method": "chat.send", "params": map[string]any{"text": "Go"}})
	if code(t, f) != "E2A.AGENT_ERROR" || strings.Contains(string(f.Body), "0123456789") || fmt.Sprint(body(f.Body)["message"]) == "" {
		t.Errorf("%v", body(f.Body))
	}
}

// The model's question is shown and answered in the same turn.
func TestQuestion(t *testing.T) {
	r := newRig(t, `
turns: []
default:
  steps:
    - calls: [{id: q1, tool: eca__ask_user, arguments: {question: "Which one?", options: [{label: A}, {label: B}]}}]
    - text: 'You said ${result:(?s)(.*)}'
`)
	c := r.connect()
	request := c.say(map[string]any{"method": "chat.send", session: "s", "params": map[string]any{"text": "Ask me."}})
	frames := c.readUntil(request, func(f e2a.Response) bool { return body(f.Body)["event_type"] == "question" })
	q, _ := body(frames[len(frames)-1].Body)["delta"].(map[string]any)
	if q["text"] != "Which one?" || q["tool_call_id"] != "q1" || len(q["options"].([]any)) != 2 {
		t.Errorf("%v", q)
	}
	c.say(map[string]any{"method": "chat.answer", session: "s", "params": map[string]any{"question_id": q["question_id"], "answer": "B"}})
	rest := c.answer(request)
	if got := fmt.Sprint(result(t, rest[len(rest)-1])["content"]); !strings.Contains(got, "You said") || !strings.Contains(got, "B") {
		t.Error(got)
	}
}

// TestMethods checks the small methods, and errors in calls.
func TestMethods(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: hello}]}")
	c := r.connect()
	if f := c.call(map[string]any{}); f.Kind != e2a.KindComplete || f.Sequence != 0 {
		t.Errorf("a heartbeat: %v", f)
	}
	made := result(t, c.call(map[string]any{"method": "session.create"}))
	id := fmt.Sprint(made[session])
	if f := c.call(map[string]any{"method": "chat.send", session: id, "params": map[string]any{"text": "x", "model": "mock/n"}}); result(t, f)["content"] != "hello" {
		t.Errorf("%v", body(f.Body))
	}
	if info := result(t, c.call(map[string]any{"method": "session.load", session: id})); info["model"] != "mock/n" || info["running"] != false {
		t.Errorf("%v", info)
	}
	if info := result(t, c.call(map[string]any{"method": "config.set", session: id, "params": map[string]any{"model": "m", "agent": "plan", "trust": true}})); info["model"] != "mock/m" || info["agent"] != "plan" || info["trust"] != true {
		t.Errorf("%v", info)
	}
	list, _ := result(t, c.call(map[string]any{"method": "session.list", "params": map[string]any{"limit": 5}}))["sessions"].([]any)
	if len(list) != 1 || list[0].(map[string]any)[session] != id {
		t.Errorf("%v", list)
	}
	for _, bad := range []struct {
		e    map[string]any
		code string
	}{
		{map[string]any{"method": "no.such"}, "E2A.UNKNOWN_METHOD"},
		{map[string]any{"method": "chat.send"}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "chat.send", "params": map[string]any{"text": "x", "model": "none/such"}}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "chat.send", "params": map[string]any{"text": "x", "agent": "nobody"}}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "chat.send", session: "a\nb", "params": map[string]any{"text": "x"}}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "chat.approve", session: id}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "chat.approve", session: id, "params": map[string]any{"tool_call_id": "x", "save": "forever"}}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "chat.reject", session: "other", "params": map[string]any{"tool_call_id": "x"}}, "E2A.NOT_FOUND"},
		{map[string]any{"method": "chat.answer", "params": map[string]any{"question_id": "x"}}, "E2A.NOT_FOUND"},
		{map[string]any{"method": "chat.interrupt"}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "session.load", session: "other"}, "E2A.NOT_FOUND"},
		{map[string]any{"method": "history.get"}, "E2A.INVALID_PARAMS"},
		{map[string]any{"method": "config.set", session: id, "params": map[string]any{"model": "none/such"}}, "E2A.INVALID_PARAMS"},
	} {
		if f := c.call(bad.e); body(f.Body)["code"] != bad.code || f.Kind != e2a.KindError {
			t.Errorf("%v: %v, want %s", bad.e, f.Body, bad.code)
		}
	}
	result(t, c.call(map[string]any{"method": "session.delete", session: id}))
	if f := c.call(map[string]any{"method": "session.load", session: id}); code(t, f) != "E2A.NOT_FOUND" {
		t.Errorf("%v", body(f.Body))
	}
}

// Lines that are not envelopes get a final frame each, and the next line is served.
func TestBadLines(t *testing.T) {
	c := newRig(t, "turns: []\ndefault: {steps: [{text: hello}]}").connect()
	for line, want := range map[string]string{
		`{`: "invalid-json E2A.INVALID_JSON", `[]`: "invalid-json E2A.INVALID_JSON", "\xff": "invalid-json E2A.INVALID_JSON",
		`{"request_id":"r9","params":[1]}`: "r9 E2A.INVALID_ENVELOPE",
		`{}`:                               "invalid-json E2A.INVALID_ENVELOPE",
		`{"request_id":"r9","metod":"chat.send","params":{"text":"x"}}`: "r9 E2A.INVALID_ENVELOPE",
		`{"request_id":"r9","method":"","ext_method":"x"}`:              "r9 E2A.INVALID_ENVELOPE",
	} {
		c.check = checker{} // they share a request id
		c.line(line)
		f := c.frame()
		if got := *f.RequestID + " " + code(t, f); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		if kind := string(f.Provenance.Details["kind"]) == `"json_parse_error"`; kind != strings.HasSuffix(want, "INVALID_JSON") {
			t.Errorf("%s: provenance %v", line, f.Provenance)
		}
		if message := fmt.Sprint(body(f.Body)["message"]); strings.Contains(message, "Go ") || strings.Contains(message, "interface") {
			t.Errorf("%s: %s", line, message)
		}
	}
	c.line("")
	if f := c.call(map[string]any{}); f.Kind != e2a.KindComplete {
		t.Errorf("%v", body(f.Body))
	}
}

// TestPrompts checks which request the model gets for the blocks of a prompt (e2a.md 5.8).
func TestPrompts(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: '${user}'}]}")
	r.Write("a.txt", "from the file\n")
	c := r.connect()
	for _, v := range []struct{ name, prompt, want string }{
		{"two texts", `[{"type":"text","text":"one"},{"type":"text","text":"two"}]`, "one\ntwo"},
		{"resource", `[{"type":"resource","resource":{"uri":"file:///x","text":"inside"}}]`, "<context uri=\"file:///x\">\ninside\n</context>"},
		{"web link", `[{"type":"resource_link","uri":"https://x/y","name":"y"},{"type":"text","text":"see"}]`, "[Linked resource] y: https://x/y\nsee"},
		{"malformed", `[5,{"type":"text"},{"type":"nonsense"},{"type":"text","text":"ok"}]`, "ok"},
		{"file", fmt.Sprintf(`[{"type":"resource_link","uri":"file://%s","name":"a"}]`, filepath.ToSlash(filepath.Join(r.Root, "a.txt"))), "(see attached context)"},
	} {
		line := fmt.Sprintf(`{"request_id":%q,"method":"session/prompt","params":{"prompt":%s}}`, v.name, v.prompt)
		c.line(line)
		frames := c.answer(v.name)
		history := c.answer(c.say(map[string]any{"method": "history.get", session: *frames[0].SessionID}))
		var said any
		for _, f := range history {
			if d, ok := body(f.Body)["delta"].(map[string]any); ok && body(f.Body)["event_type"] == "user_message" {
				said = d["text"]
			}
		}
		if said != v.want {
			t.Errorf("%s: %q, want %q", v.name, said, v.want)
		}
	}
}

// A slow consumer gets every frame; when a consumer leaves, its turn is stopped.
func TestConsumers(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: 'word ', repeat: 2000}]}")
	method, id := "chat.send", "r1"
	e := e2a.Envelope{RequestID: &id, Method: &method, Params: e2a.Object{"text": json.RawMessage(`"Go"`)}}
	var check checker
	var text strings.Builder
	taken := make(chan e2a.Response)
	ended := make(chan error, 1)
	go func() {
		ended <- r.gateway.Run(context.Background(), e, func(f e2a.Response) error { taken <- f; return nil }, nil)
		close(taken)
	}()
	<-r.Heard // the model finishes before the first frame is taken
	for f := range taken {
		if err := check.check(f); err != nil {
			t.Fatal(err)
		}
		if body(f.Body)["delta_kind"] == "text" {
			fmt.Fprint(&text, body(f.Body)["delta"])
		}
	}
	if err := <-ended; err != nil || text.String() != strings.Repeat("word ", 2000) {
		t.Errorf("%v, %d bytes", err, text.Len())
	}
	gone := errors.New("gone")
	if err := r.gateway.Run(context.Background(), e, func(e2a.Response) error { return gone }, nil); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// The possible settings of a session and the commands can be read.
func TestChoices(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	c := r.connect()
	fresh := result(t, c.call(map[string]any{"method": "config.get"}))
	if fresh["agent"] != "code" || fresh["model"] != "mock/m" || fresh["session_id"] != nil || fmt.Sprint(fresh["models"]) != "[mock/m mock/n]" {
		t.Errorf("%v", fresh)
	}
	if s := fmt.Sprint(fresh["agents"]); !strings.Contains(s, "id:code") || !strings.Contains(s, "id:plan") {
		t.Error(s)
	}
	made := result(t, c.call(map[string]any{"method": "session.create"}))
	id := made["session_id"]
	result(t, c.call(map[string]any{"method": "config.set", session: id, "params": map[string]any{"agent": "plan", "model": "mock/n", "trust": true}}))
	if got := result(t, c.call(map[string]any{"method": "config.get", session: id})); got["agent"] != "plan" || got["model"] != "mock/n" || got["trust"] != true || got["session_id"] != id {
		t.Errorf("%v", got)
	}
	if got := code(t, c.call(map[string]any{"method": "config.get", session: "nobody"})); got != "E2A.NOT_FOUND" {
		t.Error(got)
	}
	result(t, c.call(map[string]any{"method": "model.sync"}))
	if s := fmt.Sprint(result(t, c.call(map[string]any{"method": "command.list"}))["commands"]); !strings.Contains(s, "name:compact") || !strings.Contains(s, "description:") {
		t.Error(s)
	}
}

// The output of a command is the answer, also in the history.
func TestCommandOutput(t *testing.T) {
	r := newRig(t, "turns: []\n")
	c := r.connect()
	frames := c.answer(c.say(map[string]any{"method": "chat.send", session: "s", "params": map[string]any{"text": "/help"}}))
	if got := summarize(frames); got != "text e2a.complete" {
		t.Error(got)
	}
	if content := fmt.Sprint(result(t, frames[len(frames)-1])["content"]); !strings.Contains(content, "`/compact") {
		t.Errorf("content %q", content)
	}
	if got := summarize(c.answer(c.say(map[string]any{"method": "history.get", session: "s"}))); got != "text e2a.complete" {
		t.Errorf("history: %s", got)
	}
	login := result(t, c.call(map[string]any{"method": "chat.send", session: "s", "params": map[string]any{"text": "/login nowhere"}}))
	if content := fmt.Sprint(login["content"]); !strings.Contains(content, "nowhere") {
		t.Errorf("content %q", content)
	}
}

// If a session accepts a prompt only after its caller has left, the turn is stopped, because no
// caller would follow it.
func TestLatePrompt(t *testing.T) {
	r := newRig(t, hangs)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for n := range 5 { // the session may be faster than the cancellation
		method, id, request := "chat.send", fmt.Sprint("s", n), "r"
		s, _, err := r.host.Engine().Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		e := e2a.Envelope{RequestID: &request, SessionID: &id, Method: &method, Params: e2a.Object{"text": json.RawMessage(`"Go"`)}}
		if err := r.gateway.Run(gone, e, func(e2a.Response) error { return nil }, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if reason := finishReason(t, s); reason != event.FinishedStopped {
			t.Errorf("the turn ended: %q", reason)
		}
	}
}

// finishReason returns why the first turn of a session ended; it must end.
func finishReason(t *testing.T, s *chat.Session) event.FinishReason {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range s.Events(ctx, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := e.Body.(event.TurnFinished); ok {
			return end.Reason
		}
	}
	t.Fatal("the turn did not end")
	return ""
}
