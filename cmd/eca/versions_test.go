package main

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// A newer eca changes the format of the chat store while this one runs, or before it starts. This
// one then changes nothing any more, shows its user what to do, and still answers.
func TestNewerStoreIsLeftAlone(t *testing.T) {
	p := newProvider(t, "cassette: 1\ndefault: {steps: [{text: answered}]}\nturns: []\n")
	here := newPlace(t, p.env()...)
	older := here.serve(t)
	older.Open(here.root, nil)
	older.Call("chat/prompt", map[string]any{"chatId": "c", "message": "one"})
	older.Await(0, "the end", fake.Finished())

	// The changes of a newer version's migration.
	path := filepath.Join(filepath.Dir(here.root), "state", "eca", "chats.db")
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("BEGIN IMMEDIATE; ALTER TABLE chats ADD COLUMN later TEXT NOT NULL DEFAULT ''; PRAGMA user_version = 1000; COMMIT"); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		t.Helper()
		if err := db.QueryRow("SELECT count(*) FROM events").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	late := here.serve(t) // the older version is started again
	late.Open(here.root, nil)
	for name, d := range map[string]*process{"running": older, "started later": late} {
		mark := d.Mark()
		d.Call("chat/prompt", map[string]any{"chatId": "new-" + name[:3], "message": "two"})
		d.Await(mark, "what to do, from the one "+name, fake.Content("text", "newer version of eca", "start the newer one"))
		d.Await(mark, "the answer of the one "+name, fake.Content("text", "answered"))
	}
	older.kill9(t)
	late.kill9(t)
	if after := count(); after != before {
		t.Errorf("%d events are stored, %d were", after, before)
	}
}
