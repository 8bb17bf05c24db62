package diagnostics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

func at(line int, message string) tools.Diagnostic {
	return tools.Diagnostic{At: tools.Position{Path: "/f", Line: line, Character: 1}, Message: message}
}

func TestFresh(t *testing.T) {
	const text = "a\nb\nc\nd\n"
	for name, c := range map[string]struct {
		before, after string
		known, now    []tools.Diagnostic
		want          string
	}{
		"shifted":               {text, "new\nnew\n" + text, []tools.Diagnostic{at(2, "x")}, []tools.Diagnostic{at(4, "x")}, ""},
		"shifted up":            {text, "c\nd\n", []tools.Diagnostic{at(1, "y"), at(4, "x")}, []tools.Diagnostic{at(2, "x")}, ""},
		"on the changed line":   {text, "a\nB\nc\nd\n", []tools.Diagnostic{at(2, "x")}, []tools.Diagnostic{at(2, "x")}, ""},
		"another there":         {text, "a\nB\nc\nd\n", []tools.Diagnostic{at(2, "x")}, []tools.Diagnostic{at(2, "y")}, "2 y"},
		"the same elsewhere":    {text, "a\nB\nc\nD\n", []tools.Diagnostic{at(2, "x")}, []tools.Diagnostic{at(4, "x")}, "4 x"},
		"once more":             {text, text + "e\n", []tools.Diagnostic{at(1, "x")}, []tools.Diagnostic{at(1, "x"), at(5, "x")}, "5 x"},
		"twice on a line":       {text, text, []tools.Diagnostic{at(1, "x")}, []tools.Diagnostic{at(1, "x"), at(1, "x")}, "1 x"},
		"unchanged file":        {text, text, []tools.Diagnostic{at(1, "x")}, []tools.Diagnostic{at(1, "x"), at(3, "z")}, "3 z"},
		"lines in the message":  {text, "new\n" + text, []tools.Diagnostic{at(2, "see f.go:12:3 and line 9")}, []tools.Diagnostic{at(3, "see f.go:13:3 and line 10")}, ""},
		"numbers that are none": {text, text, []tools.Diagnostic{at(2, "want 2 values")}, []tools.Diagnostic{at(2, "want 3 values")}, "2 want 3 values"},
		"a new file":            {"", "a\nb", nil, []tools.Diagnostic{at(2, "x")}, "2 x"},
		"no newline at the end": {"a\nb", "0\na\nb", []tools.Diagnostic{at(2, "x")}, []tools.Diagnostic{at(3, "x")}, ""},
		"of the whole file":     {text, "new\n" + text, []tools.Diagnostic{at(0, "x")}, []tools.Diagnostic{at(0, "x")}, ""},
	} {
		var got []string
		for _, d := range newDiagnostics(c.known, c.now, hunks(c.before, c.after)) {
			got = append(got, fmt.Sprint(d.At.Line, " ", d.Message))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// source is a checker that reports an error for each line with the word bad.
type source struct {
	mu      sync.Mutex // guards the fields below
	asked   int
	slow    bool          // Changed returns without results
	entered chan struct{} // Changed closes it when it begins; may be nil
	other   []tools.Diagnostic
}

func (s *source) wrong(path string) (out []tools.Diagnostic) {
	data, _ := os.ReadFile(path)
	for i, line := range strings.Split(string(data), "\n") {
		if strings.Contains(line, "bad") {
			out = append(out, tools.Diagnostic{At: tools.Position{Path: path, Line: i + 1, Character: 1}, Message: line})
		}
	}
	return out
}

func (s *source) Known(_ context.Context, path string) (map[string][]tools.Diagnostic, bool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string][]tools.Diagnostic{path: s.wrong(path), "/other": s.other}, true, filepath.Ext(path) == ".toy"
}

func (s *source) Changed(ctx context.Context, paths []string) (map[string][]tools.Diagnostic, []string) {
	s.mu.Lock()
	s.asked++
	slow, entered := s.slow, s.entered
	s.entered = nil
	s.mu.Unlock()
	if slow {
		return nil, nil
	}
	if entered != nil {
		close(entered)
		<-ctx.Done() // until another edit begins
		return nil, nil
	}
	out := map[string][]tools.Diagnostic{"/other": s.other}
	for _, path := range paths {
		out[path] = s.wrong(path)
	}
	return out, paths
}

type rig struct {
	*testing.T
	tool   tools.Tool
	source *source
	dir    string
}

// newRig makes a rig whose tool moves a file, or calls also with the new text and then writes a file.
func newRig(t *testing.T, also func(text string) error) *rig {
	s := &source{}
	write := tools.Definition[map[string]any]{
		Name: "write_file", Description: "x",
		Run: func(_ context.Context, _ tools.Call, a map[string]any, _ tools.Sink) (tools.Result, error) {
			if from, ok := a["source"].(string); ok {
				return tools.Text("moved"), os.Rename(from, a["destination"].(string))
			}
			text, _ := a["text"].(string)
			if err := also(text); err != nil {
				return tools.Result{}, err
			}
			return tools.Text("written"), os.WriteFile(a["path"].(string), []byte(text), 0o600)
		},
	}.Build()
	return &rig{t, New().Watch(write, s), s, t.TempDir()}
}

func (r *rig) call(args map[string]any) string {
	raw, err := json.Marshal(args)
	if err != nil {
		r.Fatal(err)
	}
	res, err := r.tool.Run(r.Context(), tools.Call{ChatID: "chat", Arguments: raw}, nil)
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.ReplaceAll(strings.Join(res.Outputs, "|"), r.dir, "")
}

func (r *rig) write(name, text string) string {
	return r.call(map[string]any{"path": filepath.Join(r.dir, name), "text": text})
}

func (r *rig) want(got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("%s\nwant %s", got, want)
	}
}

const header = "written\n\nNew errors and warnings after this edit:\n"

func TestEdits(t *testing.T) {
	fails := errors.New("it fails")
	r := newRig(t, func(text string) error {
		if strings.Contains(text, "FAIL") {
			return fails
		}
		return nil
	})
	r.want(r.write("a.toy", "bad 1\n"), header+"/a.toy:1:1: error: bad 1")
	r.want(r.write("a.toy", "\nbad 1\n"), "written")
	r.want(r.write("a.txt", "bad\n"), "written")
	r.want(r.write("a.toy", "FAIL"), "error: it fails")
	r.want(r.write("a.toy", "\nbad 1\nbad 2\n"), header+"/a.toy:3:1: error: bad 2")
	r.source.mu.Lock()
	r.source.slow = true
	r.source.mu.Unlock()
	r.want(r.write("a.toy", "bad 3\n"), "written")
	r.source.mu.Lock()
	r.source.slow = false
	r.source.mu.Unlock()
	r.want(r.write("a.toy", "bad 3\nbad 4\n"), header+"/a.toy:1:1: error: bad 3\n/a.toy:2:1: error: bad 4")
	r.want(r.call(map[string]any{"source": filepath.Join(r.dir, "a.toy"), "destination": filepath.Join(r.dir, "b.toy")}), "moved")
	r.want(r.write("b.toy", "bad 3\nbad 4\nbad 5\n"), header+"/b.toy:3:1: error: bad 5")
}

// The result names errors that the edit causes in other files, and not the older errors there.
func TestOtherFiles(t *testing.T) {
	var r *rig
	r = newRig(t, func(text string) error {
		r.source.mu.Lock()
		defer r.source.mu.Unlock()
		r.source.other = append(r.source.other, tools.Diagnostic{At: tools.Position{Path: "/other", Line: 9, Character: 2}, Severity: tools.Warning, Message: text})
		return nil
	})
	r.want(r.write("a.toy", "one"), header+"/other:9:2: warning: one")
	r.want(r.write("a.toy", "two"), header+"/other:9:2: warning: two")
}

// If edits overlap, the checker is asked once for all, and the result of the last one has the answer.
func TestOverlappingEdits(t *testing.T) {
	r := newRig(t, func(string) error { return nil })
	entered := make(chan struct{})
	r.source.entered = entered
	first := make(chan string, 1)
	go func() { first <- r.write("a.toy", "bad a\n") }()
	<-entered // the first edit waits for the source
	r.want(r.write("b.toy", "bad b\n"), header+"/a.toy:1:1: error: bad a\n/b.toy:1:1: error: bad b")
	r.want(<-first, "written")

	gate, both := make(chan struct{}), make(chan struct{}, 2)
	r2 := newRig(t, func(string) error { both <- struct{}{}; <-gate; return nil })
	results := make(chan string, 2)
	for _, name := range []string{"a.toy", "b.toy"} {
		go func() { results <- r2.write(name, "bad "+name+"\n") }()
	}
	<-both
	<-both
	close(gate)
	got := []string{<-results, <-results}
	if strings.Count(strings.Join(got, ""), "New errors") != 1 || r2.source.asked != 1 {
		t.Errorf("asked %d times: %q", r2.source.asked, got)
	}
}

func TestLongListsAreCut(t *testing.T) {
	r := newRig(t, func(string) error { return nil })
	long := strings.Repeat("bad "+strings.Repeat("x", 2000)+"\n", 1000)
	if got := r.write("a.toy", long); len(got) > maxText+200 || !strings.Contains(got, "\n... and 98") {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}
