package inline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a model that answers with given deltas. It resolves the default model and the names in
// known to itself.
type scripted struct {
	deltas []llm.Delta
	hang   bool // after the deltas, the model sends nothing until the request ends
	known  map[string]bool
	asked  llm.Request
}

func (m *scripted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	m.asked = req
	return func(yield func(llm.Delta, error) bool) {
		for _, d := range m.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if m.hang {
			<-ctx.Done()
			yield(llm.Delta{}, ctx.Err())
		}
	}
}

func (m *scripted) Resolve(name, _ string) (chat.Model, error) {
	if name != "" && !m.known[name] {
		return chat.Model{}, errors.New("unknown: " + name)
	}
	if name == "" {
		name = "the/default"
	}
	return chat.Model{ID: name, Name: name, Client: m, Reasoning: true}, nil
}

func newEngine(t *testing.T, m *scripted, options string) *Engine {
	t.Helper()
	cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(options), Getenv: func(string) string { return "" }})
	if len(cfg.Problems) > 0 {
		t.Fatal(cfg.Problems)
	}
	return New(Deps{Models: m, Config: func() *config.Loaded { return cfg }, Roots: func() []string { return []string{"/ws"} }, Now: time.Now})
}

func says(text string) []llm.Delta {
	return []llm.Delta{{Kind: llm.TextDelta, Text: text}, {Kind: llm.StopDelta, Stop: llm.StopEnd}}
}

// The user's choice is never replaced, eca's own choice is.
func TestCompletionModel(t *testing.T) {
	for _, c := range []struct {
		options, known, want string
	}{
		{`{}`, "openai/gpt-4.1", "openai/gpt-4.1"},
		{`{}`, "", "the/default"},
		{`{"completion": {"model": "my/own"}}`, "my/own", "my/own"},
		{`{"completion": {"model": "my/own"}}`, "openai/gpt-4.1", "unknown: my/own"},
		{`{"completion": {"model": "openai/gpt-4.1"}}`, "", "unknown: openai/gpt-4.1"},
		{`{"completion": {"model": null}}`, "openai/gpt-4.1", "the/default"},
	} {
		m := &scripted{deltas: says("x"), known: map[string]bool{c.known: true}}
		_, err := newEngine(t, m, c.options).Complete(t.Context(), Cursor{Line: 1, Character: 1})
		got := m.asked.Model
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.options, c.known, got, c.want)
		}
	}
}

func TestCompletionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := llm.Delta{Kind: llm.RetryDelta, Err: &llm.Error{Kind: llm.ErrOverloaded, Message: "it is busy"}}
		e := newEngine(t, &scripted{deltas: []llm.Delta{retry, {Kind: llm.TextDelta, Text: "half"}}, hang: true}, `{}`)
		start := time.Now()
		text, err := e.Complete(t.Context(), Cursor{Line: 1, Character: 1})
		var late *llm.Error
		if !errors.As(err, &late) || late.Kind != llm.ErrTimeout || !strings.Contains(err.Error(), "30s: it is busy") || text != "" {
			t.Errorf("%q, %v", text, err)
		}
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("after %s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Complete(ctx, Cursor{Line: 1, Character: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error after the caller's deadline is %v", err)
		}
	})
}

// An incomplete answer ends a rewrite with an error that names the reason, never with "finished".
func TestIncomplete(t *testing.T) {
	stop := func(r llm.StopReason) llm.Delta { return llm.Delta{Kind: llm.StopDelta, Stop: r} }
	text := llm.Delta{Kind: llm.TextDelta, Text: "text"}
	for want, deltas := range map[string][]llm.Delta{
		"output limit":          {text, stop(llm.StopLength)},
		"refused":               {text, stop(llm.StopRefusal)},
		"tool":                  {{Kind: llm.ToolStart, ID: "1", Name: "x"}, stop(llm.StopToolCalls)},
		"without a stop reason": {text},
		"longer than":           {{Kind: llm.TextDelta, Text: strings.Repeat("x", maxAnswer+1)}, stop(llm.StopEnd)},
		"without text":          says("\n"),
	} {
		got := rewrite(t, deltas, "x")
		if !strings.HasSuffix(got, "]") || !strings.Contains(got, want) || strings.Contains(got, "finished") {
			t.Errorf("%s: %s", want, got)
		}
	}
}

