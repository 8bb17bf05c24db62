package search

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// source has one chat.
type source struct {
	events []event.Event
	read   int // events that were read
}

func (s *source) State(context.Context) (string, error) { return fmt.Sprint(len(s.events)), nil }

func (s *source) Updated(context.Context) (map[string]time.Time, error) {
	return map[string]time.Time{"c": time.UnixMilli(int64(len(s.events)))}, nil
}

func (s *source) Meta(context.Context, string) (chat.Meta, event.Seq, bool, error) {
	return chat.Meta{ID: "c", Title: "T"}, 0, true, nil
}

func (s *source) Events(_ context.Context, _ string, from event.Seq, limit int) (out []event.Event, _ error) {
	for _, e := range s.events {
		if e.Seq >= from && len(out) < limit {
			out = append(out, e)
		}
	}
	s.read += len(out)
	return out, nil
}

func (s *source) MessageAfter(context.Context, string, event.Seq) (chat.Cursor, bool, error) {
	return chat.Cursor{}, false, nil
}

func (s *source) Close() error { return nil }

func (s *source) say(bodies ...event.Body) {
	for _, b := range bodies {
		seq := event.Seq(len(s.events) + 1)
		s.events = append(s.events, event.Event{Seq: seq, Turn: "t", Time: time.UnixMilli(1000), Body: b})
	}
}

func newIndex(tb testing.TB, s *source) *Index {
	tb.Helper()
	dir := tb.TempDir()
	x := New(Options{
		Open:      func() (string, Source) { return dir, s },
		InMemory:  func() bool { return false },
		Workspace: func(roots []string) string { return strings.Join(roots, "\n") },
		Now:       time.Now,
	})
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	return x
}

func hits(tb testing.TB, x *Index, query string) int {
	tb.Helper()
	res, err := x.Search(context.Background(), Parse(query, time.Now()), nil, MaxLimit, 0)
	if err != nil {
		tb.Fatalf("search %q: %v", query, err)
	}
	return len(res.Hits)
}

// A damaged index is built again from the chats in the store.
func TestDamagedIndexIsRebuilt(t *testing.T) {
	t.Parallel()
	s := &source{}
	s.say(event.UserMessage{Text: "a narwhal"}, event.TurnFinished{Reason: event.FinishedDone})
	x := newIndex(t, s)
	dir, _ := x.opts.Open()
	for _, name := range []string{File, File + "-wal"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("garbage", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := hits(t, x, "narwhal"); n != 1 {
		t.Errorf("found %d times", n)
	}
}

// An unfinished turn is found once, and a finished one is not read again.
func TestIndexGrows(t *testing.T) {
	t.Parallel()
	s := &source{}
	x := newIndex(t, s)
	s.say(event.UserMessage{Text: "a narwhal"}, event.TurnStarted{}, event.TextDelta{Text: "it is a whale "})
	if n := hits(t, x, "narwhal") + hits(t, x, "whale"); n != 2 {
		t.Errorf("%d found of a turn that goes on", n)
	}
	s.say(event.TextDelta{Text: "with a tusk"}, event.TurnFinished{Reason: event.FinishedDone})
	if whale, tusk, both := hits(t, x, "whale"), hits(t, x, "tusk"), hits(t, x, `"whale with"`); whale != 1 || tusk != 1 || both != 1 {
		t.Errorf("found %d, %d and %d times", whale, tusk, both)
	}
	s.read = 0
	s.say(event.UserMessage{Text: "thanks"}, event.TurnFinished{Reason: event.FinishedDone})
	if n := hits(t, x, "thanks"); n != 1 || s.read != 2 {
		t.Errorf("found %d times, read %d events", n, s.read)
	}
	s.read = 0
	if n := hits(t, x, "narwhal"); n != 1 || s.read != 0 {
		t.Errorf("nothing is new: found %d times, read %d events", n, s.read)
	}
}

// The index contains all messages, even if they have the same time or exceed the size of a batch.
func TestIndexIsComplete(t *testing.T) {
	t.Parallel()
	s := &source{}
	x := newIndex(t, s)
	large := strings.Repeat("filler text ", 4000)
	for range 150 {
		s.say(event.UserMessage{Text: "an ibex " + large}, event.TextDelta{Text: "an ibex"}, event.TurnFinished{Reason: event.FinishedDone})
	}
	if n := hits(t, x, "ibex role:user"); n != 150 {
		t.Errorf("%d prompts", n)
	}
	if n := hits(t, x, "ibex role:assistant"); n != 150 {
		t.Errorf("%d answers", n)
	}
}

// The parts of a call and a summary are found; commands of eca and notices are not.
func TestIndexedText(t *testing.T) {
	t.Parallel()
	s := &source{}
	x := newIndex(t, s)
	tool := event.Tool{CallID: "1", Name: "read_file"}
	s.say(
		event.UserMessage{Text: "/search gnu", Command: true}, event.Notice{Text: "gnu"}, event.TurnFinished{},
		event.UserMessage{Text: "go"}, event.ToolProposed{Tool: tool},
		event.ToolJudged{Tool: tool, Arguments: []byte(`{"path":"/tmp/okapi.go","n":1}`), Summary: "Reading"},
		event.ToolFinished{CallID: "1", Outputs: []string{"package tapir\n", "bongo\x02"}},
		event.Compacted{Summary: "about the dugong"}, event.TurnFinished{},
	)
	for query, want := range map[string]int{
		"gnu": 0, "read_file": 1, "okapi.go role:tool": 1, "tapir": 1, "bongo role:user": 0, "dugong role:summary": 1, "reading tapir okapi": 1,
	} {
		if n := hits(t, x, query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
}

// No query causes an error.
func FuzzSearch(f *testing.F) {
	s := &source{}
	s.say(event.UserMessage{Text: "some words of a text"}, event.TurnFinished{})
	x := newIndex(f, s)
	for _, q := range []string{`"`, "a* AND (", "role:user some", "\x00", "\xff", "wor*", `"some wor"*`, "since:1d NEAR(", "\u0301", "ª*"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) { hits(t, x, query) })
}

// A word that looks like a misspelled filter is named.
func TestMisspelledFilter(t *testing.T) {
	for query, want := range map[string]string{
		"hi rol:user":  "there is no filter rol:, so it was searched for as text; did you mean role:?",
		"hi role:user": "", "http://example.org std::vector rol": "", "": "",
	} {
		if got := MisspelledFilter(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
