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
)

func ended(s *Server, id string, size int) *job {
	j := &job{
		id: id, contextID: "c-" + id, s: s, done: make(chan struct{}), cancel: func() {}, size: size,
		task: task{ID: id, ContextID: "c-" + id, Status: status{State: completed, Timestamp: stamp(time.Unix(1, 0))}},
	}
	close(j.done)
	return j
}

// Tasks that ended are kept up to a number and a size; the oldest go, with their files. What
// runs is never among them.
func TestKeptTasks(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Records: dir})
	defer s.Close()
	running := &job{id: "running", contextID: "r", s: s, done: make(chan struct{}), cancel: func() {}}
	if gone, err := s.tasks.add(running, func() {}); err != nil || len(gone) > 0 {
		t.Fatal(gone, err)
	}
	for i := range maxKept + 5 {
		j := ended(s, fmt.Sprintf("t%04d", i), 10)
		if i < 10 {
			j.keep()
		}
		s.drop(s.tasks.put(j))
	}
	if n := len(s.tasks.list()); n != maxKept+1 {
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
	s.drop(s.tasks.put(ended(s, "huge", maxKeptBytes+1)))
	if n := len(s.tasks.list()); n != 2 {
		t.Errorf("%d tasks beside a huge one", n)
	}
}

// Only so many run at a time, and one in a context.
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
	if _, err := st.add(&job{id: "x", contextID: "x", done: make(chan struct{})}, func() {}); err == nil || !strings.Contains(err.Error(), "no more are taken") {
		t.Error(err)
	}
	close(st.jobs["3"].done)
	if _, err := st.add(&job{id: "x", contextID: "x", done: make(chan struct{})}, func() {}); err != nil {
		t.Error(err)
	}
	st.close()
	if _, err := st.add(&job{id: "y", contextID: "y", done: make(chan struct{})}, func() {}); err == nil {
		t.Error("a closed store takes tasks")
	}
}

// counting takes notifications.
type counting struct {
	mu   sync.Mutex // guards told
	told map[string]int
}

func (*counting) Webhooks() bool            { return true }
func (*counting) CheckWebhook(string) error { return nil }
func (c *counting) PostWebhook(_ context.Context, address string, _ http.Header, _ []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[address]++
	return http.StatusOK, nil
}

// Of ends that nobody was told, a server tells the latest only, and forgets the rest.
func TestLateNotifications(t *testing.T) {
	dir, late := t.TempDir(), &counting{told: map[string]int{}}
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	for i := range maxLate + 5 {
		rec := record{Hooks: []recordHook{{Config: pushConfig{URL: fmt.Sprint(i)}}}}
		rec.Task = task{ID: fmt.Sprint("t", i), ContextID: "c", Status: status{State: completed, Timestamp: stamp(at.Add(time.Duration(i) * time.Millisecond))}}
		before.save(rec)
	}
	before.close()
	for range 2 { // the second has nothing to tell
		s := New(Options{Records: dir, Notifier: late, Now: func() time.Time { return at }, Farewell: time.Minute, Log: slog.New(slog.DiscardHandler)})
		s.Close()
	}
	for i := range maxLate + 5 {
		if n, want := late.told[fmt.Sprint(i)], min(max(0, i-4), 1); n != want {
			t.Errorf("%d of the end of task %d, not %d", n, i, want)
		}
	}
}

// Tasks of deleted chats take no room from those whose ends are still to be told.
func TestLateAndDeleted(t *testing.T) {
	dir, late := t.TempDir(), &counting{told: map[string]int{}}
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	for i := range maxLate + 1 { // the first one's chat is there
		before.save(record{
			Task: task{ID: fmt.Sprint("t", i), ContextID: fmt.Sprint("c", i), Status: status{State: completed, Timestamp: stamp(at.Add(time.Duration(i) * time.Millisecond))}},
			Chat: true, Hooks: []recordHook{{Config: pushConfig{URL: fmt.Sprint(i)}}},
		})
	}
	before.close()
	s := New(Options{
		Records: dir, Notifier: late, Now: func() time.Time { return at }, Farewell: time.Minute, Log: slog.New(slog.DiscardHandler),
		Knows: func(id string) (bool, error) { return id == "c0", nil },
	})
	s.Close()
	if len(late.told) != 1 || late.told["0"] != 1 {
		t.Errorf("%v", late.told)
	}
}