// rewrite renders the steps of a rewrite.
func rewrite(t *testing.T, deltas []llm.Delta, selected string) string {
	t.Helper()
	r, err := newEngine(t, &scripted{deltas: deltas}, `{}`).Rewrite(Selection{Text: selected, Instruction: "do"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for step, err := range r.Stream(t.Context()) {
		if err != nil {
			fmt.Fprintf(&out, "[%v]", err)
			continue
		}
		out.WriteString([...]string{"", "[started]", "[reasoning]", step.Text, "[finished]"}[step.Kind])
	}
	return out.String()
}

func TestRewriteSteps(t *testing.T) {
	think := func(kind llm.DeltaKind) llm.Delta { return llm.Delta{Kind: kind, ID: "r", Text: "hm"} }
	end := llm.Delta{Kind: llm.StopDelta, Stop: llm.StopEnd}
	word := llm.Delta{Kind: llm.TextDelta, Text: "a"}
	for _, c := range []struct {
		deltas         []llm.Delta
		selected, want string
	}{
		{says("new"), "old", "[started]new[finished]"},
		{says("```\nnew\n```\n"), "old\r\n\r\n", "[started]new\r\n\r\n[finished]"},
		{says("new\n"), "old", "[started]new[finished]"},
		{says("```\n```"), "old\n", "[started][finished]"},
		{says("```\nnew\n```"), "\n```\nold\n```", "[started]```\nnew\n```[finished]"},
		{
			[]llm.Delta{{Kind: llm.RetryDelta}, think(llm.ReasoningDelta), think(llm.ReasoningDelta), word, think(llm.ReasoningStart), think(llm.ReasoningDelta), think(llm.ReasoningEnd), think(llm.ReasoningStart), word, end},
			"old", "[started][reasoning]a[reasoning][reasoning]a[finished]",
		},
	} {
		if got := rewrite(t, c.deltas, c.selected); got != c.want {
			t.Errorf("%q: %q, want %q", c.selected, got, c.want)
		}
	}
	if _, err := newEngine(t, &scripted{}, `{}`).Rewrite(Selection{Text: strings.Repeat("x", maxSelection+1)}); err == nil {
		t.Error("a selection above maxSelection was accepted")
	}
}

func TestWindow(t *testing.T) {
	file := "1\n2\n3\n4\n5\n6\n7" // the last line has no end
	const begins, ends = "[[selection begins]]\n", "[[selection ends]]\n"
	for _, c := range []struct {
		first, last, lines, bytes int
		want                      string
	}{
		{3, 4, 7, 100, "1\n2\n" + begins + "3\n4\n" + ends + "5\n6\n7\n"},
		{3, 4, 6, 100, "1\n2\n" + begins + "3\n4\n" + ends + "5\n6\n[[1 lines left out]]\n"},
		{4, 4, 3, 100, "[[2 lines left out]]\n3\n" + begins + "4\n" + ends + "5\n[[2 lines left out]]\n"},
		{1, 1, 3, 100, begins + "1\n" + ends + "2\n3\n[[4 lines left out]]\n"},
		{7, 7, 3, 100, "[[4 lines left out]]\n5\n6\n" + begins + "7\n" + ends},
		{4, 4, 7, 6, "[[2 lines left out]]\n3\n" + begins + "4\n" + ends + "5\n[[2 lines left out]]\n"},
		{2, 4, 3, 100, "[[1 lines left out]]\n" + begins + "2\n3\n4\n" + ends + "[[3 lines left out]]\n"},
		{2, 4, 2, 100, ""},
		{2, 4, 9, 5, ""},
		{2, 4, 0, 100, ""},
		{-3, 1, 2, 100, begins + "1\n" + ends + "2\n[[5 lines left out]]\n"},
		{5, 4, 2, 100, "[[3 lines left out]]\n4\n" + begins + ends + "5\n[[2 lines left out]]\n"},
		{90, 99, 2, 100, "[[5 lines left out]]\n6\n7\n" + begins + ends},
	} {
		if got := window(file, c.first, c.last, c.lines, c.bytes); got != c.want {
			t.Errorf("%+v:\n%s", c, got)
		}
	}
}

func TestCursor(t *testing.T) {
	const doc = "ab\r\nüx\n\nend"
	for _, c := range []struct{ line, character, want int }{
		{1, 1, 0}, {1, 3, 2}, {1, 99, 2}, {2, 2, 6}, {2, 3, 7}, {3, 1, 8}, {4, 4, 12}, {4, 1 << 30, 12}, {5, 1, -1}, {0, 1, -1}, {1, 0, -1},
	} {
		at, ok := offset(doc, c.line, c.character)
		if ok != (c.want >= 0) || ok && at != c.want {
			t.Errorf("%d:%d is at %d %v, want %d", c.line, c.character, at, ok, c.want)
		}
	}
	// Of a large document, the model gets only the text around the cursor.
	m := &scripted{deltas: says("x")}
	line := strings.Repeat("ö", 50) + "\n"
	large := strings.Repeat(line, 20_000)
	if _, err := newEngine(t, m, `{}`).Complete(t.Context(), Cursor{Document: large + "here" + large, Line: 20_001, Character: 5}); err != nil {
		t.Fatal(err)
	}
	sent := m.asked.Messages[0].Parts[0].(llm.Text).Text
	if n := len(sent); n > maxContext+100 || n < maxContext-500 {
		t.Errorf("%d bytes were sent", n)
	}
	if !strings.Contains(sent, line+"here</before><after>"+line) || !strings.HasPrefix(sent, "<before>"+line) || !strings.HasSuffix(sent, line+"</after>") {
		t.Errorf("sent %.200q", sent)
	}
	if part := lastPart("日本", 4); part != "本" {
		t.Errorf("last part %q", part)
	}
	if part := firstPart("日本", 4); part != "日" {
		t.Errorf("first part %q", part)
	}
}
