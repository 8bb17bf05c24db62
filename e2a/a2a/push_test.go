package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/e2a/a2a"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
)

// receiver receives notifications. answer, unless it is nil, returns the status for each of them.
type receiver struct {
	t      testing.TB
	url    string
	came   chan notification
	answer func(n int) int

	mu sync.Mutex // guards n
	n  int
}

type notification struct {
	header http.Header
	body   object
}

func newReceiver(t testing.TB, answer func(n int) int) *receiver {
	r := &receiver{t: t, came: make(chan notification, 100), answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		var body object
		if err == nil {
			err = json.Unmarshal(data, &body)
		}
		if err != nil || req.Method != http.MethodPost {
			t.Errorf("%s %s: %v", req.Method, data, err)
		}
		r.mu.Lock()
		r.n++
		n := r.n
		r.mu.Unlock()
		status := http.StatusNoContent
		if r.answer != nil {
			status = r.answer(n)
		}
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		r.came <- notification{req.Header, body}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// readUntil returns the states of notifications up to a final one.
func (r *receiver) readUntil(end string) []string {
	r.t.Helper()
	var out []string
	for {
		n := <-r.came
		state := ""
		if task, ok := n.body["task"].(object); ok {
			state = stateOf(task)
		} else if status, ok := n.body["status"].(object); ok {
			state = fmt.Sprint(status["state"])
		}
		out = append(out, state)
		if state == end {
			return out
		}
	}
}

// allowPrivateHosts configures the server to send notifications to this machine.
func allowPrivateHosts(config daemontest.Object) {
	config["a2a"] = object{"push": object{"privateHosts": []any{"127.0.0.1"}}}
}

func pushRig(t testing.TB, model string, change func(*a2a.Options)) *rig {
	t.Helper()
	return startRig(t, daemontest.New(t, model, allowPrivateHosts), "", change)
}

// With a message's own configuration, each change of the task is sent in order, with the sender's
// authentication. Decisions about calls are changes, too.
func TestPush(t *testing.T) {
	r := pushRig(t, writes, nil)
	hook := newReceiver(t, nil)
	params := userMessage("write")
	params["configuration"] = object{"taskPushNotificationConfig": object{
		"url": hook.url + "/hook?x=1", "token": "tok", "authentication": object{"scheme": "Bearer", "credentials": "secret"},
	}}
	task := r.call("SendMessage", params)["task"].(object)
	first := <-hook.came
	for key, want := range map[string]string{
		"Content-Type": "application/a2a+json", "Authorization": "Bearer secret", "A2A-Notification-Token": "tok", "X-A2A-Notification-Token": "tok", "User-Agent": "eca/",
	} {
		if got := first.header.Get(key); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
	if told, _ := first.body["task"].(object); len(first.body) != 1 || told["id"] != task["id"] || stateOf(told) != "WORKING" || told["history"] != nil {
		t.Errorf("%v", first.body)
	}
	if got := hook.readUntil("INPUT_REQUIRED"); len(got) != 1 {
		t.Errorf("%v", got)
	}
	r.call("SendMessage", userMessage("yes", object{"taskId": task["id"]}))
	var last notification
	for state := ""; state != "COMPLETED"; state = stateOf(last.body["task"].(object)) {
		last = <-hook.came
	}
	if !strings.HasPrefix(answerOf(last.body["task"].(object)), "Then: ") {
		t.Errorf("%v", last.body)
	}
	// Data that would let a caller speak as eca is not shown to callers.
	id := object{"taskId": task["id"]}
	list := r.call("ListTaskPushNotificationConfigs", id)["configs"].([]any)
	if len(list) != 1 || strings.Contains(fmt.Sprint(list), "secret") || strings.Contains(fmt.Sprint(list), "tok ") {
		t.Errorf("%v", list)
	}
}

// Tests the methods about configurations in 1.0.
func TestPushConfigs(t *testing.T) {
	r := pushRig(t, talks, nil)
	task := r.call("SendMessage", userMessage("hi"))["task"].(object)["id"]
	with := func(id string, more object) object {
		o := object{"taskId": task, "id": id}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	url := object{"url": "https://example.com/hook"}
	made := r.call("CreateTaskPushNotificationConfig", with("a", object{"url": "https://example.com/hook", "token": "t", "authentication": object{"scheme": "Basic", "credentials": "Zm9v"}}))
	if made["id"] != "a" || made["taskId"] != task || made["token"] != "t" || made["authentication"].(object)["credentials"] != "Zm9v" {
		t.Errorf("%v", made)
	}
	got := r.call("GetTaskPushNotificationConfig", with("a", nil))
	if got["url"] != url["url"] || got["token"] != nil || got["authentication"].(object)["scheme"] != "Basic" || got["authentication"].(object)["credentials"] != nil {
		t.Errorf("%v", got)
	}
	if made := r.call("CreateTaskPushNotificationConfig", object{"taskId": task, "url": "https://example.com/x"}); made["id"] == "" {
		t.Errorf("%v", made)
	}
	r.call("CreateTaskPushNotificationConfig", with("a", object{"url": "https://example.com/other"})) // replaces the other one
	if list := r.call("ListTaskPushNotificationConfigs", with("", nil))["configs"].([]any); len(list) != 2 || list[0].(object)["url"] != "https://example.com/other" {
		t.Errorf("%v", list)
	}
	for range 2 { // deleting it again succeeds
		if out := r.call("DeleteTaskPushNotificationConfig", with("a", nil)); len(out) != 0 {
			t.Errorf("%v", out)
		}
	}
	for i := range 9 {
		r.call("CreateTaskPushNotificationConfig", with(fmt.Sprint("n", i), url))
	}
	long := strings.Repeat("x", 9<<10)
	for what, c := range map[string]struct {
		method string
		params object
		code   int
	}{
		"gone":              {"GetTaskPushNotificationConfig", with("a", nil), -32001},
		"no such task":      {"GetTaskPushNotificationConfig", object{"taskId": "nope", "id": "a"}, -32001},
		"no task":           {"ListTaskPushNotificationConfigs", object{}, -32602},
		"nothing to delete": {"DeleteTaskPushNotificationConfig", with("", nil), -32602},
		"too many":          {"CreateTaskPushNotificationConfig", with("b", url), -32602},
		"no url":            {"CreateTaskPushNotificationConfig", with("n1", nil), -32602},
		"no scheme":         {"CreateTaskPushNotificationConfig", with("n1", object{"url": url["url"], "authentication": object{"credentials": "x"}}), -32602},
		"two headers":       {"CreateTaskPushNotificationConfig", with("n1", object{"url": url["url"], "token": "x\r\nHost: y"}), -32602},
		"long token":        {"CreateTaskPushNotificationConfig", with("n1", object{"url": url["url"], "token": long}), -32602},
		"long id":           {"CreateTaskPushNotificationConfig", with(long, url), -32602},
		"wrong type":        {"CreateTaskPushNotificationConfig", with("n1", object{"url": 3}), -32602},
	} {
		if n := r.fails(c.method, c.params); n != c.code {
			t.Errorf("%s: %d", what, n)
		}
	}
}

// 0.3 has its own names and forms; its receivers get only the task.
func TestPushLegacy(t *testing.T) {
	r := pushRig(t, talks, nil)
	hook := newReceiver(t, nil)
	sent := object{
		"message":       object{"kind": "message", "messageId": "m", "role": "user", "parts": []any{object{"kind": "text", "text": "hi"}}},
		"configuration": object{"pushNotificationConfig": object{"url": hook.url, "token": "tok", "authentication": object{"schemes": []any{"Basic", "bearer"}, "credentials": "c"}}},
	}
	task := r.call("message/send", sent)["id"]
	first := <-hook.came
	if first.header.Get("Content-Type") != "application/json" || first.header.Get("X-A2A-Notification-Token") != "tok" || first.header.Get("Authorization") != "bearer c" || first.body["kind"] != "task" || first.body["id"] != task {
		t.Errorf("%v %v", first.header, first.body)
	}
	hook.readUntil("completed")
	made := r.call("tasks/pushNotificationConfig/set", object{"taskId": task, "pushNotificationConfig": object{"id": "a", "url": "https://example.com/a", "authentication": object{"schemes": []any{"Basic"}}}})
	inner, _ := made["pushNotificationConfig"].(object)
	if made["taskId"] != task || inner["id"] != "a" || fmt.Sprint(inner["authentication"]) != "map[schemes:[Basic]]" {
		t.Errorf("%v", made)
	}
	// The configuration from the message has the id of the task.
	if got := r.call("tasks/pushNotificationConfig/get", object{"id": task}); got["pushNotificationConfig"].(object)["id"] != task {
		t.Errorf("%v", got)
	}
	if got := r.call("tasks/pushNotificationConfig/get", object{"id": task, "pushNotificationConfigId": "a"}); got["pushNotificationConfig"].(object)["url"] != "https://example.com/a" {
		t.Errorf("%v", got)
	}
	list := func() []any {
		out, _ := r.answer(r.post(r.body("tasks/pushNotificationConfig/list", object{"id": task}), nil))["result"].([]any)
		return out
	}
	if got := list(); len(got) != 2 {
		t.Errorf("%v", got)
	}
	out := r.answer(r.post(r.body("tasks/pushNotificationConfig/delete", object{"id": task, "pushNotificationConfigId": "a"}), nil))
	if v, there := out["result"]; !there || v != nil || len(list()) != 1 {
		t.Errorf("%v, %v", out, list())
	}
}

// A notification that is not accepted is sent again with growing pauses, and later ones wait. One
// that can never be accepted is dropped at once.
func TestPushAgain(t *testing.T) {
	var mu sync.Mutex
	var pauses []time.Duration
	sleep := func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		pauses = append(pauses, d)
		return ctx.Err()
	}
	r := pushRig(t, talks, func(o *a2a.Options) { o.Sleep = sleep })
	send := func(hook *receiver) {
		params := userMessage("hi")
		params["configuration"] = object{"taskPushNotificationConfig": object{"url": hook.url}}
		r.call("SendMessage", params)
	}
	busy := newReceiver(t, func(n int) int { return []int{503, 429, 200}[min(n, 3)-1] })
	send(busy)
	if got := fmt.Sprint(busy.readUntil("COMPLETED")); got != "[WORKING WORKING WORKING COMPLETED]" {
		t.Errorf("%s", got)
	}
	mu.Lock()
	if got := fmt.Sprint(pauses); got != "[1s 2s]" {
		t.Errorf("%s", got)
	}
	pauses = nil
	mu.Unlock()

	refusing := newReceiver(t, func(n int) int { return []int{403, 308}[min(n, 2)-1] })
	send(refusing)
	if got := fmt.Sprint(refusing.readUntil("COMPLETED")); got != "[WORKING COMPLETED]" {
		t.Errorf("%s", got)
	}
	down := newReceiver(t, func(int) int { return 500 })
	send(down)
	var got []string
	for range 12 { // six attempts each
		got = append(got, stateOf((<-down.came).body["task"].(object)))
	}
	if want := append(slices.Repeat([]string{"WORKING"}, 6), slices.Repeat([]string{"COMPLETED"}, 6)...); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	r.stop()
	if n := len(refusing.came); n > 0 {
		t.Errorf("%d more requests to a receiver that refused or redirected", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if fmt.Sprint(pauses[:5]) != "[1s 2s 4s 8s 16s]" {
		t.Errorf("%v", pauses)
	}
}

// A deleted configuration receives nothing more, not even pending notifications.
func TestPushDeleted(t *testing.T) {
	waits, goOn := make(chan struct{}), make(chan struct{})
	r := pushRig(t, talks, func(o *a2a.Options) {
		o.Sleep = func(ctx context.Context, _ time.Duration) error {
			close(waits)
			<-ctx.Done()
			close(goOn)
			return ctx.Err()
		}
	})
	hook := newReceiver(t, func(int) int { return 503 })
	params := userMessage("hi")
	params["configuration"] = object{"taskPushNotificationConfig": object{"id": "a", "url": hook.url}}
	task := r.call("SendMessage", params)["task"].(object)["id"]
	<-waits
	r.call("DeleteTaskPushNotificationConfig", object{"taskId": task, "id": "a"})
	<-goOn
	r.stop() // waits for the delivery
	if n := len(hook.came); n != 1 {
		t.Errorf("%d notifications", n)
	}
}

// An address that nothing may be sent to is refused, and no task begins. If notifications are off,
// the methods and the card say so.
func TestPushGuards(t *testing.T) {
	hook := newReceiver(t, nil)
	r := startRig(t, daemontest.New(t, talks, nil), "", nil)
	port := hook.url[strings.LastIndexByte(hook.url, ':'):]
	for _, url := range []string{
		hook.url, "http://localhost" + port, "https://localhost" + port, "http://example.com/hook", "https://10.0.0.1/", "https://192.168.1.1/", "https://172.16.0.1/", "https://[::1]" + port,
		"https://169.254.169.254/latest/meta-data", "https://[::ffff:127.0.0.1]" + port, "https://[fe80::1]/", "https://0x7f000001" + port, "file:///etc/passwd", "https://u:p@example.com/", "not a url",
	} {
		params := userMessage("hi")
		params["configuration"] = object{"taskPushNotificationConfig": object{"url": url}}
		if n := r.fails("SendMessage", params); n != -32602 {
			t.Errorf("%s: %d", url, n)
		}
	}
	if len(r.call("ListTasks", object{})["tasks"].([]any)) != 0 {
		t.Error("a task was begun for a message that was refused")
	}
	if len(hook.came) > 0 {
		t.Error("the server sent a notification to a refused address")
	}

	off := startRig(t, daemontest.New(t, talks, func(c daemontest.Object) { c["a2a"] = object{"push": object{"enabled": false}} }), "", nil)
	task := off.call("SendMessage", userMessage("hi"))["task"].(object)["id"]
	for _, method := range []string{"CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"} {
		if n := off.fails(method, object{"taskId": task, "id": "a", "url": "https://example.com"}); n != -32003 {
			t.Errorf("%s: %d", method, n)
		}
	}
	params := userMessage("hi")
	params["configuration"] = object{"taskPushNotificationConfig": object{"url": "https://example.com"}}
	if n := off.fails("SendMessage", params); n != -32003 {
		t.Errorf("%d", n)
	}
	for r, want := range map[*rig]bool{r: true, off: false} {
		res, err := http.Get(r.url + a2a.CardPath)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.answer(res)["capabilities"].(object)["pushNotifications"]; got != want {
			t.Errorf("the card says %v", got)
		}
	}
}

// A closing server sends the ends that it causes, and does not wait for a receiver that does not
// answer.
func TestPushFarewell(t *testing.T) {
	r := pushRig(t, hangs, func(o *a2a.Options) { o.CloseGrace = time.Minute })
	r.Write("notes.txt", "nothing\n")
	hook := newReceiver(t, nil)
	params := userMessage("hi")
	params["configuration"] = object{"taskPushNotificationConfig": object{"url": hook.url}, "returnImmediately": true}
	r.call("SendMessage", params)
	if got := hook.readUntil("WORKING"); len(got) != 1 {
		t.Errorf("%v", got)
	}
	r.stop()
	if got := hook.readUntil("CANCELED"); len(got) != 1 {
		t.Errorf("%v", got)
	}

	r = pushRig(t, talks, func(o *a2a.Options) { o.CloseGrace = time.Millisecond })
	forever := make(chan struct{})
	defer close(forever)
	deaf := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-forever }))
	t.Cleanup(deaf.Close)
	params["configuration"] = object{"taskPushNotificationConfig": object{"url": deaf.URL}}
	r.call("SendMessage", params)
	r.stop() // ends
}
