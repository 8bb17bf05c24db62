package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/chat/budget"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

func TestSplitArgs(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "  ": nil, "a b\tc\n": {"a", "b", "c"}, `"a b" c`: {"a b", "c"}, `x"a b"y`: {"xa by"}, `""`: {""}, `"open end`: {"open end"}, "ü\u00a0é": {"ü", "é"},
	} {
		if got := splitArgs(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	c := New(Deps{Extensions: func() *extensions.Set { return &extensions.Set{} }, Config: func() *config.Loaded { return &config.Loaded{Config: &config.Config{}} }})
	for message, want := range map[string]bool{
		"/costs": true, " /costs\n": true, "/login": true, "/hooks x": true, "/hooks": true, "/plugins": true,
		"/Costs": true, "/cost": true, "/resum": true, "/help": true, "/something-else": false, "/costs/": false, "/": false, "/ costs": false, "costs": false, "//costs": false, `/"costs"`: false, "/usr/bin/env": false, "": false,
	} {
		if _, ok := c.Find(message); ok != want {
			t.Errorf("%q: %v", message, ok)
		}
	}
}

// The number of arguments is checked.
func TestNumberOfArguments(t *testing.T) {
	file := definition{Info: Info{Name: "export", Arguments: []Argument{{Name: "file"}}}}
	for _, c := range []struct {
		d    definition
		args []string
		want string
	}{
		{definition{Info: Info{Name: "help"}}, []string{"me"}, "/help takes no arguments"},
		{definition{Info: Info{Name: "help"}}, nil, ""},
		{file, []string{"a", "b"}, "/export has too many arguments: /export [file] (double quotes keep words together)"},
		{file, []string{"a"}, ""},
	} {
		got := ""
		if err := c.d.check(c.args); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("/%s %q: %q, want %q", c.d.Name, c.args, got, c.want)
		}
	}
}

// fitMessage cuts a long message so that it fits, and closes a block of code that is open at the cut.
func TestFitMessage(t *testing.T) {
	c := New(Deps{Extensions: func() *extensions.Set { return &extensions.Set{} }, TempDir: t.TempDir(), Roots: func() []string { return nil }})
	for name, text := range map[string]string{
		"small": fence("", "a ``` b"),
		"code":  "# x\n" + fence("go", strings.Repeat("\t\"<ü>\"\n", 20_000)),
		"line":  strings.Repeat("ü", 40_000),
		"ticks": fence("", "````\n"+strings.Repeat("```\nx\n", 10_000)),
	} {
		got := c.fitMessage(name, text)
		head, rest, cut := strings.Cut(got, "\n\nThe whole text is in `")
		if raw, _ := json.Marshal(got); len(raw) > 50<<10 || closeFence(head) != "" {
			t.Errorf("%s: %d bytes, open block %q", name, len(raw), closeFence(head))
		}
		if cut != (name != "small") {
			t.Fatalf("%s: cut: %v", name, cut)
		}
		if !cut {
			continue
		}
		path, _, _ := strings.Cut(rest, "`")
		if data, err := os.ReadFile(path); err != nil || string(data) != text+"\n" {
			t.Errorf("%s: %s: %v, %d bytes", name, path, err, len(data))
		}
	}
}

// Write never changes an existing file, and removes a file that it could not write completely.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	c := New(Deps{Extensions: func() *extensions.Set { return &extensions.Set{} }, TempDir: dir, Roots: func() []string { return []string{dir} }})
	write := func(arg, text string) (string, error) {
		return c.write(arg, "eca-x", ".json", func(f *os.File) error {
			if _, err := f.WriteString(text); err != nil || text != "fail" {
				return err
			}
			return context.Canceled
		})
	}
	var got []string
	for _, arg := range []string{"", "", dir, "named.json", "named.json", "missing/named.json"} {
		path, err := write(arg, "text")
		if err != nil {
			path = "error"
		}
		got = append(got, filepath.Base(path))
	}
	if want := []string{"eca-x.json", "eca-x-2.json", "eca-x-3.json", "named.json", "error", "error"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if path, err := write("failed.json", "fail"); err == nil {
		t.Errorf("%s was written", path)
	}
	if _, err := os.Stat(filepath.Join(dir, "failed.json")); !os.IsNotExist(err) {
		t.Errorf("the incomplete file was not removed: %v", err)
	}
}

