package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

func TestMain(m *testing.M) {
	if state := os.Getenv(writerStateVar); state != "" {
		write(state)
	}
	goleak.VerifyTestMain(m)
}

// scriptedModel answers each request with the same deltas.
type scriptedModel []llm.Delta

func (s scriptedModel) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for _, d := range s {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func hello() scriptedModel {
	return scriptedModel{{Kind: llm.TextDelta, Text: "Hel"}, {Kind: llm.TextDelta, Text: "lo"}, {Kind: llm.StopDelta, Stop: llm.StopEnd}}
}

func userMessage(text string) llm.Message {
	return llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}}
}

// ask makes one model call.
func ask(t testing.TB, m llm.Model, chat, turn string, messages ...llm.Message) {
	t.Helper()
	for _, err := range m.Stream(context.Background(), llm.Request{
		Purpose: llm.PurposeTurn, Model: "m", System: "Be good.", Messages: messages, Origin: llm.Origin{Chat: chat, Turn: turn, Agent: "code"},
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func checkJournal(t testing.TB, state string) Report {
	t.Helper()
	c := At(state)
	defer c.Close()
	r, err := c.Verify()
	if err != nil {
		t.Fatalf("the journal is not whole: %v", err)
	}
	return r
}

// writer is a tool that writes a file.
func writer(path string) tools.Tool {
	type args struct {
		Text string `json:"text"`
	}
	return tools.Definition[args]{
		Name: "write", Description: "Writes.",
		Plan: func(context.Context, tools.Call, args) (tools.Plan, error) { return tools.Plan{}, nil },
		Run: func(ctx context.Context, call tools.Call, a args, _ tools.Sink) (tools.Result, error) {
			if err := call.Files.Writing(ctx, path, []byte(a.Text)); err != nil {
				return tools.Result{}, err
			}
			return tools.Text("written"), os.WriteFile(path, []byte(a.Text), 0o600)
		},
	}.Build()
}

type noLog struct{}

func (noLog) Writing(context.Context, string, []byte) error { return nil }
func (noLog) Moving(context.Context, string, string) error  { return nil }

// The journal records the causes of calls, their agents, and the changes of a file by a tool.
func TestCauses(t *testing.T) {
	state, path := t.TempDir(), filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("old secret-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := New(state, Options{Clean: func(s string) string { return strings.ReplaceAll(s, "secret-1", "[REDACTED]") }})
	m := j.Model(hello(), "p/m")
	ask(t, m, "chat", "t1", userMessage("do it, secret-1"))
	tool := j.Tool(writer(path))
	if _, err := tool.Run(context.Background(), tools.Call{
		ID: "c1", ChatID: "chat", Agent: "code", Arguments: json.RawMessage(`{"text":"new","password":"hunter2"}`), Files: noLog{},
	}, nil); err != nil {
		t.Fatal(err)
	}
	ask(t, m, "chat", "t1", userMessage("do it, secret-1"), llm.Message{Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "c1", Text: "written"}}})
	for range m.Stream(context.Background(), llm.Request{
		Purpose: llm.PurposeTurn, Messages: []llm.Message{userMessage("sub")}, Origin: llm.Origin{Chat: "subagent-x", Parent: "chat", Turn: "c1"},
	}) {
		break // the rest is not read
	}
	j.Close()

	if r := checkJournal(t, state); r.Lines != 8 {
		t.Errorf("%d lines, want 8", r.Lines)
	}
	c := At(state)
	defer c.Close()
	calls, err := c.Calls("chat")
	if err != nil || len(calls) != 3 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	first, call, second := calls[0], calls[1], calls[2]
	if first.Request.CausationID != nil {
		t.Error("the first request has a call as its cause, but the user made it")
	}
	if id := call.Request.CausationID; id == nil || *id != first.Request.ID {
		t.Errorf("the tool call was caused by %v, want %v", id, first.Request.ID)
	}
	if id := second.Request.CausationID; id == nil || *id != call.Request.ID {
		t.Errorf("the second request was caused by %v, want %v", id, call.Request.ID)
	}
	if got := call.Request.Target; got.Service != "tool" || got.Operation != "eca__write" || *got.Variant != "native" {
		t.Errorf("target %+v", got)
	}
	if got := first.Request; got.Target.Service != "llm" || *got.Target.Variant != "p/m" || *got.Caller.RunID != "chat" || *got.ScopeID != esrp.DerivedUUID("chat") {
		t.Errorf("request %+v", got)
	}
	if len(call.Response.Artifacts) != 2 {
		t.Errorf("artifacts %+v", call.Response.Artifacts)
	}
	texts := map[string]string{}
	for _, o := range append(call.Response.Outputs, call.Request.Inputs...) {
		data, err := c.Body(o)
		if err != nil {
			t.Fatal(err)
		}
		texts[o.Name] = string(data)
	}
	for name, want := range map[string]string{
		"file.path": path, "file.before": "old [REDACTED]", "file.after": "new", "output": "written", "arguments": `{"password":"[REDACTED]","text":"new"}`,
	} {
		if texts[name] != want {
			t.Errorf("%s is %q, want %q", name, texts[name], want)
		}
	}
	sub, err := c.Calls("subagent-x")
	if err != nil || len(sub) != 1 || sub[0].Request.CausationID == nil || *sub[0].Request.CausationID != call.Request.ID {
		t.Errorf("the calls of the subagent: %+v, %v", sub, err)
	}
	if sub[0].Response.Status != esrp.Failed {
		t.Error("an answer whose reader stopped early is recorded as successful")
	}
	_ = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte("secret-1")) || bytes.Contains(data, []byte("hunter2")) {
			t.Errorf("a secret is in %s", path)
		}
		return err
	})
}