// Where notifications are off, those of before are given up, and credentials with them. The
// log does not take a task that ran for one that had ended.
func TestNotificationsOff(t *testing.T) {
	dir := t.TempDir()
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, was := range []state{working, completed} {
		before.save(record{
			Task:  task{ID: string(was), ContextID: string(was), Status: status{State: was, Timestamp: stamp(time.Now())}},
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

// A store of chats that can not be read costs no task: its record stays, and who waits for
// its end is told.
func TestUnsureChat(t *testing.T) {
	dir, late := t.TempDir(), &counting{told: map[string]int{}}
	before, err := openRecords(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"sure", "unsure"} {
		before.save(record{
			Task: task{ID: id, ContextID: "c-" + id, Status: status{State: completed, Timestamp: stamp(time.Now())}},
			Chat: true, Hooks: []recordHook{{Config: pushConfig{URL: id}}},
		})
	}
	before.close()
	var log bytes.Buffer
	s := New(Options{
		Records: dir, Notifier: late, Farewell: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Knows: func(id string) (bool, error) {
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
		if told := late.told[id] == 1; told != kept {
			t.Errorf("%s was told %d times", id, late.told[id])
		}
	}
	if text := log.String(); !strings.Contains(text, "task=unsure") || !strings.Contains(text, "the disk is away") || strings.Contains(text, "task=sure") {
		t.Error(text)
	}
}

// A long answer in small pieces is copied once, not once for each piece.
func TestLongAnswer(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	j := &job{id: "t", contextID: "c", s: s, done: make(chan struct{}), cancel: func() {}, task: task{Status: status{State: working}}}
	slow := j.subscribe(nil)
	const pieces, piece = 20_000, "a piece of fifty bytes, of which an answer has many"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pieces {
		j.text(piece)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 200*pieces*uint64(len(piece)) {
		t.Errorf("%d bytes were copied for %d", used, pieces*len(piece))
	}
	if _, more, err := slow.next(t.Context()); !more || err != nil {
		t.Fatal(more, err)
	}
	want := strings.Repeat(piece, pieces)
	if e, _, _ := slow.next(t.Context()); e.Artifact == nil || e.Artifact.text() != want {
		t.Errorf("%+v", e)
	}
	j.text(piece)
	if e, _, _ := slow.next(t.Context()); e.Artifact == nil || e.Artifact.text() != piece || !e.Artifact.Append {
		t.Errorf("%+v", e)
	}
	if got := j.snapshot(nil).Artifacts[0].Parts[0]["text"]; got != want+piece {
		t.Errorf("the task has %d bytes", len(got.(string)))
	}
}

// A long dialogue keeps how it began, and how it goes.
func TestHistoryLimit(t *testing.T) {
	var j job
	for i := range maxHistory + 20 {
		j.remember(message{MessageID: fmt.Sprint(i)})
	}
	if h := j.task.History; len(h) != maxHistory || h[0].MessageID != "0" || h[1].MessageID != "21" || h[maxHistory-1].MessageID != fmt.Sprint(maxHistory+19) {
		t.Errorf("%d, %v %v", len(h), h[0], h[1])
	}
}

// A record stays small whatever was sent and said; the task in memory is not touched.
func TestRecordLimit(t *testing.T) {
	long := strings.Repeat("\x01", 2*maxRecord) // six bytes each in JSON
	file := message{MessageID: "f", Role: roleUser, Parts: []part{{"raw": long, "mediaType": "image/png"}, {"text": "look"}}}
	for what, rec := range map[string]record{
		"file":    {Task: task{History: []message{file}}},
		"history": {Task: task{History: []message{{Parts: []part{{"text": long}}}, {MessageID: "last", Parts: []part{{"text": "short"}}}}}},
		"answer":  {Task: task{Artifacts: []artifact{{ArtifactID: responseArtifact, Parts: []part{{"text": long}}}}}},
		"call":    {Task: task{Status: status{Message: &message{Parts: []part{{"data": long}}}}}},
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
			if parts := got.Task.History[0].Parts; parts[0]["raw"] != nil || !strings.Contains(fmt.Sprint(parts[0]["text"]), "not kept") || parts[1]["text"] != "look" {
				t.Errorf("%v", parts)
			}
			if file.Parts[0]["raw"] != long {
				t.Error("the task in memory lost its file")
			}
		case "history":
			if h := got.Task.History; len(h) != 1 || h[0].MessageID != "last" {
				t.Errorf("%d messages", len(h))
			}
		case "answer":
			if text := got.Task.Artifacts[0].Parts[0]["text"].(string); !strings.HasSuffix(text, "[The rest is in the chat only.]") {
				t.Errorf("%d bytes", len(text))
			}
		}
	}
}

// A folder that can not be written, or read, costs the memory of the next server only.
func TestNoRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Records: filepath.Join(file, "below"), Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	j := ended(s, "t", 1)
	j.keep()
	s.drop(s.tasks.put(j))
	if _, err := s.tasks.find("t"); err != nil {
		t.Error(err)
	}
}

// Whatever lies in the folder is read or refused, and what was read can be shown.
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
