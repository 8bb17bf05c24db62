package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// errorsOf answers as an editor whose language server takes each line with the word bad for an error
// and each one with the word odd for a warning.
func (r *rig) errorsOf(_ context.Context, params json.RawMessage) (any, error) {
	var p struct{ URI string }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(strings.TrimPrefix(p.URI, "file://"))
	if err != nil {
		return nil, err
	}
	list := []any{}
	for i, line := range strings.Split(string(data), "\n") {
		for word, severity := range map[string]string{"bad": "error", "odd": "warning", "nice": "hint"} {
			if strings.Contains(line, word) {
				at := map[string]int{"line": i, "character": 0}
				list = append(list, map[string]any{"uri": p.URI, "severity": severity, "message": line, "range": map[string]any{"start": at, "end": at}})
			}
		}
	}
	return map[string]any{"diagnostics": list}, nil
}

// results runs a turn and returns the results of its calls.
func (r *rig) results(t *testing.T) (out []string) {
	t.Helper()
	r.ask(t)
	for _, m := range r.Since(0) {
		var c struct {
			Content struct {
				Type    string
				Outputs []struct{ Text string }
			}
		}
		if json.Unmarshal(m.Params, &c) == nil && c.Content.Type == "toolCalled" {
			out = append(out, strings.ReplaceAll(c.Content.Outputs[0].Text, r.root, "$WS"))
		}
	}
	return out
}

func TestEditsNameNewErrors(t *testing.T) {
	t.Parallel()
	const head = "\n\nNew errors and warnings after this edit:\n"
	config := map[string]any{"toolCall": map[string]any{"approval": map[string]any{"byDefault": "allow"}}}
	write := func(text string) string { return fmt.Sprintf("write_file {path: $WS/a.go, content: %q}", text) }
	for name, c := range map[string]struct {
		capabilities string
		calls        []string
		answer       func(r *rig) fake.Answer
		want         string // all results
	}{
		"new ones": {everything, []string{write("new\nbad old\nodd w\nbad new\nnice\n")}, func(r *rig) fake.Answer { return r.errorsOf }, "Wrote $WS/a.go" + head + "$WS/a.go:4:1: error: bad new\n$WS/a.go:3:1: warning: odd w"},
		"an edit": {
			everything,
			[]string{`edit_file {path: $WS/a.go, original_content: "first\n", new_content: "first\nbad new\n"}`},
			func(r *rig) fake.Answer { return r.errorsOf }, "Edited $WS/a.go" + head + "$WS/a.go:2:1: error: bad new",
		},
		"several at once": {
			everything,
			[]string{`multi_edit {path: $WS/a.go, edits: [{original_content: first, new_content: bad first}, {original_content: last, new_content: bad last}]}`},
			func(r *rig) fake.Answer { return r.errorsOf }, "Made 2 edits of $WS/a.go" + head + "$WS/a.go:1:1: error: bad first\n$WS/a.go:3:1: error: bad last",
		},
		"a move": {
			everything,
			[]string{`move_file {source: $WS/a.go, destination: $WS/b.go}`},
			func(r *rig) fake.Answer { return r.errorsOf }, "Moved $WS/a.go to $WS/b.go",
		},
		"none":          {everything, []string{write("first\n")}, func(r *rig) fake.Answer { return r.errorsOf }, "Wrote $WS/a.go"},
		"no capability": {`{"codeAssistant": {"chat": true}}`, []string{write("bad new\n")}, nil, "Wrote $WS/a.go"},
		"no server":     {everything, []string{write("bad new\n")}, func(r *rig) fake.Answer { return r.result(`{"status": "no-server"}`) }, "Wrote $WS/a.go"},
		"garbage":       {everything, []string{write("bad new\n")}, func(r *rig) fake.Answer { return r.result(`[1]`) }, "Wrote $WS/a.go"},
		"no answer":     {everything, []string{write("bad new\n")}, func(*rig) fake.Answer { return neverAnswer }, "Wrote $WS/a.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAskingRig(t, c.capabilities, config, c.calls...)
			if err := os.WriteFile(filepath.Join(r.root, "a.go"), []byte("first\nbad old\nlast\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.answer != nil {
				r.Answer("editor/getDiagnostics", c.answer(r))
			}
			if got := strings.Join(r.results(t), "|"); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
			if c.answer == nil && len(r.requestParams("editor/getDiagnostics")) > 0 {
				t.Error("eca requested diagnostics from a client that does not support them")
			}
		})
	}
}

// eca checks the edits of one response together. One of their results names the errors of all.
func TestEditsOfOneResponse(t *testing.T) {
	t.Parallel()
	config := map[string]any{"toolCall": map[string]any{"approval": map[string]any{"byDefault": "allow"}}}
	var calls []string
	for i := range 4 {
		calls = append(calls, fmt.Sprintf("write_file {path: $WS/f%d.go, content: bad %d}", i, i))
	}
	r := newAskingRig(t, everything, config, calls...)
	r.Answer("editor/getDiagnostics", func(ctx context.Context, p json.RawMessage) (any, error) {
		if answer, err := r.errorsOf(ctx, p); err == nil {
			return answer, nil
		}
		return map[string]any{"diagnostics": []any{}}, nil // there is no such file yet
	})
	all := strings.Join(r.results(t), "\n")
	if n := strings.Count(all, "New errors"); n != 1 {
		t.Errorf("%d results name errors, want 1:\n%s", n, all)
	}
	for i := range 4 {
		if line := fmt.Sprintf("$WS/f%d.go:1:1: error: bad %d", i, i); strings.Count(all, line) != 1 {
			t.Errorf("%s does not occur exactly once in:\n%s", line, all)
		}
	}
}