// A growing history is stored once.
func TestHistoryIsStoredOnce(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{})
	m := j.Model(hello(), "p/m")
	var history []llm.Message
	for i := range 20 {
		history = append(history, userMessage(fmt.Sprintf("message %d", i)))
		ask(t, m, "chat", fmt.Sprint("t", i), history...)
	}
	j.Close()
	if r := checkJournal(t, state); r.Bodies != 20+2 { // plus the system prompt and the answer
		t.Errorf("%d bodies, want 22", r.Bodies)
	}
}

// After any remains of a killed process, the chain continues, and verifying in between reports
// them.
func TestTornLine(t *testing.T) {
	state := t.TempDir()
	fill := func() {
		j := New(state, Options{SegmentSize: 3000})
		ask(t, j.Model(hello(), "p/m"), "chat", "t", userMessage("hi"))
		j.Close()
	}
	fill()
	dir := filepath.Join(state, "journal")
	for range 40 {
		names, err := segments(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, names[len(names)-1])
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line := lastLine(data)
		start := len(data) - len(line) - 1
		for _, cut := range []int{start, start + 1, start + len(line)/2, len(data) - 1} {
			if err := os.Truncate(path, int64(cut)); err != nil {
				t.Fatal(err)
			}
			if r := checkJournal(t, state); r.Torn != cut-start {
				t.Fatalf("%d bytes torn, want %d", r.Torn, cut-start)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Truncate(path, int64(start+len(line)/3)); err != nil {
			t.Fatal(err)
		}
		fill()
		if r := checkJournal(t, state); r.Torn != 0 {
			t.Fatal("the journal still has the torn line after the next process wrote")
		}
	}
}

// Verify reports each changed byte of head, and changed bits of the other files, which it gets at
// random.
func TestFlippedByte(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{SegmentSize: 2500})
	m := j.Model(hello(), "p/m")
	for i := range 4 {
		ask(t, m, "chat", fmt.Sprint("t", i), userMessage(fmt.Sprint("hi ", i)))
	}
	j.Close()
	checkJournal(t, state)
	var files []string
	_ = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() && d.Name() != "lock" {
			files = append(files, path)
		}
		return err
	})
	// head is small: every byte of it is tested.
	head := filepath.Join(state, "journal", "head")
	data, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	for offset := range data {
		changed := bytes.Clone(data)
		changed[offset] ^= 1
		if err := os.WriteFile(head, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		c := At(state)
		if _, err := c.Verify(); err == nil {
			t.Errorf("byte %d of head was changed, and Verify found no damage", offset)
		}
		c.Close()
	}
	if err := os.WriteFile(head, data, 0o600); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		path := rapid.SampledFrom(files).Draw(r, "file")
		data, err := os.ReadFile(path)
		if err != nil {
			r.Fatal(err)
		}
		offset, bit := rapid.IntRange(0, len(data)-1).Draw(r, "offset"), rapid.IntRange(0, 7).Draw(r, "bit")
		changed := bytes.Clone(data)
		changed[offset] ^= 1 << bit
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			r.Fatal(err)
		}
		c := At(state)
		defer c.Close()
		_, err = c.Verify()
		if restored := os.WriteFile(path, data, 0o600); restored != nil {
			r.Fatal(restored)
		}
		var damage *Damage
		if !errors.As(err, &damage) {
			r.Fatalf("bit %d of byte %d of %s was changed, and Verify returned %v", bit, offset, path, err)
		}
	})
}

// Verify reports a segment or a head that is missing.
func TestMissingFiles(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{SegmentSize: 1500})
	m := j.Model(hello(), "p/m")
	for i := range 4 {
		ask(t, m, "chat", fmt.Sprint("t", i), userMessage(fmt.Sprint("hi ", i)))
	}
	j.Close()
	dir := filepath.Join(state, "journal")
	names, err := segments(dir)
	if err != nil || len(names) < 3 {
		t.Fatalf("%d segments, %v", len(names), err)
	}
	for _, name := range append(names, "head") {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		c := At(state)
		if _, err := c.Verify(); err == nil {
			t.Errorf("%s was removed, and Verify found no damage", name)
		}
		c.Close()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checkJournal(t, state)
}

