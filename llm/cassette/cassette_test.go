package cassette

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func user(text string) llm.Message {
	return llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}}
}

func results(texts ...string) llm.Message {
	m := llm.Message{Role: llm.User}
	for _, t := range texts {
		m.Parts = append(m.Parts, llm.ToolResult{Text: t})
	}
	return m
}

var said = llm.Message{Role: llm.Assistant}

// ask renders an answer.
func ask(t *testing.T, m llm.Model, req llm.Request) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var b strings.Builder
	for d, err := range m.Stream(ctx, req) {
		if err != nil {
			return b.String() + "!" + string(llm.AsError(err).Kind) + " " + err.Error()
		}
		switch d.Kind {
		case llm.TextDelta:
			b.WriteString(d.Text)
		case llm.ToolEnd:
			b.WriteString("[" + d.ID + " " + d.Text + "]")
		}
	}
	return b.String()
}

func TestWhichStepAnswers(t *testing.T) {
	p, err := Parse([]byte(`
cassette: 1
title: A title
turns:
  - steps: [{text: first}]
  - user: '(?i)magic'
    steps:
      - {text: by word, calls: [{tool: x, arguments: {a: ["${workspace}/b", 1]}}]}
      - text: 'found ${result:(?m)^name=(\w+)$} and ${result:nothing}'
  - steps: [{text: third}]
default:
  steps: [{text: default}]
`))
	if err != nil {
		t.Fatal(err)
	}
	const system = "x\n\n## Workspace folders\n- /ws\n- /other\n"
	for _, c := range []struct {
		msgs []llm.Message
		want string
	}{
		{[]llm.Message{user("hi")}, "first"},
		{[]llm.Message{user("Magic!")}, `by word[call_1_1 {"a":["/ws/b",1]}]`},
		{[]llm.Message{user("Magic!"), said, results("a", "name=bob\nx")}, "found bob and "},
		{[]llm.Message{user("hi"), said, results("x"), said, user("second")}, "default"}, // its place belongs to a word
		{[]llm.Message{user("a"), said, user("b"), said, user("c")}, "third"},
		{[]llm.Message{user("a"), said, user("b"), said, user("c"), said, user("d")}, "default"},
		{[]llm.Message{user("hi"), said, results("x")}, `!bad_request The cassette's turn for "hi" has only 1 step, but the tool results need another; add a step to the file, or record it again`},
	} {
		if got := ask(t, p, llm.Request{System: system, Messages: c.msgs}); got != c.want {
			t.Errorf("%v:\ngot  %s\nwant %s", c.msgs, got, c.want)
		}
	}
	if got := ask(t, p, llm.Request{Purpose: llm.PurposeTitle, Messages: []llm.Message{user("magic")}}); got != "A title" {
		t.Errorf("title: %s", got)
	}
}

