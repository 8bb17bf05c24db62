package undo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestRestore(t *testing.T) {
	ctx := context.Background()
	dir := testkit.TempDir(t)
	path := filepath.Join(dir, "a")
	kept := artifact.New(filepath.Join(t.TempDir(), "kept"), artifact.Options{})
	files := New(Options{Artifacts: func() *artifact.Store { return kept }})
	write := func(text string) event.FileChanged {
		t.Helper()
		c, err := files.Writing(ctx, "chat", path, []byte(text))
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
		err := files.restore(ctx, c)
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
	restore(changed, "") // the second time, it changes nothing
	content("one")
	restore(created, "")
	content("(none)")

	changed = write("three")
	if err := os.WriteFile(path, []byte("by hand"), 0o644); err != nil {
		t.Fatal(err)
	}
	restore(changed, "was changed since")
	content("by hand")

	// A change that was announced and never made.
	c, err := files.Writing(ctx, "chat", path, []byte("never"))
	if err != nil {
		t.Fatal(err)
	}
	restore(c, "")
	content("by hand")

	c = write("last")
	c.Before.Hash = artifact.Hash([]byte("never kept"))
	restore(c, "no longer exists")
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
	restore(moved, "no longer exists")
}

// If another program replaces the file or a folder by a link before the user rolls back, restore fails
// and does not change the target of the link, although the target has the content that eca wrote.
func TestRestoreFollowsNoLinks(t *testing.T) {
	ctx := context.Background()
	for _, swap := range []string{"file", "folder", "folder above"} {
		for _, kind := range []string{"created", "changed", "moved"} {
			dir, outside := testkit.TempDir(t), testkit.TempDir(t)
			path, secret := filepath.Join(dir, "top", "sub", "a"), filepath.Join(outside, "a")
			from, to := path, secret
			switch swap {
			case "folder":
				from, to = filepath.Dir(path), outside
			case "folder above":
				secret = filepath.Join(outside, "sub", "a")
				from, to = filepath.Join(dir, "top"), outside
			}
			for _, f := range []string{path, secret} {
				if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			kept := artifact.New(filepath.Join(t.TempDir(), "kept"), artifact.Options{})
			files := New(Options{Artifacts: func() *artifact.Store { return kept }})
			if kind == "changed" {
				if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			change, err := files.Writing(ctx, "chat", path, []byte("ours"))
			if err != nil {
				t.Fatal(err)
			}
			if kind == "moved" {
				if swap == "file" {
					continue // a link itself is moved back
				}
				change = event.FileChanged{Path: filepath.Join(dir, "home"), MovedTo: path}
			}
			for _, f := range []string{path, secret} {
				if err := os.WriteFile(f, []byte("ours"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(from); err != nil {
				t.Fatal(err)
			}
			needs.Symlink(t, to, from)
			if err := files.restore(ctx, change); err == nil {
				t.Errorf("%s, %s: restore followed the link without an error", swap, kind)
			}
			if data, err := os.ReadFile(secret); err != nil || string(data) != "ours" {
				t.Errorf("%s, %s: the target of the link has %q, %v", swap, kind, data, err)
			}
		}
	}
}

// If a file has become a hard link to a file outside, restoring it does not change the file outside.
func TestRestoreHardLink(t *testing.T) {
	ctx := context.Background()
	dir, outside := testkit.TempDir(t), testkit.TempDir(t)
	path, secret := filepath.Join(dir, "a"), filepath.Join(outside, "a")
	kept := artifact.New(filepath.Join(t.TempDir(), "kept"), artifact.Options{})
	files := New(Options{Artifacts: func() *artifact.Store { return kept }})
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	change, err := files.Writing(ctx, "chat", path, []byte("ours"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("ours"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(secret, path); err != nil {
		t.Fatal(err)
	}
	if err := files.restore(ctx, change); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path: "old", secret: "ours"} {
		if data, err := os.ReadFile(file); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v", file, data, err)
		}
	}
}
