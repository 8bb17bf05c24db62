package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/workspace"
)

// eventsOf returns events with the given bodies and consecutive sequence numbers.
func eventsOf(from event.Seq, bodies ...event.Body) []event.Event {
	var out []event.Event
	previous := event.Kind("")
	for i, b := range bodies {
		out = append(out, event.Event{Seq: from + event.Seq(i), Time: atMillis(1), Body: b, Begins: event.Begins(previous, b)})
		if !event.InterleavesText(b) {
			previous = event.KindOf(b)
		}
	}
	return out
}

// Windows of a chat equal slices of the list of its messages after any sequence of additions,
// flags and cuts.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, s := context.Background(), New(t.TempDir())
		defer func() { _ = s.Close() }()
		var model []chat.Cursor // the messages, in order
		next := event.Seq(1)
		appendEvents := func(bodies ...event.Body) {
			if err := s.Append(ctx, chat.Meta{ID: "c"}, eventsOf(next, bodies...)); err != nil {
				rt.Fatal(err)
			}
			next += event.Seq(len(bodies))
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				for _, seq := range []event.Seq{next, next + 2, next + 5} {
					model = append(model, chat.Cursor{Anchor: seq, Seq: seq})
				}
				name := fmt.Sprint(next)
				appendEvents(event.UserMessage{ContentID: name}, event.TurnStarted{}, event.TextDelta{Text: "a"}, event.TitleChanged{}, event.TextDelta{Text: "b"},
					event.ToolProposed{Tool: event.Tool{CallID: name}}, event.TurnFinished{})
			case 2:
				if len(model) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(model)-1).Draw(rt, "flag behind")
				c := chat.Cursor{Anchor: model[i].Anchor, Seq: next}
				for i++; i < len(model) && model[i].Anchor == c.Anchor; i++ {
				}
				model = slices.Insert(model, i, c)
				appendEvents(event.Flag{ContentID: "f", After: c.Anchor})
			case 3:
				if len(model) == 0 {
					continue
				}
				from := model[rapid.IntRange(0, len(model)-1).Draw(rt, "cut from")].Anchor
				model = slices.DeleteFunc(model, func(c chat.Cursor) bool { return c.Anchor >= from })
				if err := s.Cut(ctx, chat.Meta{ID: "c"}, from, event.Event{Seq: next, Time: atMillis(1), Body: event.Truncated{}}); err != nil {
					rt.Fatal(err)
				}
				next++
			}
		}
		checkWindows(rt, s, model)
	})
}

func checkWindows(rt *rapid.T, s *Store, model []chat.Cursor) {
	ctx := context.Background()
	for range 10 {
		want := slices.Clone(model)
		w := chat.Window{Limit: rapid.IntRange(0, 4).Draw(rt, "limit"), Forward: rapid.Bool().Draw(rt, "forward")}
		if len(model) > 0 && rapid.Bool().Draw(rt, "after") {
			i := rapid.IntRange(0, len(model)-1).Draw(rt, "after which")
			w.After, want = &model[i], slices.Clone(model[i+1:])
		}
		if len(want) > 0 && rapid.Bool().Draw(rt, "before") {
			i := rapid.IntRange(0, len(want)-1).Draw(rt, "before which")
			before := want[i]
			w.Before, want = &before, want[:i]
		}
		if w.Limit > 0 && len(want) > w.Limit {
			if w.Forward {
				want = want[:w.Limit]
			} else {
				want = want[len(want)-w.Limit:]
			}
		}
		span, err := s.Window(ctx, "c", w)
		if err != nil {
			rt.Fatal(err)
		}
		if span.Total != len(model) || span.Returned != len(want) {
			rt.Fatalf("%+v: %d of %d messages, want %d of %d", w, span.Returned, span.Total, len(want), len(model))
		}
		if len(want) == 0 {
			continue
		}
		if span.First != want[0] || span.Last != want[len(want)-1] || span.Older != (want[0] != model[0]) || span.Newer != (want[len(want)-1] != model[len(model)-1]) {
			rt.Fatalf("%+v gives %+v, want %v of %v", w, span, want, model)
		}
		flags := 0
		for _, c := range want {
			inside := c.Seq >= span.From && c.Seq < span.To
			if c.Seq == c.Anchor && !inside {
				rt.Fatalf("%v is not in %d..%d", c, span.From, span.To)
			}
			if c.Seq != c.Anchor {
				if f := span.Flags[flags]; f.Seq != c.Seq || f.NextMessage <= c.Anchor {
					rt.Fatalf("flag %v is %v", c, f)
				}
				flags++
			}
		}
		if flags != len(span.Flags) {
			rt.Fatalf("%d flags, want %d", len(span.Flags), flags)
		}
		for _, c := range model {
			if c.Seq == c.Anchor && c.Seq >= span.From && c.Seq < span.To && !slices.Contains(want, c) {
				rt.Fatalf("%v is in the window %v", c, want)
			}
		}
	}
}

