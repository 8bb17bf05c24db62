package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// newSmallJournal creates a journal with several segments and returns their paths.
func newSmallJournal(t *testing.T, turns int, segment int64) (state string, paths []string) {
	t.Helper()
	state = t.TempDir()
	j := New(state, Options{SegmentSize: segment})
	m := j.Model(hello(), "p/m")
	for i := range turns {
		ask(t, m, "chat", fmt.Sprint("t", i), userMessage(fmt.Sprint("hi ", i)))
	}
	j.Close()
	checkJournal(t, state)
	names, err := segments(filepath.Join(state, "journal"))
	if err != nil || len(names) < 2 {
		t.Fatalf("%d segments, %v", len(names), err)
	}
	for _, name := range names {
		paths = append(paths, filepath.Join(state, "journal", name))
	}
	return state, paths
}

// verifyWith verifies a journal while a file temporarily has other content.
func verifyWith(t *testing.T, state, path string, change func([]byte) []byte) (Report, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(bytes.Clone(data)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := At(state)
	defer c.Close()
	r, verifyErr := c.Verify()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return r, verifyErr
}

// Every changed byte of a segment, sealed or not, is found.
func TestEachByteOfSegments(t *testing.T) {
	state, paths := newSmallJournal(t, 1, 1) // the request in one, the response in the other
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		put := func(at int, b byte) {
			if _, err := f.WriteAt([]byte{b}, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		c := At(state)
		defer c.Close()
		for at, old := range data {
			other := old ^ 1
			if at%3 == 0 && old != '\n' {
				other = '\n' // which splits the line
			}
			put(at, other)
			var damage *Damage
			if _, err := c.Verify(); !errors.As(err, &damage) {
				t.Fatalf("byte %d of %s was changed, and Verify found no damage: %v", at, filepath.Base(path), err)
			}
			put(at, old)
		}
	}
	checkJournal(t, state)
}

// A truncated segment is found, wherever it ends. A truncated last line looks like the remains of a
// killed process and is reported as such.
func TestTruncatedSegments(t *testing.T) {
	state, paths := newSmallJournal(t, 2, 1500)
	for n, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		start := len(data) - len(lastLine(data)) - 1
		c := At(state)
		defer c.Close()
		for size := len(data) - 1; size >= 0; size-- {
			if err := os.Truncate(path, int64(size)); err != nil {
				t.Fatal(err)
			}
			r, err := c.Verify()
			if torn := n == len(paths)-1 && size >= start; torn {
				if err != nil || r.Torn != size-start || r.Unwritten == 0 {
					t.Fatalf("the last line, cut to %d bytes: %+v, %v", size-start, r, err)
				}
			} else if err == nil {
				t.Fatalf("%s has %d of %d bytes, and Verify found no damage: %+v", filepath.Base(path), size, len(data), r)
			}
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Swapped, duplicated, removed and inserted lines are found, also across segments.
func TestRearrangedLines(t *testing.T) {
	state, paths := newSmallJournal(t, 3, 1500)
	first, second := paths[0], paths[1]
	lines := func(data []byte) [][]byte { return bytes.SplitAfter(data, []byte{'\n'}) }
	if data, err := os.ReadFile(first); err != nil || len(lines(data)) < 3 {
		t.Fatalf("too few lines, %v", err)
	}
	other, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"swapped":      func(d []byte) []byte { l := lines(d); return bytes.Join([][]byte{l[1], l[0]}, nil) },
		"doubled":      func(d []byte) []byte { l := lines(d); return bytes.Join([][]byte{l[0], l[0], l[1]}, nil) },
		"without one":  func(d []byte) []byte { l := lines(d); return l[1] },
		"an empty one": func(d []byte) []byte { return append([]byte{'\n'}, d...) },
		"another's":    func(d []byte) []byte { return append(d, lines(other)[0]...) },
		"exchanged":    func([]byte) []byte { return other },
		"spaces":       func(d []byte) []byte { return bytes.Replace(d, []byte(`{"`), []byte(`{ "`), 1) },
		"no last end":  func(d []byte) []byte { return d[:len(d)-1] },
		"no text":      func([]byte) []byte { return nil },
	} {
		if r, err := verifyWith(t, state, first, change); err == nil {
			t.Errorf("%s: Verify found no damage: %+v", name, r)
		}
	}
	checkJournal(t, state)
}

// The journal does not write a secret to the disk. The secrets have characters that JSON escapes, and
// occur in different fields of a call.
func TestSecretsAnywhere(t *testing.T) {
	needs.Long(t)
	rapid.Check(t, func(r *rapid.T) {
		secret := rapid.StringMatching(`[a-z"\\/<>&é\n\t {}:,\[\]]{8,20}x`).Draw(r, "secret")
		state, err := os.MkdirTemp("", "journal-test-")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(state)
		j := New(state, Options{Clean: func(s string) string { return strings.ReplaceAll(s, secret, "[REDACTED]") }})
		quoted := func(v any) json.RawMessage {
			out, err := json.Marshal(v)
			if err != nil {
				r.Fatal(err)
			}
			return out
		}
		with := "before " + secret + " behind"
		nested := quoted(map[string]any{"deep": []any{map[string]any{with: with}}})
		m := j.Model(scriptedModel{
			{Kind: llm.TextDelta, Text: with[:10]},
			{Kind: llm.TextDelta, Text: with[10:]},
			{Kind: llm.ReasoningStart, ID: "r"},
			{Kind: llm.ReasoningDelta, ID: "r", Text: with},
			{Kind: llm.ReasoningEnd, ID: "r", Opaque: nested},
			{Kind: llm.ToolStart, ID: "c", Name: "eca__look"},
			{Kind: llm.ToolEnd, ID: "c", Text: string(nested)},
			{Kind: llm.StopDelta, Stop: llm.StopToolCalls},
		}, "p/m")
		for _, err := range m.Stream(context.Background(), llm.Request{
			Purpose: llm.PurposeTurn, System: with, SystemTail: with, Extra: map[string]any{"x": with}, Tools: []llm.ToolSpec{{Name: "t", Description: with, Schema: nested}},
			Messages: []llm.Message{userMessage(with), {Role: llm.Assistant, Parts: []llm.Part{
				llm.Reasoning{Text: with, Opaque: nested}, llm.ToolCall{ID: "c", Name: "eca__look", Arguments: nested},
			}}, {Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "c", Text: with}}}},
			Origin: llm.Origin{Chat: "chat", Turn: "t"},
		}) {
			if err != nil {
				r.Fatal(err)
			}
		}
		tool := j.Tool(failingWriter{with})
		_, _ = tool.Run(context.Background(), tools.Call{ID: "c", ChatID: "chat", Arguments: nested, Files: noLog{}}, nil)
		refused := judgedCall("c2", "look", string(nested))
		refused.Rule, refused.Reason = with, with
		j.recordRefusal("chat", refused, "user", with, []string{with})
		j.Close()
		inJSON := strings.Trim(string(quoted(secret)), `"`)
		_ = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
			if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(secret)) || bytes.Contains(data, []byte(inJSON)) {
				r.Errorf("%q is in %s:\n%s", secret, path, data)
			}
			return err
		})
	})
}

