package a2a_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/e2a/a2a"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
)

// withRecords makes the server store its tasks in a folder.
func withRecords(dir string) func(*a2a.Options) {
	return func(o *a2a.Options) { o.Records = dir }
}

// The next server knows ended tasks with their answers, and the chat continues.
func TestRestart(t *testing.T) {
	world := daemontest.New(t, talks, nil)
	dir := a2a.RecordsIn(world.State(), world.Root)
	first := startRig(t, world, "", withRecords(dir))
	task := first.call("SendMessage", userMessage("hi"))["task"].(object)
	first.stop()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	// Files that are not tasks do no harm and are not changed.
	broken := filepath.Join(dir, "broken.json")
	for name, text := range map[string]string{".cut.json-123": "{", "broken.json": "{", "other.json": `{"task":{"id":"x","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`, "none.json": `{"task":{"id":"none"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := startRig(t, world, "", withRecords(dir))
	got := second.call("GetTask", object{"id": task["id"]})
	if stateOf(got) != "COMPLETED" || answerOf(got) != "One two." || got["contextId"] != task["contextId"] || textOf(got["history"].([]any)[0]) != "hi" || got["metadata"].(object)["stopReason"] != "end_turn" {
		t.Errorf("%v", got)
	}
	if list := second.call("ListTasks", object{}); list["totalSize"] != 1.0 {
		t.Errorf("%v", list)
	}
	if n := second.fails("CancelTask", object{"id": task["id"]}); n != -32002 {
		t.Errorf("%d", n)
	}
	if n := second.fails("SubscribeToTask", object{"id": task["id"]}); n != -32004 {
		t.Errorf("%d", n)
	}
	again := second.call("SendMessage", userMessage("more", object{"contextId": task["contextId"]}))["task"].(object)
	if stateOf(again) != "COMPLETED" || again["contextId"] != task["contextId"] {
		t.Errorf("%v", again)
	}
	if _, err := os.Stat(broken); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".cut.json-123")); err == nil {
		t.Error("the server did not remove the temporary file of a killed server")
	}
}

// Tasks that were running or waiting when a server was killed have failed. Callers can read that,
// and receivers are notified.
func TestKilled(t *testing.T) {
	for model, state := range map[string]string{hangs: "WORKING", writes: "INPUT_REQUIRED"} {
		world := daemontest.New(t, model, allowPrivateHosts)
		dir := filepath.Join(world.State(), "records")
		first := startRig(t, world, "", withRecords(dir))
		first.Write("notes.txt", "nothing\n")
		hook := newReceiver(t, nil)
		params := userMessage("hi")
		params["configuration"] = object{"taskPushNotificationConfig": object{"url": hook.url, "token": "tok"}, "returnImmediately": true}
		id := first.call("SendMessage", params)["task"].(object)["id"].(string)
		hook.readUntil(state)
		// Copies the records that a killed server would leave at this point.
		left := filepath.Join(world.State(), "left")
		if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		second := startRig(t, world, "", withRecords(left))
		got := second.call("GetTask", object{"id": id})
		message, _ := got["status"].(object)["message"].(object)
		if stateOf(got) != "FAILED" || !strings.Contains(textOf(message), "eca stopped before the task ended") {
			t.Errorf("%s: %v", state, got)
		}
		n := <-hook.came
		if told := n.body["task"].(object); stateOf(told) != "FAILED" || n.header.Get("A2A-Notification-Token") != "tok" {
			t.Errorf("%s: %v", state, n)
		}
		second.stop()
		if text, err := os.ReadFile(filepath.Join(left, id+".json")); err != nil || strings.Contains(string(text), "tok") {
			t.Errorf("%s: %s %v", state, text, err)
		}
		// The state is permanent.
		if got := startRig(t, world, "", withRecords(left)).call("GetTask", object{"id": id}); stateOf(got) != "FAILED" {
			t.Errorf("%s: %v", state, got)
		}
		// A server that ends normally records the outcome of running tasks.
		first.stop()
		if got := startRig(t, world, "", withRecords(dir)).call("GetTask", object{"id": id}); stateOf(got) != "CANCELED" || !strings.Contains(textOf(got["status"].(object)["message"]), "eca stopped") {
			t.Errorf("%s: %v", state, got)
		}
	}
}

// The next server delivers an end that a receiver did not get, whether the last one was killed or
// closed, and only once. Ends that could not be delivered for a day are dropped.
func TestUndeliveredEndsAreSentLater(t *testing.T) {
	for name, c := range map[string]struct {
		closed bool
		later  time.Duration
		off    bool
		told   bool
	}{
		"killed":   {told: true},
		"closed":   {closed: true, told: true},
		"too late": {closed: true, later: 25 * time.Hour},
		"off":      {off: true},
	} {
		t.Run(name, func(t *testing.T) {
			world := daemontest.New(t, talks, allowPrivateHosts)
			dir := filepath.Join(world.State(), "records")
			var up atomic.Bool
			hook := newReceiver(t, func(int) int {
				if up.Load() {
					return http.StatusNoContent
				}
				return http.StatusServiceUnavailable
			})
			waits := make(chan struct{}, 1)
			first := startRig(t, world, "", func(o *a2a.Options) {
				o.Records = dir
				o.Sleep = func(ctx context.Context, _ time.Duration) error {
					waits <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				}
			})
			params := userMessage("hi")
			params["configuration"] = object{"taskPushNotificationConfig": object{"url": hook.url, "token": "tok"}}
			id := first.call("SendMessage", params)["task"].(object)["id"].(string)
			<-waits // the first notification is being sent again, and that of the end waits
			left := dir
			if c.closed {
				first.stop()
			} else {
				left = filepath.Join(world.State(), "left")
				if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
			}
			for len(hook.came) > 0 {
				<-hook.came
			}
			up.Store(true)
			second := startRig(t, world, "", func(o *a2a.Options) {
				o.Records, o.Now = left, func() time.Time { return time.Now().Add(c.later) }
				if c.off {
					o.Notifier = nil
				}
			})
			if c.told {
				n := <-hook.came
				if told := n.body["task"].(object); stateOf(told) != "COMPLETED" || answerOf(told) != "One two." || n.header.Get("A2A-Notification-Token") != "tok" {
					t.Errorf("%v", n)
				}
			}
			second.stop()
			if text, err := os.ReadFile(filepath.Join(left, id+".json")); err != nil || strings.Contains(string(text), "tok") {
				t.Errorf("the record still has the receiver's credentials: %s %v", text, err)
			}
			third := startRig(t, world, "", withRecords(left))
			if got := third.call("GetTask", object{"id": id}); stateOf(got) != "COMPLETED" {
				t.Errorf("%v", got)
			}
			third.stop()
			if n := len(hook.came); n != 0 {
				t.Errorf("%d more notifications", n)
			}
		})
	}
}

// Only one server keeps the tasks of a folder: another one must not treat running tasks as dead.
func TestTwoServers(t *testing.T) {
	world := daemontest.New(t, talks, nil)
	dir := a2a.RecordsIn(world.State(), world.Root)
	first := startRig(t, world, "", withRecords(dir))
	id := first.call("SendMessage", userMessage("hi"))["task"].(object)["id"]
	var log bytes.Buffer
	second := startRig(t, world, "", func(o *a2a.Options) {
		o.Records, o.Log = dir, slog.New(slog.NewTextHandler(&log, nil))
	})
	if !strings.Contains(log.String(), "another eca serve") {
		t.Errorf("%s", log.String())
	}
	if n := second.fails("GetTask", object{"id": id}); n != -32001 {
		t.Errorf("%d", n)
	}
	if got := second.call("SendMessage", userMessage("hi"))["task"].(object); stateOf(got) != "COMPLETED" {
		t.Errorf("%v", got)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(files) != 1 {
		t.Errorf("%v", files)
	}
	if a2a.RecordsIn(world.State(), "/a") == a2a.RecordsIn(world.State(), "/b") {
		t.Error("two folders share their tasks")
	}
}

// Deleting a chat deletes its tasks.
func TestDeletedChat(t *testing.T) {
	world := daemontest.New(t, talks, nil)
	dir := a2a.RecordsIn(world.State(), world.Root)
	first := startRig(t, world, "", withRecords(dir))
	kept := first.call("SendMessage", userMessage("hi"))["task"].(object)
	gone := first.call("SendMessage", userMessage("hi"))["task"].(object)
	first.stop()
	second := startRig(t, world, "", func(o *a2a.Options) {
		o.Records, o.ChatExists = dir, func(id string) (bool, error) { return id != gone["contextId"], nil }
	})
	if n := second.fails("GetTask", object{"id": gone["id"]}); n != -32001 {
		t.Errorf("%d", n)
	}
	second.call("GetTask", object{"id": kept["id"]})
	if files, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}
