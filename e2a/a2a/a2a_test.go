package a2a_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/e2a/a2a"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

const talks = `
turns: []
default:
  steps: [{text: "One two."}]
`

const writes = `
turns: []
default:
  steps:
    - calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "hello"}}]
    - text: 'Then: ${result:(?s)(.*)}'
`

const hangs = `
turns: []
default:
  steps:
    - {text: x, calls: [{id: c1, tool: eca__read_file, arguments: {path: "${workspace}/notes.txt"}}]}
    - {text: never, delay: 1h}
`

// A message becomes a task with its answer, in both versions.
func TestSend(t *testing.T) {
	r := newRig(t, talks, "")
	task := r.call("SendMessage", userMessage("hi"))["task"].(object)
	if stateOf(task) != "COMPLETED" || answerOf(task) != "One two." || task["contextId"] == "" {
		t.Fatalf("%v", task)
	}
	if history, _ := task["history"].([]any); len(history) != 1 || textOf(history[0]) != "hi" {
		t.Errorf("history: %v", task["history"])
	}
	if usage, _ := task["metadata"].(object)["usage"].(object); usage["inputTokens"] == nil {
		t.Errorf("%v", task["metadata"])
	}
	got := r.call("GetTask", object{"id": task["id"], "historyLength": 0})
	if stateOf(got) != "COMPLETED" || got["history"] != nil || answerOf(got) != "One two." {
		t.Errorf("%v", got)
	}
	again := r.call("SendMessage", userMessage("more", object{"contextId": task["contextId"]}))["task"].(object)
	if again["contextId"] != task["contextId"] || again["id"] == task["id"] {
		t.Errorf("%v", again)
	}
	if n := r.fails("SendMessage", userMessage("more", object{"taskId": task["id"]})); n != -32004 {
		t.Errorf("a message to a task that ended: %d", n)
	}

	old := object{"message": object{"kind": "message", "messageId": "m", "role": "user", "parts": []any{object{"kind": "text", "text": "hi"}}}}
	legacy := r.call("message/send", old)
	status, _ := legacy["status"].(object)
	if legacy["kind"] != "task" || status["state"] != "completed" || !strings.Contains(answerOf(legacy), "One two.") {
		t.Errorf("0.3: %v", legacy)
	}
	events := r.stream("message/stream", old)
	var kinds []string
	final := any(nil)
	for e := events.event(); e != nil; e = events.event() {
		kinds = append(kinds, e["kind"].(string))
		final = e["final"]
	}
	if kinds[0] != "task" || kinds[len(kinds)-1] != "status-update" || final != true || !strings.Contains(strings.Join(kinds, " "), "artifact-update") {
		t.Errorf("0.3: %v, final %v", kinds, final)
	}
}