func TestFaults(t *testing.T) {
	p, err := Parse([]byte(`
cassette: 1
turns:
  - {user: flaky, steps: [{error: {status: 503, times: 2}, text: ok}]}
  - {user: cut, steps: [{text: half, cut: true}]}
  - {user: late, steps: [{text: half, error: {status: 529, times: 1, late: true}}]}
  - {user: raw, steps: [{text: half, raw: x}]}
  - {user: hang, steps: [{text: half, hang: true}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	one := func(s string) llm.Request { return llm.Request{Messages: []llm.Message{user(s)}} }
	for i, want := range []string{"!overloaded", "!overloaded", "ok", "ok"} {
		if got := ask(t, p, one("flaky")); !strings.HasPrefix(got, want) {
			t.Errorf("try %d: %s", i+1, got)
		}
	}
	for _, c := range [][2]string{{"late", "half!overloaded"}, {"late", "half"}, {"cut", "half!premature_stop"}, {"raw", "half!malformed"}, {"none", "!bad_request"}} {
		if got := ask(t, p, one(c[0])); !strings.HasPrefix(got, c[1]) {
			t.Errorf("%s: %s", c[0], got)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var last error
	for _, err := range p.Stream(ctx, one("hang")) {
		last = err
	}
	if last == nil {
		t.Error("a hanging step ended without an error")
	}
}

// Errors in a cassette are reported with their line and column.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"cassette: 2\nturns: []":            "1:11: it has version 2; this eca reads version 1",
		"turns: []":                         "1:6: this is not a cassette: its first line must be `cassette: 1`",
		"":                                  "1:1: this is not a cassette",
		"cassette: 1\nturns: [{steps: []}]": "2:9: the turn has no steps",
		"cassette: 1\nturns:\n  - {user: '(', steps: [{}]}":                 "3:12: user: error parsing regexp",
		"cassette: 1\nturns:\n  - steps: [{cases: [{if: a}, {if: '['}]}]":   "3:36: if: error parsing regexp",
		"cassette: 1\nturns: []\ndefault:\n  steps: [{cases: [{if: '['}]}]": "4:25: if: error parsing regexp",
		"cassette: 1\nturns: []\ndefault:\n  steps: []":                     "the turn has no steps",
		"cassette: 1\nturn: []":                                             "2:1: unknown field \"turn\"",
		"cassette: 1\nturns:\n- steps:\n  - txt: a":                         "4:5: unknown field \"txt\"",
		"{": "1:1: ",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}
	if _, err := Demo(); err != nil {
		t.Error(err)
	}
}

// A recording plays back the same conversation, without the secrets.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	p, err := Parse([]byte(`
cassette: 1
title: My title
turns:
  - steps:
      - {reasoning: hm, text: "the password is hunter22", calls: [{id: c1, tool: x, arguments: {path: "${workspace}/a"}}, {id: c2, tool: y, rawArguments: '{"bro'}]}
      - {text: done, stop: length}
  - steps: [{text: broken, cut: true}]
`))
	if err != nil {
		t.Fatal(err)
	}
	folders := Folders(filepath.Join(t.TempDir(), "state", "recordings"))
	rec := NewRecorder(dir, folders, redact.New("hunter22").String, func(err error) { t.Error(err) })
	m := rec.Wrap(p)
	const system = "## Workspace folders\n- /ws\n"
	history := [][]llm.Message{
		{user("go, hunter22")},
		{user("go, hunter22"), said, results("r")},
		{user("go, hunter22"), said, results("r"), said, user("more")},
	}
	for _, msgs := range history {
		ask(t, m, llm.Request{System: system, Messages: msgs, CacheKey: "chat/1"})
	}
	ask(t, m, llm.Request{Purpose: llm.PurposeTitle, Messages: history[0], CacheKey: "chat/1/title"})
	data, err := os.ReadFile(filepath.Join(dir, "chat_1.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "hunter22") || strings.Contains(string(data), "broken") {
		t.Errorf("recorded:\n%s", data)
	}
	again, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"the password is " + redact.Mark + `[c1 {"path":"/elsewhere/a"}][c2 {"bro]`, "done"} {
		req := llm.Request{System: "## Workspace folders\n- /elsewhere\n", Messages: history[i]}
		if got := ask(t, again, req); got != want {
			t.Errorf("played back: %s, want %s", got, want)
		}
	}
	if got := ask(t, again, llm.Request{Purpose: llm.PurposeTitle}); got != "My title" {
		t.Errorf("title %q", got)
	}

	// Another process deletes the chat's recording, but not one that has become the script of a test.
	changed := strings.Replace(string(data), "said: go", "user: go", 1)
	for text, kept := range map[string]bool{string(data): false, changed: true, "cassette: 1\nturns: [\n": true, "a: b\n": true} {
		path := filepath.Join(dir, "chat_1.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := folders.Delete("chat/1"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != kept {
			t.Errorf("kept: %v, of\n%s", err == nil, text)
		}
	}
	if err := rec.Delete("chat/1"); err != nil {
		t.Fatal(err)
	}
	ask(t, m, llm.Request{System: system, Messages: history[0], CacheKey: "chat/1"})
	if data, err := os.ReadFile(filepath.Join(dir, "chat_1.yaml")); err != nil || strings.Contains(string(data), "My title") {
		t.Errorf("a new chat has the recording of the deleted one (%v):\n%s", err, data)
	}
}

// A request to a path that no wire format has says where to add the path.
func TestUnknownPathIsNamed(t *testing.T) {
	p, err := Parse([]byte("cassette: 1\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.Handler(nil).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/new", nil))
	const want = "the cassette serves no POST /v1/new; add its path to Handler (llm/cassette/http.go)\n"
	if got := w.Body.String(); w.Code != http.StatusNotFound || got != want {
		t.Errorf("%d %q, want 404 %q", w.Code, got, want)
	}
}
