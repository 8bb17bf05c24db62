package safeio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A folder that becomes a link between two steps is noticed: no step follows links.
func TestNoStepFollowsLinks(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	needs.Symlink(t, outside, filepath.Join(root, "link"))
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if next, err := enter(dir, "link", true); err == nil {
		_ = next.Close()
		t.Error("a link is entered")
	}
	p := Entry{dir: dir, name: "link", path: "link"}
	if _, err := p.Read(100); err == nil {
		t.Error("a link is read")
	}
	if err := p.Replace([]byte("x"), 0, func() error { return nil }); err == nil {
		t.Error("a link is replaced")
	}
	if err := p.Remove(); err == nil {
		t.Error("a link is removed")
	}
	if found, _ := filepath.Glob(filepath.Join(root, ".eca-*")); len(found) > 0 {
		t.Errorf("%v are left", found)
	}
}

// Files and folders move between the folders that were opened, wherever their names lead
// by then, and never onto something.
func TestMove(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{"from", "to/sub"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "from", "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	held := func(path string, create bool) Entry {
		t.Helper()
		p, err := OpenEntry(root, filepath.Join(root, filepath.FromSlash(path)), create)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	if err := Move(held("from/a", false), held("to/sub", false)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("moved onto a folder: %v", err)
	}
	from, to := held("from/a", false), held("to/new/b", true)
	if runtime.GOOS != "windows" { // which does not let open folders be renamed
		if err := os.Rename(filepath.Join(root, "to"), filepath.Join(root, "elsewhere")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(root, "to")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(outside, "new"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Move(from, to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(outside, "new", "b")); err == nil {
		t.Error("it was moved to where the name led")
	}
	if there, _, err := to.Stat(); err != nil || there == nil {
		t.Errorf("it is not where it should be: %v", err)
	}
	if _, err := OpenEntry(root, filepath.Join(root, "to", "x"), true); err == nil && runtime.GOOS != "windows" {
		t.Error("a link is opened")
	}
}

// From the top, too, no link is followed.
func TestOpenEntryFromTop(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenEntry("", filepath.Join(root, "new", "a"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Replace([]byte("x"), 0o600, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if data, err := p.Read(1); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := p.Read(0); err == nil {
		t.Error("the limit does not hold")
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := p.Read(1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	needs.Symlink(t, filepath.Join(root, "new"), filepath.Join(root, "link"))
	if p, err := OpenEntry("", filepath.Join(root, "link", "a"), false); err == nil {
		p.Close()
		t.Error("a link on the way is followed")
	}
}
