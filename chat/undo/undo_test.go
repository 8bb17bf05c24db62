package undo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
)

func TestRestore(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	kept := artifact.New(filepath.Join(t.TempDir(), "kept"), artifact.Options{})
	files := New(func() *artifact.Store { return kept })
	write := func(text string) event.FileChanged {
		t.Helper()
		c, err := files.Writing(ctx, path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o755)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return c
	}
	restore := func(c event.FileChanged, problem string) {
		t.Helper()
		err := files.Restore(ctx, c)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("restored with %v, want %q", err, problem)
		}
	}
	content := func(want string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte("(none)")
		}
		if string(data) != want {
			t.Errorf("the file has %q, want %q", data, want)
		}
	}
	created, changed := write("one"), write("two")
	restore(changed, "")
	content("one")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	restore(changed, "") // again: nothing
	content("one")
	restore(created, "")
	content("(none)")

	changed = write("three")
	if err := os.WriteFile(path, []byte("by hand"), 0o644); err != nil {
		t.Fatal(err)
	}
	restore(changed, "was changed since")
	content("by hand")

	// Announced, but never made.
	c, err := files.Writing(ctx, path, []byte("never"))
	if err != nil {
		t.Fatal(err)
	}
	restore(c, "")
	content("by hand")

	c = write("last")
	c.Before.Hash = artifact.Hash([]byte("never kept"))
	restore(c, "not there any more")
	content("last")

	moved := event.FileChanged{Path: path, MovedTo: filepath.Join(dir, "b")}
	restore(moved, "") // not moved
	if err := os.Rename(path, moved.MovedTo); err != nil {
		t.Fatal(err)
	}
	restore(moved, "")
	content("last")
	if err := os.Link(path, moved.MovedTo); err != nil {
		t.Fatal(err)
	}
	restore(moved, "there is a new")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(moved.MovedTo); err != nil {
		t.Fatal(err)
	}
	restore(moved, "not there any more")
}
