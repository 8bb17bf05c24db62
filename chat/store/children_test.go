package store

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// Chats of subagents are not listed, and are deleted with their parent.
func TestChildren(t *testing.T) {
	s := New(t.TempDir())
	defer s.Close()
	ctx := t.Context()
	for _, m := range []chat.Meta{{ID: "c"}, {ID: "other"}, {ID: "subagent-1", Parent: "c"}, {ID: "subagent-2", Parent: "other"}} {
		m.Roots, m.Updated = []string{"/w"}, time.UnixMilli(1)
		if err := s.Append(ctx, m, []event.Event{{Seq: 1, Body: event.UserMessage{Text: m.ID}, Begins: true}}); err != nil {
			t.Fatal(err)
		}
	}
	ids := func() (out []string) {
		list, err := s.List(ctx, []string{"/w"}, chat.ByCreated, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			out = append(out, c.ID)
		}
		slices.Sort(out)
		return out
	}
	if got := ids(); !slices.Equal(got, []string{"c", "other"}) {
		t.Errorf("listed: %v", got)
	}
	if all, err := s.Chats(ctx, nil); err != nil || len(all) != 2 {
		t.Errorf("all: %v, %v", all, err)
	}
	if m, _, _, err := s.Meta(ctx, "subagent-1"); err != nil || m.Parent != "c" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := s.Delete(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"c": false, "subagent-1": false, "other": true, "subagent-2": true} {
		_, last, found, err := s.Meta(ctx, id)
		events, _ := s.Events(ctx, id, 1, 10)
		if err != nil || found != want || (last == 1) != want || (len(events) == 1) != want {
			t.Errorf("%s: found %v, %d events, %v", id, found, len(events), err)
		}
	}
	if got := ids(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("listed: %v", got)
	}
}

// A store from before subagents is migrated.
func TestSchema2(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(schema1 + schema2 + "INSERT INTO chats (id, created_at, updated_at, workspace) VALUES ('c', 1, 1, '/w'); PRAGMA user_version = 2")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := New(dir)
	defer s.Close()
	list, err := s.List(t.Context(), []string{"/w"}, chat.ByUpdated, 0)
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	var plan string
	query := "EXPLAIN QUERY PLAN SELECT id || title || model || messages || created_at FROM chats WHERE workspace = '/w' AND parent = '' ORDER BY updated_at DESC, id DESC"
	var ignore int
	if err := s.db.QueryRow(query).Scan(&ignore, &ignore, &ignore, &plan); err != nil || plan != "SEARCH chats USING COVERING INDEX chats_listed (workspace=?)" {
		t.Errorf("a list reads more than its index: %q, %v", plan, err)
	}
}