// A stream shows the task, then each piece, then the end.
func TestStream(t *testing.T) {
	r := newRig(t, talks, "")
	if got, want := r.stream("SendStreamingMessage", userMessage("hi")).readRest(), "SUBMITTED WORKING |One two.. COMPLETED"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A call that asks waits for the next message of its task, which must decide.
func TestInputRequired(t *testing.T) {
	r := newRig(t, writes, "")
	out := filepath.Join(r.Root, "out.txt")
	task := r.call("SendMessage", userMessage("write"))["task"].(object)
	if stateOf(task) != "INPUT_REQUIRED" {
		t.Fatalf("%v", task)
	}
	message := task["status"].(object)["message"].(object)
	parts := message["parts"].([]any)
	data, _ := parts[len(parts)-1].(object)["data"].(object)
	if data["tool_call_id"] != "c1" || data["name"] != "write_file" || data["arguments"].(object)["content"] != "hello" {
		t.Errorf("%v", data)
	}
	to := object{"taskId": task["id"]}
	if n := r.fails("SendMessage", userMessage("perhaps", to)); n != -32602 {
		t.Errorf("no decision: %d", n)
	}
	if n := r.fails("SendMessage", userMessage("other", object{"contextId": task["contextId"]})); n != -32004 {
		t.Errorf("a second task in the context: %d", n)
	}
	if _, err := os.Stat(out); err == nil {
		t.Fatal("the call ran without a decision")
	}
	decides := func(decision string) object {
		return object{"taskId": task["id"], "parts": []any{object{"data": object{"tool_call_id": "c1", "decision": decision}}}}
	}
	if got := r.stream("SendStreamingMessage", userMessage("", decides("approve"))).readRest(); !strings.HasPrefix(got, "WORKING |Then: ") || !strings.HasSuffix(got, ". COMPLETED") {
		t.Error(got)
	}
	if text, err := os.ReadFile(out); string(text) != "hello" {
		t.Errorf("%q %v", text, err)
	}

	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	task = r.call("SendMessage", userMessage("write"))["task"].(object)
	task = r.call("SendMessage", userMessage("No.", object{"taskId": task["id"]}))["task"].(object)
	if stateOf(task) != "COMPLETED" {
		t.Errorf("%v", task)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the refused call ran")
	}
}

// A task continues after its caller has disconnected. The caller can read it, subscribe to it again
// and cancel it.
func TestCancel(t *testing.T) {
	r := newRig(t, hangs, "")
	r.Write("notes.txt", "nothing\n")
	first := r.stream("SendStreamingMessage", userMessage("hi"))
	task := first.event()["task"].(object)
	id := object{"id": task["id"]}
	for e := first.event(); e["artifactUpdate"] == nil; e = first.event() {
	}
	_ = first.res.Body.Close()
	if got := r.call("GetTask", id); stateOf(got) != "WORKING" {
		t.Fatalf("%v", got)
	}
	second := r.stream("SubscribeToTask", id)
	if e := second.event()["task"]; e == nil || !strings.HasPrefix(answerOf(e.(object)), "x") {
		t.Errorf("%v", e)
	}
	if n := r.fails("SendMessage", userMessage("more", object{"taskId": task["id"]})); n != -32004 {
		t.Errorf("a message to a running task: %d", n)
	}
	if got := r.call("CancelTask", id); stateOf(got) != "CANCELED" {
		t.Errorf("%v", got)
	}
	if got := second.readRest(); !strings.HasSuffix(got, "CANCELED") {
		t.Error(got)
	}
	if n := r.fails("CancelTask", id); n != -32002 {
		t.Errorf("cancelling a cancelled task: %d", n)
	}
	if n := r.fails("SubscribeToTask", id); n != -32004 {
		t.Errorf("subscribing to a task that has ended: %d", n)
	}
	// Its context can be used again.
	now := userMessage("hi", object{"contextId": task["contextId"]})
	now["configuration"] = object{"returnImmediately": true}
	next := r.call("SendMessage", now)["task"].(object)
	if s := stateOf(next); s != "SUBMITTED" && s != "WORKING" {
		t.Errorf("%v", next)
	}
}

// Errors have the right code.
func TestErrors(t *testing.T) {
	r := newRig(t, talks, "")
	part := func(p object) object { return userMessage("", object{"parts": []any{p}}) }
	with := func(p object, key string, v any) object { p[key] = v; return p }
	for _, c := range []struct {
		name, method string
		params       any
		want         int
	}{
		{"unknown method", "Send", object{}, -32601},
		{"unknown task", "GetTask", object{"id": "x"}, -32001},
		{"no id", "GetTask", object{}, -32602},
		{"id of another type", "GetTask", object{"id": 7}, -32602},
		{"unknown task cancelled", "CancelTask", object{"id": "x"}, -32001},
		{"unknown task followed", "SubscribeToTask", object{"id": "x"}, -32001},
		{"message to an unknown task", "SendMessage", userMessage("hi", object{"taskId": "x"}), -32001},
		{"no message", "SendMessage", object{}, -32602},
		{"no parts", "SendMessage", userMessage("", object{"parts": []any{}}), -32602},
		{"empty text", "SendMessage", part(object{}), -32602},
		{"two contents", "SendMessage", part(object{"text": "a", "url": "b"}), -32602},
		{"no message id", "SendMessage", userMessage("hi", object{"messageId": ""}), -32602},
		{"role", "SendMessage", userMessage("hi", object{"role": "ROLE_AGENT"}), -32602},
		{"context", "SendMessage", userMessage("hi", object{"contextId": "a b"}), -32602},
		{"file of no use", "SendMessage", part(object{"raw": "AAAA", "mediaType": "application/zip"}), -32005},
		{"no base64", "SendMessage", part(object{"raw": "?", "mediaType": "image/png"}), -32602},
		{"output", "SendMessage", with(userMessage("hi"), "configuration", object{"acceptedOutputModes": []any{"video/mp4"}}), -32005},
		{"history", "GetTask", object{"id": "x", "historyLength": -1}, -32602},
		{"params", "GetTask", []any{}, -32602},
	} {
		if got := r.fails(c.method, c.params); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for body, want := range map[string]int{
		`{`: -32700, `[]`: -32600, `"x"`: -32600, `{}`: -32600,
		`{"jsonrpc":"1.0","id":1,"method":"GetTask"}`:        -32600,
		`{"jsonrpc":"2.0","id":1}`:                           -32600,
		`{"jsonrpc":"2.0","id":{},"method":"GetTask"}`:       -32600,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                -32600,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/nought"}`: -32601,
	} {
		if got := code(t, r.answer(r.post(body, nil))); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
	for version, want := range map[string]int{"2.0": -32009, "x": -32009, "1.0": -32001, "0.3": -32001, "1.0.3": -32001} {
		got := code(t, r.answer(r.post(r.body("GetTask", object{"id": "x"}), func(q *http.Request) { q.Header.Set("A2A-Version", version) })))
		if got != want {
			t.Errorf("version %s: %d, want %d", version, got, want)
		}
	}
	plain := r.post(r.body("GetTask", object{"id": "x"}), func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") })
	if got := code(t, r.answer(plain)); got != -32005 || plain.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d %d", plain.StatusCode, got)
	}
	long := r.post(`{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("x", 33<<20)+`"}`, nil)
	_ = long.Body.Close()
	if long.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("33 MiB: %d", long.StatusCode)
	}
}

// Tasks are listed page by page, the last changed ones first.
func TestList(t *testing.T) {
	r := newRig(t, talks, "")
	made := map[any]bool{}
	for range 5 {
		made[r.call("SendMessage", userMessage("hi"))["task"].(object)["id"]] = true
	}
	page := r.call("ListTasks", object{"pageSize": 2, "historyLength": 0})
	pages, seen := 1, map[any]bool{}
	for {
		for _, v := range page["tasks"].([]any) {
			task := v.(object)
			if seen[task["id"]] || !made[task["id"]] || task["artifacts"] != nil || task["history"] != nil {
				t.Errorf("%v", task)
			}
			seen[task["id"]] = true
		}
		if page["totalSize"] != 5.0 || page["pageSize"] != 2.0 {
			t.Errorf("%v", page)
		}
		if page["nextPageToken"] == "" {
			break
		}
		pages++
		page = r.call("ListTasks", object{"pageSize": 2, "historyLength": 0, "pageToken": page["nextPageToken"]})
	}
	if len(seen) != 5 || pages != 3 {
		t.Errorf("%d tasks on %d pages", len(seen), pages)
	}
	if n := len(r.call("ListTasks", object{"status": "TASK_STATE_WORKING"})["tasks"].([]any)); n != 0 {
		t.Errorf("%d work", n)
	}
	for _, bad := range []object{{"pageSize": 0}, {"pageSize": 101}, {"pageToken": "?"}, {"status": "busy"}, {"historyLength": -1}, {"statusTimestampAfter": "now"}} {
		if n := r.fails("ListTasks", bad); n != -32602 {
			t.Errorf("%v: %d", bad, n)
		}
	}
}

// The card is public; other requests need the token and the right host, and must not come from
// foreign pages.
func TestAccess(t *testing.T) {
	r := newRig(t, talks, "s3cret")
	get := func(change func(*http.Request)) (int, http.Header, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+a2a.CardPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header, string(body)
	}
	status, header, card := get(func(*http.Request) {})
	if status != http.StatusOK || header.Get("ETag") == "" || header.Get("Cache-Control") == "" || header.Get("Last-Modified") == "" {
		t.Errorf("card: %d %v", status, header)
	}
	for _, want := range []string{`"url":"` + r.url + `/a2a"`, `"version":"1.2.3"`, `"httpAuthSecurityScheme"`, `"streaming":true`} {
		if !strings.Contains(card, want) {
			t.Errorf("the card has no %s: %s", want, card)
		}
	}
	if status, _, _ := get(func(q *http.Request) { q.Header.Set("If-None-Match", header.Get("ETag")) }); status != http.StatusNotModified {
		t.Errorf("the same card: %d", status)
	}
	if status, _, _ := get(func(q *http.Request) { q.Host = "evil.example" }); status != http.StatusForbidden {
		t.Errorf("the card under another name: %d", status)
	}
	port := r.url[strings.LastIndex(r.url, ":"):]
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"as it should be", func(*http.Request) {}, 200},
		{"own page", func(q *http.Request) { q.Header.Set("Origin", "http://localhost"+port) }, 200},
		{"scheme in small letters", func(q *http.Request) { q.Header.Set("Authorization", "bearer s3cret") }, 200},
		{"no token", func(q *http.Request) { q.Header.Del("Authorization") }, 401},
		{"wrong token", func(q *http.Request) { q.Header.Set("Authorization", "Bearer s3cre") }, 401},
		{"other scheme", func(q *http.Request) { q.Header.Set("Authorization", "Basic s3cret") }, 401},
		{"page of others", func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") }, 403},
		{"page without a name", func(q *http.Request) { q.Header.Set("Origin", "null") }, 403},
		{"rebound name", func(q *http.Request) { q.Host = "evil.example" + port }, 403},
		{"other address", func(q *http.Request) { q.Host = "10.0.0.1" + port }, 403},
	} {
		res := r.post(r.body("ListTasks", object{}), c.change)
		_ = res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", c.name, res.StatusCode, c.want)
		}
	}
}

// Without a token, only this machine may call.
func TestLoopbackOnly(t *testing.T) {
	passed := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, c := range []struct {
		token, remote string
		want          int
	}{
		{"", "127.0.0.1:5", 418},
		{"", "[::1]:5", 418},
		{"", "[::ffff:127.0.0.1]:5", 418},
		{"", "192.0.2.1:5", 403},
		{"", "", 403},
		{"t", "192.0.2.1:5", 418},
	} {
		w := &recorder{}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:80"+a2a.CardPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr = c.remote
		a2a.Guard(httpguard.Options{Address: "127.0.0.1:80", Token: c.token}, passed).ServeHTTP(w, req)
		if w.status != c.want {
			t.Errorf("%+v: %d", c, w.status)
		}
	}
}

type recorder struct{ status int }

func (*recorder) Header() http.Header         { return http.Header{} }
func (*recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)    { r.status = status }

// The server disconnects a client that stops in the middle of a call.
func TestStalledCaller(t *testing.T) {
	s := a2a.New(a2a.Options{Version: "1"})
	t.Cleanup(s.Close)
	call := "POST " + a2a.Endpoint + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
	guarded := a2a.Guard(httpguard.Options{Address: "127.0.0.1:80", Token: "s3cret"}, s.Handler())
	for want, handler := range map[string]http.Handler{"400": s.Handler(), "401": guarded} {
		if answer, after := testkit.Stalled(t, &http.Server{Handler: handler}, call); !strings.HasPrefix(answer, "HTTP/1.1 "+want) || after > 2*time.Minute {
			t.Errorf("%s: %q after %s", want, answer, after)
		}
	}
}

// Authorized callers can read which agents and models exist.
func TestExtendedCard(t *testing.T) {
	r := newRig(t, talks, "s3cret")
	for _, method := range []string{"GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"} {
		card := r.call(method, object{})
		if legacy := method != "GetExtendedAgentCard"; card["name"] != "eca" || (card["url"] == r.url+a2a.Endpoint) != legacy || (card["security"] != nil) != legacy {
			t.Errorf("%v", card)
		}
		skills := map[any]bool{}
		for _, s := range card["skills"].([]any) {
			skills[s.(object)["id"]] = s.(object)["description"] != ""
		}
		if !skills["code"] || !skills["agent/code"] || !skills["agent/plan"] {
			t.Errorf("%v", skills)
		}
		more := card["capabilities"].(object)["extensions"].([]any)[0].(object)["params"].(object)
		if more["model"] != "mock/m" || len(more["models"].([]any)) != 2 || more["agent"] != "code" {
			t.Errorf("%v", more)
		}
	}
	res, err := http.Get(r.url + a2a.CardPath)
	if err != nil {
		t.Fatal(err)
	}
	public := r.answer(res)
	if capabilities := public["capabilities"].(object); capabilities["extendedAgentCard"] != true || capabilities["extensions"] != nil || public["supportsAuthenticatedExtendedCard"] != true {
		t.Errorf("%v", public)
	}
	plain := r.post(r.body("GetExtendedAgentCard", object{}), func(q *http.Request) { q.Header.Del("Authorization") })
	_ = plain.Body.Close()
	if plain.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d", plain.StatusCode)
	}
}
