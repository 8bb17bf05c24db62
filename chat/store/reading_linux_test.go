package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// A command that only reads does not upgrade the store of an older version of eca, because the older
// version may be running.
func TestReadersDoNotConvert(t *testing.T) {
	dir := t.TempDir()
	s := New(dir)
	db, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 2"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	reader := NewReader(dir)
	defer reader.Close()
	if _, err := reader.Chats(t.Context(), nil); !errors.Is(err, ErrOlder) {
		t.Error(err)
	}
	read, err := openReadOnly(reader.Path())
	if !errors.Is(err, ErrOlder) {
		t.Error(read, err)
	}
}

// A file that SQLite reads without locks is opened again when another process has written to it.
func TestImmutableFileChanges(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	put := func(id string) {
		t.Helper()
		s := New(dir)
		defer s.Close()
		meta := chat.Meta{ID: id, Created: atMillis(1), Updated: atMillis(2)}
		if err := s.Append(ctx, meta, []event.Event{{Seq: 1, Time: atMillis(1), Body: event.UserMessage{Text: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	path := filepath.Join(dir, File)
	// SQLite cannot create the file, as on a read-only file system; root ignores permissions.
	block := func() {
		t.Helper()
		if err := os.Symlink("missing/shm", path+"-shm"); err != nil {
			t.Fatal(err)
		}
	}
	block()
	s := New(dir)
	defer s.Close()
	ids := func() (out []string) {
		t.Helper()
		list, err := s.Chats(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			out = append(out, c.ID)
		}
		return out
	}
	if got := ids(); len(got) != 1 || !s.readOnly.immutable {
		t.Fatal(got, s.readOnly)
	}
	if err := os.Remove(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	put("two")
	block()
	if got := ids(); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if err := s.Append(ctx, chat.Meta{ID: "three"}, nil); err == nil {
		t.Error("a store that is open read-only was changed")
	}
}
