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

// No step follows a symlink, so a folder that becomes a symlink between two steps causes an error.
func TestNoStepFollowsLinks(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	needs.Symlink(t, outside, filepath.Join(root, "link"))
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if next, err := openSubfolder(dir, "link", true); err == nil {
		_ = next.Close()
		t.Error("openSubfolder followed a link")
	}
	p := Entry{dir: dir, name: "link", path: "link"}
	if _, err := p.Read(100); err == nil {
		t.Error("Read followed a link")
	}
	if err := p.Replace([]byte("x"), 0, func() error { return nil }); err == nil {
		t.Error("Replace replaced a link")
	}
	if err := p.Remove(); err == nil {
		t.Error("Remove removed a link")
	}
	if found, _ := filepath.Glob(filepath.Join(root, ".eca-*")); len(found) > 0 {
		t.Errorf("temporary files are left: %v", found)
	}
}

// Move uses the open folders even if their paths lead elsewhere by then, and never replaces an entry.
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
	open := func(path string, create bool) Entry {
		t.Helper()
		p, err := OpenEntry(root, filepath.Join(root, filepath.FromSlash(path)), create)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	if err := Move(open("from/a", false), open("to/sub", false)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("moved onto a folder: %v", err)
	}
	from, to := open("from/a", false), open("to/new/b", true)
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
		t.Error("Move followed the new path")
	}
	if there, _, err := to.Stat(); err != nil || there == nil {
		t.Errorf("the file is not in the open folder: %v", err)
	}
	if _, err := OpenEntry(root, filepath.Join(root, "to", "x"), true); err == nil && runtime.GOOS != "windows" {
		t.Error("OpenEntry followed a link")
	}
}

// OpenEntry without a base follows no symlink either.
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
		t.Error("the limit is ignored")
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
