package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

func TestImports(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir())
	meta := chat.Meta{ID: "c1", Title: "T", Created: atMillis(1), Updated: atMillis(2), Roots: []string{"/w"}}
	events := []event.Event{{Seq: 1, Time: atMillis(1), Body: event.UserMessage{Text: "hi"}}}
	add := func(source string, meta chat.Meta, want bool) {
		t.Helper()
		added, err := s.Import(ctx, source, meta, events)
		if err != nil || added != want {
			t.Errorf("%s: %v %v", source, added, err)
		}
		if marked, err := s.Imported(ctx, source); !marked || err != nil {
			t.Errorf("%s is not marked: %v", source, err)
		}
	}
	add("a", meta, true)
	add("a", chat.Meta{ID: "c2"}, false) // the source was imported before
	if err := s.Delete(ctx, "c1"); err != nil {
		t.Fatal(err)
	}
	add("a", meta, false) // it is not imported again
	if err := s.Append(ctx, chat.Meta{ID: "c3", Title: "mine"}, nil); err != nil {
		t.Fatal(err)
	}
	add("b", chat.Meta{ID: "c3", Title: "theirs"}, false)
	if m, _, _, err := s.Meta(ctx, "c3"); err != nil || m.Title != "mine" {
		t.Errorf("%+v %v", m, err)
	}
	for range 2 {
		if err := s.MarkImported(ctx, "d"); err != nil {
			t.Error(err)
		}
	}
	if marked, err := s.Imported(ctx, "e"); marked || err != nil {
		t.Error(marked, err)
	}
}

// Daemons that start at the same time import a chat only once.
func TestConcurrentImports(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var added atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		s := open(t, dir)
		wg.Go(func() {
			for i := range 10 {
				id := fmt.Sprint(i)
				ok, err := s.Import(ctx, id, chat.Meta{ID: id}, []event.Event{{Seq: 1, Body: event.Notice{}}})
				if err != nil {
					t.Error(err)
				}
				if ok {
					added.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if added.Load() != 10 {
		t.Errorf("%d chats", added.Load())
	}
}

func TestChats(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir())
	old := chat.Meta{ID: "old", Created: atMillis(1), Updated: atMillis(2), Roots: []string{"/w", "/v"}}
	young := chat.Meta{ID: "young", Title: "T", Named: true, Created: atMillis(1), Updated: atMillis(3), Model: "m", Agent: "a", Variant: "v", Trust: true, Roots: []string{"/w"}}
	hi := event.UserMessage{Text: "hi"}
	command := event.UserMessage{Text: "/help", Command: true}
	for _, m := range []chat.Meta{old, young} {
		if err := s.Append(ctx, m, []event.Event{{Seq: 1, Body: command, Begins: true}, {Seq: 2, Body: event.ToolProposed{}, Begins: true}, {Seq: 3, Body: hi, Begins: true}}); err != nil {
			t.Fatal(err)
		}
	}
	for roots, want := range map[string][]Chat{"": {{young, 2, 1, "hi"}, {old, 2, 1, "hi"}}, "/w/": {{young, 2, 1, "hi"}}, "/v /w": {{old, 2, 1, "hi"}}, "/v": nil} {
		got, err := s.Chats(ctx, strings.Fields(roots))
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v\n%s", roots, err, cmp.Diff(want, got))
		}
	}
	if !SameWorkspace([]string{"/w", "/v"}, []string{"/v", "/w/"}) || SameWorkspace(nil, []string{"/w"}) {
		t.Error("SameWorkspace does not ignore order and slashes, or equates a workspace with no folder")
	}
}

func TestUpgrade(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(schema1 + "INSERT INTO chats (id, created_at, updated_at) VALUES ('c', 1, 1); PRAGMA user_version = 1"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if _, _, found, err := s.Meta(ctx, "c"); !found || err != nil {
		t.Error(found, err)
	}
	if err := s.MarkImported(ctx, "x"); err != nil {
		t.Error(err)
	}
}
