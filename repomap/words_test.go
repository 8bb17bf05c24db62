package repomap

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"HTTPServer.readAll":       "http server read all",
		"snake_case-name2x":        "snake case name x",
		"größe ABC":                "größe abc",
		strings.Repeat("long", 20): strings.Repeat("long", 8),
		"":                         "",
	} {
		var got []string
		eachWord(text, func(w []byte) bool { got = append(got, string(w)); return true })
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %q, want %q", text, s, want)
		}
	}
	for _, forms := range []string{"completion completions completing completed completer complete", "rank ranks ranked ranking", "class classes"} {
		first := ""
		for _, w := range strings.Fields(forms) {
			s := string(stem([]byte(w)))
			if first == "" {
				first = s
			}
			if s != first {
				t.Errorf("%s: stem %q, want %q", w, s, first)
			}
		}
	}
}

// If a focus matches no file or definition exactly, the map favours files whose paths and definitions
// contain the rarest of its words.
func TestWordsOfText(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"chat/compact.go": "package chat\n\nfunc compactHistory() {}\n\nfunc other() {}\n",
		"core/core.go":    "package core\n\nfunc SharedThing() {}\n",
		"chat/chat.go":    "package chat\n\nfunc Run() { compactHistory() }\n",
	}
	for i := range 40 {
		files[fmt.Sprintf("unit%02d/unit.go", i)] = fmt.Sprintf("package unit\n\nfunc Handle%02d() { SharedThing() }\n", i)
	}
	testkit.WriteFiles(t, root, files)
	x := New(Options{})
	defer x.Close()
	text := func(f Focus, tokens int) string {
		t.Helper()
		m, err := x.Map(context.Background(), root, f)
		if err != nil {
			t.Fatal(err)
		}
		return m.Text(tokens)
	}
	const few = 18
	if got := text(Focus{}, few); strings.Contains(got, "compactHistory") {
		t.Errorf("the map shows the definition even without the text:\n%s", got)
	}
	for _, f := range []Focus{{Text: "Where are old histories compacted?"}, {Names: []string{"compaction"}}, {Paths: []string{"compacting"}}} {
		if got := text(f, few); !strings.Contains(got, "chat/compact.go\n func compactHistory()") {
			t.Errorf("%+v:\n%s", f, got)
		}
	}
	// Words that occur in many files or in most questions do not change the map.
	if a, b := text(Focus{}, 200), text(Focus{Text: "Please fix the units where they should handle this"}, 200); a != b {
		t.Errorf("%s\nand with such words:\n%s", a, b)
	}
}

// Files without definitions share a line if they are in the same folder below the root, and the text
// never exceeds its budget.
func TestGroups(t *testing.T) {
	m := &Map{}
	for _, p := range []string{"b/x.go", "a/two.go", "a/one.go", "README.md", "Makefile", "a/with,comma.go", "c/deep/three.go", "c/deep/four.go", "c/deep/five.go"} {
		m.Files = append(m.Files, File{Path: p})
	}
	want := "Makefile\nREADME.md\na/{one.go,two.go}\na/with,comma.go\nb/x.go\nc/deep/{five.go,four.go,three.go}\n"
	if got := m.Text(100); got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
	for tokens := range 30 {
		got := m.Text(tokens)
		if len(got) > tokens*bytesPerToken {
			t.Errorf("%d tokens: %d bytes:\n%s", tokens, len(got), got)
		}
	}
}