// A written document can be read again, except for events that a file must not supply, such as
// changes of files.
func TestDocument(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	bodies := []event.Body{
		event.UserMessage{ContentID: "m", Text: "my key is sk-abcdefghijklmnop and <b> & \"q\""},
		event.TurnStarted{Model: "a/b"},
		event.FileChanged{Path: "/etc/passwd", MovedTo: "/tmp/x"},
		event.UndoPoint{CallID: "c", Roots: []event.UndoFolder{{Path: "/etc", Point: "x"}}},
		event.TextDelta{Text: "an"},
		event.TitleChanged{Title: "T"},
		event.TextDelta{Text: "swer"},
		event.Notice{Text: "Chat forked to: X", Chat: "x"},
		event.Unknown{Name: "future", Raw: json.RawMessage(`{"n":12345678901234567890}`)},
		event.Flag{ContentID: "f", Text: "here", After: 1},
		event.Flag{ContentID: "g", Text: "nowhere", After: 77},
		event.TurnFinished{Reason: event.FinishedDone},
	}
	var events []event.Event
	for i, b := range bodies {
		events = append(events, event.Event{Seq: event.Seq(2*i + 1), Turn: "t", Time: at, Body: b})
	}
	var b bytes.Buffer
	h := header{Format: formatName, Version: formatVersion, Chat: chatInfo{ID: "c", Title: "T"}}
	if err := writeDocument(&b, h, events, redact.New()); err != nil {
		t.Fatal(err)
	}
	who, got, err := parseDocument(&b)
	if err != nil || who.ID != "c" || who.Title != "T" {
		t.Fatal(who, err)
	}
	want := slices.Clone(events)
	want[0].Body = event.UserMessage{ContentID: "m", Text: "my key is " + redact.Mark + " and <b> & \"q\""}
	want[7].Body = event.Notice{Text: "Chat forked to: X"}
	want[0].Begins, want[4].Begins, want[9].Begins = true, true, true
	want = slices.DeleteFunc(want, func(e event.Event) bool {
		f, flag := e.Body.(event.Flag)
		_, file := e.Body.(event.FileChanged)
		_, point := e.Body.(event.UndoPoint)
		return file || point || flag && f.Text == "nowhere"
	})
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// For each input, parseDocument returns an error, or events whose sequence numbers grow and whose
// flags follow their messages.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"format":"eca-chat","version":1,"chat":{"id":"c"},"events":[{"seq":1,"kind":"user_message","version":1,"body":{"text":"x"}},{"seq":2,"kind":"flag","version":1,"body":{"after":1}}]}`))
	f.Add([]byte(`{"format":"eca-chat","version":1,"events":[{"seq":5,"kind":"new","version":9,"body":{}},{"seq":5}]}`))
	f.Add([]byte(`{:eca/export-version 1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, events, err := parseDocument(bytes.NewReader(data))
		if err != nil && events != nil {
			t.Errorf("%d events are returned together with the error %v", len(events), err)
		}
		var last event.Seq
		for _, e := range events {
			if e.Seq <= last || e.Seq >= maxSeq {
				t.Errorf("event %d follows event %d", e.Seq, last)
			}
			last = e.Seq
			if f, ok := e.Body.(event.Flag); ok && (f.After == 0 || f.After >= e.Seq) {
				t.Errorf("flag %d belongs after event %d", e.Seq, f.After)
			}
			if _, _, err := event.EncodeBody(e.Body); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDrawContext(t *testing.T) {
	used := event.UsageReported{InputTokens: 400, OutputTokens: 100, ContextLimit: 1000, Share: []event.Share{
		{Category: "System prompt", Tokens: 104}, {Category: "AGENTS.md", Tokens: 1}, {Category: "Tool definitions", Tokens: 395},
	}}
	got := drawContext(used, "m/m", 75) + listSystem(event.SystemPrompt{Parts: []event.SystemPart{
		{Name: "prompt of agent code", Category: "System prompt", Text: "12345"}, {Name: "/ws/AGENTS.md", Category: "AGENTS.md", Text: "1234"},
	}})
	for _, want := range []string{
		"500 of 1,000 tokens (50.0%)\n\n" + strings.Repeat("🟦", 10) + "\n🟫" + strings.Repeat("🟧", 9) + "\n",
		"\n🟧" + strings.Repeat("⬜", 9) + "\n", "- 🟫 AGENTS.md: 1 (0.1%)\n", "Auto-compact at 75%: 750 tokens",
		"- 🟦 prompt of agent code: 2\n- 🟫 /ws/AGENTS.md: 1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// If a conversation that the model answered is longer than the model's limit, /context says that the
// limit is wrong.
func TestContextBeyondTheLimit(t *testing.T) {
	used := event.UsageReported{InputTokens: 100, OutputTokens: 10, ContextLimit: 1}
	got := drawContext(used, "m/m", 75)
	if want := "Context of `m/m`: 110 tokens, more than the model's limit of 1. The model answered, so the limit is wrong: correct `limit.context`"; !strings.Contains(got, want) || strings.Contains(got, "11000") {
		t.Error(got)
	}
	used.ContextLimit = 110
	if got := drawContext(used, "m/m", 75); !strings.Contains(got, "110 of 110 tokens (100.0%)") {
		t.Error(got)
	}
}

// Requests without a price are not shown as free.
func TestCostText(t *testing.T) {
	for used, want := range map[budget.ModelUsage]string{
		{}:                       "$0.00",
		{Requests: 2}:            unknownCost,
		{Requests: 2, Priced: 1}: "$0.00",
	} {
		if got := costText(used); got != want {
			t.Errorf("%+v: %s, want %s", used, got, want)
		}
	}
}

// A model that no provider lists is named as the user typed it.
func TestUnlistedModel(t *testing.T) {
	for _, c := range [][3]string{
		{"nope/x", "local/nope/x", "there is no provider nope, and local has no model nope/x"},
		{"x", "local/x", "local has no model x"},
		{"local/x", "local/x", "no provider lists the model local/x"},
	} {
		if got := unlistedModel(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s", c[0], got)
		}
	}
}

func TestCollapseSpace(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", " \n\t": " ", "a \n b": "a b", "\ra\u00a0": " a ", "\u00a0": " ",
	} {
		if got := collapseSpace(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