// failingWriter is a tool that writes a file, returns a text, and fails with the same text.
type failingWriter struct{ text string }

func (failingWriter) Spec() tools.Spec {
	return tools.Spec{Server: tools.Native, Name: "look", Origin: "native"}
}

func (failingWriter) Plan(context.Context, tools.Call) (tools.Plan, error) { return tools.Plan{}, nil }

func (w failingWriter) Run(ctx context.Context, call tools.Call, _ tools.Sink) (tools.Result, error) {
	if err := call.Files.Writing(ctx, "/"+w.text, []byte(w.text)); err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Outputs: []string{w.text}, Failed: true}, errors.New(w.text)
}

// A process that dies while it erases a chat leaves bodies; the next process that cleans up removes
// them.
func TestEraseIsFinished(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{})
	ask(t, j.Model(hello(), "p/m"), "mine", "t", userMessage("only here"))
	ask(t, j.Model(hello(), "p/m"), "other", "t", userMessage("there"))
	j.Close()
	chain := At(state)
	defer chain.Close()
	text := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "only here"}}}
	data, err := json.Marshal(messageOf(text, func(s string) string { return s }, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := chain.Erase("mine", time.Now()); err != nil {
		t.Fatal(err)
	}
	// Simulates a process that died before it removed the body.
	hash, err := chain.put(data)
	if err == nil {
		err = os.WriteFile(chain.removalMarker(), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	checkJournal(t, state)
	if err := chain.Trim(Limits{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.body(hash); !errors.Is(err, ErrNoBody) {
		t.Errorf("Trim did not remove the body of the erased chat: %v", err)
	}
	if r := checkJournal(t, state); r.Bodies != 3 || r.Erased != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(state, "journal", "erasing")); !os.IsNotExist(err) {
		t.Errorf("Trim did not remove the note of the unfinished erasure: %v", err)
	}
}

// writerStateVar is the environment variable with the state directory for the child processes of
// TestKilledWriter, which write until they are killed.
const writerStateVar = "JOURNAL_TEST_WRITES"

func write(state string) {
	j := New(state, Options{SegmentSize: 2000, Limits: func() Limits { return Limits{Bytes: 200_000} }})
	m := j.Model(hello(), "p/m")
	fmt.Println("writing")
	for n := 0; ; n++ {
		chat := fmt.Sprint("chat", n%7, "-", os.Getpid())
		for range m.Stream(context.Background(), llm.Request{
			Purpose: llm.PurposeTurn, Messages: []llm.Message{userMessage(strings.Repeat(fmt.Sprint(n), 50))}, Origin: llm.Origin{Chat: chat, Turn: "t"},
		}) {
		}
		if n%5 == 0 {
			_ = j.Erase(chat)
		}
		if n%11 == 0 {
			_ = j.Trim(context.Background())
		}
	}
}

// Processes that write, erase and trim are killed at any moment: the chain stays intact, and
// nothing is missing without a reason.
func TestKilledWriter(t *testing.T) {
	needs.Long(t)
	state := t.TempDir()
	for round := range 12 {
		var children []*exec.Cmd
		for range 2 {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), writerStateVar+"="+state)
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, c)
			if _, err := io.ReadFull(out, make([]byte, len("writing"))); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range children {
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // at a random moment
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
		}
		if t.Failed() {
			t.Fatal("round ", round)
		}
		checkJournal(t, state)
	}
	c := At(state)
	defer c.Close()
	if err := c.Trim(Limits{Bytes: 1}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if r := checkJournal(t, state); r.Bodies != 0 {
		t.Errorf("Trim left bodies: %+v", r)
	}
}

// The quick check finds a changed end, and reports nothing while other processes write.
func TestCheckEnd(t *testing.T) {
	state, paths := newSmallJournal(t, 4, 2000)
	check := func() error {
		c := At(state)
		defer c.Close()
		return c.CheckEnd()
	}
	last := paths[len(paths)-1]
	whole, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    []byte
		damaged bool
	}{
		"as it was":      {whole, false},
		"longer":         {append(bytes.Clone(whole), "x\n"...), true},
		"other text":     {bytes.Repeat([]byte("x"), len(whole)), true},
		"being appended": {whole[:len(whole)-3], false},
	} {
		if err := os.WriteFile(last, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := check(); (err != nil) != c.damaged {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(last); err != nil {
		t.Fatal(err)
	}
	if err := check(); err == nil {
		t.Error("Verify did not report that a segment is missing")
	}
}