func TestCursors(t *testing.T) {
	s, ctx := open(t, t.TempDir()), context.Background()
	if err := s.Append(ctx, chat.Meta{ID: "c"}, eventsOf(1, event.UserMessage{ContentID: "u"}, event.TextDelta{})); err != nil {
		t.Fatal(err)
	}
	gone := chat.Cursor{Anchor: 7, Seq: 7}
	for _, w := range []chat.Window{{Before: &gone}, {After: &gone}} {
		if _, err := s.Window(ctx, "c", w); !errors.Is(err, chat.ErrCursorExpired) {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for _, c := range []chat.Cursor{{Anchor: 1, Seq: 1}, {Anchor: 3, Seq: 900}} {
		if back, err := chat.ParseCursor(c.String()); err != nil || back != c {
			t.Errorf("%v becomes %v, %v", c, back, err)
		}
	}
	for _, text := range []string{"", "x", "AA", "AgE", "AQEA", "////", "_____________w8"} {
		if c, err := chat.ParseCursor(text); err == nil {
			t.Errorf("%q is %v", text, c)
		}
	}
}

// A copy has the original's events before a sequence number, and its flags in the same positions.
func TestCopy(t *testing.T) {
	s, ctx := open(t, t.TempDir()), context.Background()
	first := eventsOf(1, event.UserMessage{ContentID: "u1"}, event.TextDelta{Text: "a"}, event.UserMessage{ContentID: "u2"}, event.Flag{ContentID: "f1", After: 1}, event.Flag{ContentID: "f2", After: 3})
	if err := s.Append(ctx, chat.Meta{ID: "c", Title: "T"}, first); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(ctx, "c", chat.Meta{ID: "d"}, 3, 10); err != nil {
		t.Fatal(err)
	}
	got, err := s.Events(ctx, "d", 1, 100)
	if err != nil || len(got) != 3 || got[0].Seq != 11 || got[2].Seq != 14 || got[2].Body != (event.Flag{ContentID: "f1", After: 11}) {
		t.Errorf("copied %+v, %v", got, err)
	}
	span, err := s.Window(ctx, "d", chat.Window{})
	if err != nil || span.Total != 3 || len(span.Flags) != 1 {
		t.Errorf("window %+v, %v", span, err)
	}
	if err := s.RemoveFlag(ctx, "d", 14); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveFlag(ctx, "d", 11); err != nil { // no flag
		t.Fatal(err)
	}
	if span, err := s.Window(ctx, "d", chat.Window{}); err != nil || span.Total != 2 || len(span.Flags) != 0 {
		t.Errorf("window %+v, %v", span, err)
	}
}

// A store of the first version is migrated.
func TestMigration(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	db, err := sql.Open("sqlite", workspace.ToURI(filepath.Join(dir, File)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(schema1 + "PRAGMA user_version = 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO chats (id, created_at, updated_at, title, roots) VALUES ('c', 1, 2, 'T', ?)`, `["/w/b","/w/a"]`); err != nil {
		t.Fatal(err)
	}
	tool := event.Tool{CallID: "k"}
	events := eventsOf(
		1, event.UserMessage{ContentID: "u"}, event.TurnStarted{}, event.ReasoningStarted{ID: "r"}, event.ReasoningDelta{ID: "r", Text: "x"}, event.ReasoningFinished{ID: "r"},
		event.TextDelta{Text: "a"}, event.TitleChanged{Title: "T"}, event.TextDelta{Text: "b"},
		event.ToolProposed{Tool: tool}, event.ToolJudged{Tool: tool, Arguments: []byte("{}")}, event.ToolFinished{CallID: "k"}, event.TextDelta{Text: "c"}, event.TurnFinished{},
	)
	want := 0
	for _, e := range events {
		version, body, err := event.EncodeBody(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("INSERT INTO events VALUES ('c', ?, '', 1, ?, ?, ?)", e.Seq, string(event.KindOf(e.Body)), version, body); err != nil {
			t.Fatal(err)
		}
		if e.Begins {
			want++
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	list, err := s.List(ctx, []string{"/w/a", "/w/b"}, chat.ByUpdated, 0)
	if err != nil || len(list) != 1 || list[0].Messages != want || want != 6 {
		t.Errorf("list %+v, %v, want %d messages", list, err, want)
	}
	for _, e := range events {
		if name := event.ClientID(e.Body); e.Begins && name != "" {
			if _, found, err := s.Find(ctx, "c", name, false); !found || err != nil {
				t.Errorf("%s is not found: %v", name, err)
			}
		}
	}
	if err := s.Append(ctx, chat.Meta{ID: "c", Roots: []string{"/w/a"}}, eventsOf(20, event.UserMessage{ContentID: "more"})); err != nil {
		t.Fatal(err)
	}
	if span, err := s.Window(ctx, "c", chat.Window{Limit: 1}); err != nil || span.Total != want+1 || span.From != 20 {
		t.Errorf("window %+v, %v", span, err)
	}
}

func TestList(t *testing.T) {
	s, ctx := open(t, t.TempDir()), context.Background()
	want := []chat.Summary{
		{ID: "c 2", Title: "ü 7 8 ", Model: "a/b c", Created: atMillis(-5), Updated: atMillis(9)},
		{ID: "c 1", Title: "a\x00b 1", Model: "3 ", Created: atMillis(2), Updated: atMillis(9)},
		{ID: "c", Created: atMillis(3), Updated: atMillis(4), Messages: 1},
	}
	for _, c := range want {
		meta := chat.Meta{ID: c.ID, Title: c.Title, Model: c.Model, Created: c.Created, Updated: c.Updated}
		if err := s.Append(ctx, meta, eventsOf(1, event.UserMessage{})[:c.Messages]); err != nil {
			t.Fatal(err)
		}
	}
	for by, order := range map[chat.Order][]chat.Summary{chat.ByUpdated: want, chat.ByCreated: {want[2], want[1], want[0]}} {
		for limit := range 4 {
			first := order
			if limit > 0 {
				first = order[:limit]
			}
			if got, err := s.List(ctx, nil, by, limit); err != nil || !slices.Equal(got, first) {
				t.Errorf("%d of them: %+v, %v", limit, got, err)
			}
		}
	}
	if got, err := s.List(ctx, []string{"/elsewhere"}, chat.ByUpdated, 0); err != nil || got == nil || len(got) > 0 {
		t.Errorf("where there are none: %v, %v", got, err)
	}
}
