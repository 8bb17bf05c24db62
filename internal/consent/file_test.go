package consent

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

type list struct {
	Format
	Names []string `json:"names"`
}

func add(f File, name string) error {
	var l list
	return f.Change(&l, func() {
		l.Names = append(l.Names, name)
	})
}

// All concurrent changes are kept, and only the user can read the files.
func TestChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "list.json")
	var l list
	if err := (File{Path: path}).Read(&l); err != nil || l.Names != nil {
		t.Fatalf("without a file: %v, %v", l, err)
	}
	const writers, each = 8, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := add(File{Path: path}, "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := (File{Path: path}).Read(&l); err != nil || len(l.Names) != writers*each {
		t.Errorf("%d names, %v", len(l.Names), err)
	}
	for _, p := range []string{path, path + ".lock"} {
		if info, err := os.Stat(p); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
}

// A file with unknown content is reported by its path, and does not change.
func TestUnreadable(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "null", `{}`, `{"version": 2}`, `{"version": 1, "names": 7}`, `{"version": 1} x`} {
		path := filepath.Join(t.TempDir(), "list.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var l list
		if err := (File{Path: path}).Read(&l); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s was read: %v", text, err)
		}
		if err := add(File{Path: path}, "x"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s was changed: %v", text, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("%s became %s, %v", text, data, err)
		}
	}
	folder := t.TempDir()
	if err := add(File{Path: folder}, "x"); err == nil {
		t.Error("a folder was changed")
	}
}
