package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	chatevent "github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
)

// newEndedJob returns a job of a completed task.
func newEndedJob(s *Server, id string, size int) *job {
	j := &job{
		id: id, contextID: "c-" + id, server: s, done: make(chan struct{}), cancel: func() {}, size: size,
		task: task{ID: id, ContextID: "c-" + id, Status: status{State: completed, Timestamp: formatTime(time.Unix(1, 0))}},
	}
	close(j.done)
	return j
}

// Ended tasks are kept up to a number and a size; the oldest are removed with their files. Running
// tasks are never removed.
func TestKeptTasks(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Records: dir})
	defer s.Close()
	running := &job{id: "running", contextID: "r", server: s, done: make(chan struct{}), cancel: func() {}}
	if removed, err := s.tasks.add(running, func() {}); err != nil || len(removed) > 0 {
		t.Fatal(removed, err)
	}
	for i := range maxEnded + 5 {
		j := newEndedJob(s, fmt.Sprintf("t%04d", i), 10)
		if i < 10 {
			j.save()
		}
		s.dropTasks(s.tasks.addEnded(j))
	}
	if n := len(s.tasks.list()); n != maxEnded+1 {
		t.Errorf("%d tasks", n)
	}
	for id, there := range map[string]bool{"t0004": false, "t0005": true, "running": true} {
		if _, err := s.tasks.find(id); (err == nil) != there {
			t.Errorf("%s: %v", id, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 5 {
		t.Errorf("%v %v", files, err)
	}
	s.dropTasks(s.tasks.addEnded(newEndedJob(s, "huge", maxEndedBytes+1)))
	if n := len(s.tasks.list()); n != 2 {
		t.Errorf("%d tasks beside a huge one", n)
	}
}

// Only a limited number of tasks run at a time, and only one in a context.
func TestRunningTasks(t *testing.T) {
	var st store
	for i := range maxRunning {
		if _, err := st.add(&job{id: fmt.Sprint(i), contextID: fmt.Sprint(i), done: make(chan struct{})}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.add(&job{id: "x", contextID: "7", done: make(chan struct{})}, func() {}); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Error(err)
	}
	if _, err := st.add(&job{id: "x", contextID: "x", done: make(chan struct{})}, func() {}); err == nil || !strings.Contains(err.Error(), "tasks are running already") {
		t.Error(err)
	}
	close(st.jobs["3"].done)
	if _, err := st.add(&job{id: "x", contextID: "x", done: make(chan struct{})}, func() {}); err != nil {
		t.Error(err)
	}
	st.close()
	if _, err := st.add(&job{id: "y", contextID: "y", done: make(chan struct{})}, func() {}); err == nil {
		t.Error("a closed store accepted a task")
	}
}

// counting is a receiver that counts notifications.
type counting struct {
	mu         sync.Mutex // guards deliveries
	deliveries map[string]int
}

func (*counting) Webhooks() bool            { return true }
func (*counting) CheckWebhook(string) error { return nil }
func (c *counting) PostWebhook(_ context.Context, address string, _ http.Header, _ []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deliveries[address]++
	return http.StatusOK, nil
}

// Of the ends that were not delivered, a server delivers only the latest, and drops the rest.
func TestLateNotifications(t *testing.T) {
	dir, receiver := t.TempDir(), &counting{deliveries: map[string]int{}}
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i := range maxRestored + 5 {
		rec := record{Hooks: []recordHook{{Config: pushConfig{URL: fmt.Sprint(i)}}}}
		rec.Task = task{ID: fmt.Sprint("t", i), ContextID: "c", Status: status{State: completed, Timestamp: formatTime(now.Add(time.Duration(i) * time.Millisecond))}}
		before.save(rec)
	}
	before.close()
	for range 2 { // the second server has nothing to deliver
		s := New(Options{Records: dir, Notifier: receiver, Now: func() time.Time { return now }, CloseGrace: time.Minute, Log: slog.New(slog.DiscardHandler)})
		s.Close()
	}
	for i := range maxRestored + 5 {
		if n, want := receiver.deliveries[fmt.Sprint(i)], min(max(0, i-4), 1); n != want {
			t.Errorf("the end of task %d was delivered %d times, want %d", i, n, want)
		}
	}
}

// Tasks of deleted chats do not count towards the limit of ends to deliver.
func TestLateAndDeleted(t *testing.T) {
	dir, receiver := t.TempDir(), &counting{deliveries: map[string]int{}}
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i := range maxRestored + 1 { // the chat of the first one exists
		before.save(record{
			Task: task{ID: fmt.Sprint("t", i), ContextID: fmt.Sprint("c", i), Status: status{State: completed, Timestamp: formatTime(now.Add(time.Duration(i) * time.Millisecond))}},
			Chat: true, Hooks: []recordHook{{Config: pushConfig{URL: fmt.Sprint(i)}}},
		})
	}
	before.close()
	s := New(Options{
		Records: dir, Notifier: receiver, Now: func() time.Time { return now }, CloseGrace: time.Minute, Log: slog.New(slog.DiscardHandler),
		ChatExists: func(id string) (bool, error) { return id == "c0", nil },
	})
	s.Close()
	if len(receiver.deliveries) != 1 || receiver.deliveries["0"] != 1 {
		t.Errorf("%v", receiver.deliveries)
	}
}

// While notifications are off, older ones are dropped, and their credentials are removed. The log
// distinguishes a task that was running from one that had ended.
func TestNotificationsOff(t *testing.T) {
	dir := t.TempDir()
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, was := range []state{working, completed} {
		before.save(record{
			Task:  task{ID: string(was), ContextID: string(was), Status: status{State: was, Timestamp: formatTime(time.Now())}},
			Hooks: []recordHook{{Config: pushConfig{URL: "https://x.example", Token: "tok"}}},
		})
	}
	before.close()
	var log bytes.Buffer
	s := New(Options{Records: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.Close()
	for _, was := range []state{working, completed} {
		if !strings.Contains(log.String(), "task="+string(was)) {
			t.Errorf("%s: %s", was, log.String())
		}
		if text, err := os.ReadFile(filepath.Join(dir, string(was)+recordSuffix)); err != nil || strings.Contains(string(text), "tok") {
			t.Errorf("%s: %s %v", was, text, err)
		}
	}
	if text := log.String(); strings.Contains(text, "task's end") {
		t.Error(text)
	}
}

// If the store of chats cannot be read, no task is lost: its record stays, and receivers are
// notified of its end.
func TestUnreadableChatStoreLosesNoTask(t *testing.T) {
	dir, receiver := t.TempDir(), &counting{deliveries: map[string]int{}}
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"sure", "unsure"} {
		before.save(record{
			Task: task{ID: id, ContextID: "c-" + id, Status: status{State: completed, Timestamp: formatTime(time.Now())}},
			Chat: true, Hooks: []recordHook{{Config: pushConfig{URL: id}}},
		})
	}
	before.close()
	var log bytes.Buffer
	s := New(Options{
		Records: dir, Notifier: receiver, CloseGrace: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil)),
		ChatExists: func(id string) (bool, error) {
			if id == "c-sure" {
				return false, nil
			}
			return false, errors.New("the disk is away")
		},
	})
	s.Close()
	for id, kept := range map[string]bool{"sure": false, "unsure": true} {
		if _, err := s.tasks.find(id); (err == nil) != kept {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := os.Stat(filepath.Join(dir, id+recordSuffix)); (err == nil) != kept {
			t.Errorf("%s: %v", id, err)
		}
		if delivered := receiver.deliveries[id] == 1; delivered != kept {
			t.Errorf("%s was delivered %d times", id, receiver.deliveries[id])
		}
	}
	if text := log.String(); !strings.Contains(text, "task=unsure") || !strings.Contains(text, "the disk is away") || strings.Contains(text, "task=sure") {
		t.Error(text)
	}
}

// A long answer in small pieces is copied once, not once per piece.
func TestLongAnswer(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	j := &job{id: "t", contextID: "c", server: s, done: make(chan struct{}), cancel: func() {}, task: task{Status: status{State: working}}}
	slow := j.subscribe(nil)
	const pieces, piece = 20_000, "a piece of fifty bytes, of which an answer has many"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pieces {
		j.addText(piece)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 200*pieces*uint64(len(piece)) {
		t.Errorf("%d bytes were copied for %d", used, pieces*len(piece))
	}
	if _, more, err := slow.next(t.Context()); !more || err != nil {
		t.Fatal(more, err)
	}
	want := strings.Repeat(piece, pieces)
	if e, _, _ := slow.next(t.Context()); e.Artifact == nil || textOf(e.Artifact.Artifact.Parts) != want {
		t.Errorf("%+v", e)
	}
	j.addText(piece)
	if e, _, _ := slow.next(t.Context()); e.Artifact == nil || textOf(e.Artifact.Artifact.Parts) != piece || !e.Artifact.Append {
		t.Errorf("%+v", e)
	}
	if got := textOf(j.snapshot(nil).Artifacts[0].Parts); got != want+piece {
		t.Errorf("the task has %d bytes", len(got))
	}
}

// A reader that is slow gets images between the text before and after them, in one event.
func TestImagesForSlowReaders(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	j := &job{id: "t", contextID: "c", server: s, done: make(chan struct{}), cancel: func() {}, task: task{Status: status{State: working}}}
	slow := j.subscribe(nil)
	image := func(data string) { j.addImage(chatevent.Image{MediaType: "image/png", Data: []byte(data)}) }
	j.addText("a")
	j.addText("b")
	image("1")
	image("2")
	j.addText("c")
	j.addText("d")
	image("3")
	j.finish(completed, "", nil)
	if _, more, err := slow.next(t.Context()); !more || err != nil {
		t.Fatal(more, err)
	}
	e, _, _ := slow.next(t.Context())
	const png = `,"mediaType":"image/png"}`
	want := `[{"text":"ab"},{"raw":"MQ=="` + png + `,{"raw":"Mg=="` + png + `,{"text":"cd"},{"raw":"Mw=="` + png + `]`
	if e.Artifact == nil || !e.Artifact.LastChunk || sortedJSON(t, e.Artifact.Artifact.Parts) != inOrder(t, want) {
		t.Errorf("%+v", e)
	}
}

// A reply that cannot be delivered leaves its request, and those after it, pending. Requests before
// it got their replies.
func TestUndeliveredReplies(t *testing.T) {
	world := daemontest.New(t, "turns: []", nil)
	host := world.Daemon()
	defer host.Close()
	turns := turn.New(turn.Options{Host: host, Workspace: world.Root})
	defer turns.Close()
	s := New(Options{Turns: turns})
	defer s.Close()
	if _, _, err := host.Engine().Open(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	j := &job{id: "t", contextID: "c", server: s, done: make(chan struct{}), cancel: func() {}, task: task{Status: inState(working)}}
	if _, err := s.tasks.add(j, func() {}); err != nil {
		t.Fatal(err)
	}
	for _, a := range []inputRequest{{id: "1", text: "a?"}, {id: "nowhere", question: true, call: "2", text: "b?"}, {id: "3", text: "c?"}} {
		j.requestInput(a)
	}
	var parts []part
	for _, data := range []string{`{"tool_call_id":"1","decision":"approve"}`, `{"question_id":"nowhere","answer":"x"}`, `{"tool_call_id":"3","decision":"approve"}`} {
		parts = append(parts, part{Data: json.RawMessage(data)})
	}
	history := len(j.task.History)
	_, err := s.continueTask(t.Context(), &sendParams{Message: &message{TaskID: "t", Role: roleUser, Parts: parts}}, false)
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Error(err)
	}
	if len(j.pending) != 2 || j.pending[0].id != "nowhere" || j.pending[1].id != "3" || j.task.Status.State != inputRequired || len(j.task.History) != history {
		t.Errorf("%+v, %s", j.pending, j.task.Status.State)
	}
}

// A long dialogue keeps its first message and the latest ones.
func TestHistoryLimit(t *testing.T) {
	var j job
	for i := range maxHistory + 20 {
		j.addToHistory(message{MessageID: fmt.Sprint(i)})
	}
	if h := j.task.History; len(h) != maxHistory || h[0].MessageID != "0" || h[1].MessageID != "21" || h[maxHistory-1].MessageID != fmt.Sprint(maxHistory+19) {
		t.Errorf("%d, %v %v", len(h), h[0], h[1])
	}
}

// A record is at most maxRecord large: files, old messages and long answers are left out of it. The
// task in memory does not change.
func TestRecordLimit(t *testing.T) {
	long := strings.Repeat("\x01", 2*maxRecord) // six bytes each in JSON
	file := message{MessageID: "f", Role: roleUser, Parts: []part{{Raw: &long, MediaType: "image/png"}, textPart("look")}}
	for what, rec := range map[string]record{
		"file":    {Task: task{History: []message{file}}},
		"history": {Task: task{History: []message{{Parts: []part{textPart(long)}}, {MessageID: "last", Parts: []part{textPart("short")}}}}},
		"answer":  {Task: task{Artifacts: []artifact{{ArtifactID: responseArtifact, Parts: []part{textPart(long)}}}}},
		"call":    {Task: task{Status: status{Message: &message{Parts: []part{{Data: encode(long)}}}}}},
		"odd":     {Task: task{Artifacts: []artifact{{}, {Name: long}}, History: []message{{}}}},
	} {
		rec.Task.ID, rec.Task.ContextID, rec.Task.Status.State = "t", "c", completed
		body, err := rec.encode()
		if err != nil || len(body) > maxRecord && what != "odd" {
			t.Errorf("%s: %d bytes, %v", what, len(body), err)
			continue
		}
		got, err := decodeRecord(body)
		if err != nil && what != "odd" {
			t.Errorf("%s: %v", what, err)
			continue
		}
		switch what {
		case "file":
			if parts := got.Task.History[0].Parts; parts[0].Raw != nil || !strings.Contains(textOf(parts), "not stored") || *parts[1].Text != "look" {
				t.Errorf("%v", parts)
			}
			if *file.Parts[0].Raw != long {
				t.Error("the task in memory lost its file")
			}
		case "history":
			if h := got.Task.History; len(h) != 1 || h[0].MessageID != "last" {
				t.Errorf("%d messages", len(h))
			}
		case "answer":
			if text := textOf(got.Task.Artifacts[0].Parts); !strings.HasSuffix(text, "[The rest is only in the chat.]") {
				t.Errorf("%d bytes", len(text))
			}
		}
	}
}

// If a folder cannot be written or read, only the next server's memory is lost.
func TestNoRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Records: filepath.Join(file, "below"), Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	j := newEndedJob(s, "t", 1)
	j.save()
	s.dropTasks(s.tasks.addEnded(j))
	if _, err := s.tasks.find("t"); err != nil {
		t.Error(err)
	}
}

// Any file in the folder is either read or refused, and a task that was read can be shown.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"parts":[{"text":"x"}]}},"artifacts":[{"parts":[]}],"history":[{"parts":[{"raw":"aa"}]}]},"hooks":[{"config":{"url":"https://x"}}]}`))
	f.Add([]byte(`{"task":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		rec, err := decodeRecord(body)
		if err != nil {
			return
		}
		if _, err := rec.encode(); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(legacyTask(&rec.Task)); err != nil {
			t.Fatal(err)
		}
	})
}