// Several daemons write one chain.
func TestSeveralDaemons(t *testing.T) {
	state := t.TempDir()
	const daemons, turns = 4, 15
	var wg sync.WaitGroup
	for d := range daemons {
		wg.Go(func() {
			j := New(state, Options{SegmentSize: 10000})
			defer j.Close()
			m := j.Model(hello(), "p/m")
			for i := range turns {
				ask(t, m, fmt.Sprint("chat", d), fmt.Sprint("t", i), userMessage(fmt.Sprint("hi ", i)))
			}
		})
	}
	wg.Wait()
	if r := checkJournal(t, state); r.Lines != daemons*turns*2 {
		t.Errorf("%d lines, want %d", r.Lines, daemons*turns*2)
	}
}

// Erasing a chat leaves none of its content, except content that other chats share.
func TestErase(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{})
	m := j.Model(hello(), "p/m")
	ask(t, m, "mine", "t", userMessage("only here"))
	ask(t, m, "other", "t", userMessage("also there"))
	for range m.Stream(context.Background(), llm.Request{
		Purpose: llm.PurposeTurn, Messages: []llm.Message{userMessage("a subagent's")}, Origin: llm.Origin{Chat: "subagent-x", Parent: "mine", Turn: "c"},
	}) {
	}
	if err := j.Erase("mine"); err != nil {
		t.Fatal(err)
	}
	ask(t, m, "other", "t2", userMessage("also there"))
	j.Close()
	r := checkJournal(t, state)
	if r.Erased != 2 || r.Bodies != 3 {
		t.Errorf("%d bodies are erased and %d are left, want 2 and 3", r.Erased, r.Bodies)
	}
	_ = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte("only here")) || bytes.Contains(data, []byte("a subagent's")) {
			t.Errorf("%s still has content of the erased chat", path)
		}
		return err
	})
	var out bytes.Buffer
	c := At(state)
	defer c.Close()
	if err := c.Export(&out); err != nil || strings.Count(out.String(), "\n") != 9 {
		t.Errorf("exported %v\n%s", err, out.String())
	}
}

// The quota is kept, even if everything is in one segment, and the chain stays valid.
func TestTrim(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{SegmentSize: 4000, Limits: func() Limits { return Limits{Bytes: 20000} }})
	m := j.Model(hello(), "p/m")
	for i := range 60 {
		ask(t, m, "chat", fmt.Sprint("t", i), userMessage(fmt.Sprint("hi ", i, strings.Repeat("x", 300))))
	}
	if err := j.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.Close()
	size := func() (total int64) {
		_ = filepath.WalkDir(state, func(_ string, d os.DirEntry, err error) error {
			if info, err := d.Info(); err == nil && !d.IsDir() {
				total += info.Size()
			}
			return err
		})
		return total
	}
	if n := size(); n > 20000+headSize+1000 || n < 5000 {
		t.Errorf("%d bytes are left", n)
	}
	checkJournal(t, state)

	c := At(state)
	defer c.Close()
	if err := c.Trim(Limits{Bytes: 10}, time.Now()); err != nil { // nothing may stay, and Trim must end
		t.Fatal(err)
	}
	if r := checkJournal(t, state); r.Bodies != 0 || r.Segments != 1 {
		t.Errorf("%+v is left", r)
	}
	if err := c.Trim(Limits{Age: time.Hour}, time.Now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	checkJournal(t, state)
}

// Measures the cost of recording a call with a long history: on the call's path, and including the
// writes in the background. The floor is two writes of as many bytes as the lines have.
func BenchmarkCall(b *testing.B) {
	history := make([]llm.Message, 200)
	for i := range history {
		history[i] = userMessage(strings.Repeat(fmt.Sprint("message ", i, " "), 100))
	}
	recorded := func(b *testing.B, path bool) {
		j := New(b.TempDir(), Options{})
		defer j.Close()
		m := j.Model(hello(), "p/m")
		for i := 0; b.Loop(); i++ {
			ask(b, m, "chat", fmt.Sprint("t", i), history...)
			if path {
				b.StopTimer()
			}
			_ = j.runAndWait(b.Context(), func(*Chain) error { return nil })
			if path {
				b.StartTimer()
			}
		}
	}
	b.Run("path", func(b *testing.B) { recorded(b, true) })
	b.Run("written", func(b *testing.B) { recorded(b, false) })
	b.Run("unrecorded", func(b *testing.B) {
		for b.Loop() {
			ask(b, hello(), "chat", "t", history...)
		}
	})
	b.Run("floor", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "f"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line := bytes.Repeat([]byte{'x'}, 40000)
		for b.Loop() {
			_, _ = f.Write(line)
			_, _ = f.Write(line[:1000])
		}
	})
}

// Reading any file content ends without a panic.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"event_type":"service.requested","prev":"","record":{},"seq":1}`))
	f.Add([]byte(`{"hash":"","len":1,"prev":"","segment":"x","seq":1,"start":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := parseTail(data); err == nil {
			if again, err := m.encode(); err != nil || !bytes.Equal(again, data) {
				t.Errorf("head is read as %+v and written as %q, %v", m, again, err)
			}
		}
		v := verifier{bodies: map[string]linePosition{}, chats: newLineage(), owners: map[string][]string{}}
		if l, err := parseLine(data); err == nil {
			_ = v.checkRecord(l)
			v.collect(l, data, linePosition{})
		}
	})
}
