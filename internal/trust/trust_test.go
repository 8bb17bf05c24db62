package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestStore(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	dir := filepath.Join(t.TempDir(), "state")
	s, root := New(dir, func() time.Time { return now }), t.TempDir()
	file := filepath.Join(root, ".eca", "config.json")
	view := func() View {
		t.Helper()
		v, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if view().Trusts(root, file, "a") || view().Trusts(root, file, "") {
		t.Error("trusts without a record")
	}
	if err := s.Trust(root, map[string]string{file: "a"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Trust(root, map[string]string{filepath.Join(root, "x"): "b"}, nil); err != nil {
		t.Fatal(err)
	}
	v := view()
	for what, c := range map[string]struct{ got, want bool }{
		"recorded":     {v.Trusts(root, file, "a"), true},
		"beside it":    {v.Trusts(root, filepath.Join(root, "x"), "b"), true},
		"changed":      {v.Trusts(root, file, "A"), false},
		"no sum":       {v.Trusts(root, file, ""), false},
		"nothing":      {v.Trusts(root, filepath.Join(root, "y"), ""), false},
		"other file":   {v.Trusts(root, filepath.Join(root, "y"), "a"), false},
		"other folder": {v.Trusts(root+"-evil", root+"-evil/.eca/config.json", "a"), false},
		"a subfolder":  {v.Trusts(filepath.Join(root, ".eca"), file, "a"), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", what, c.got)
		}
	}
	if f := v.Folders()[Resolve(root)]; len(f.Files) != 2 || f.Since != now.Truncate(time.Second) {
		t.Errorf("%+v", v.Folders())
	}
	if runtime.GOOS != "windows" {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(root, link); err != nil {
			t.Fatal(err)
		}
		if !v.Trusts(link, filepath.Join(link, ".eca", "config.json"), "a") {
			t.Error("the folder is another one through a link")
		}
		if info, err := os.Stat(s.Path()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	if revoked, err := s.Revoke(filepath.Dir(root)); err != nil || !slices.Equal(revoked, []string{Resolve(root)}) {
		t.Errorf("%v %v", revoked, err)
	}
	if view().Trusts(root, file, "a") {
		t.Error("still trusted")
	}
}

// A record that is broken, or newer, trusts nothing and is left as it is.
func TestBroken(t *testing.T) {
	for _, text := range []string{"{", `{"version": 2}`, "[]"} {
		s := New(t.TempDir(), time.Now)
		if err := os.WriteFile(s.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Read(); err == nil || v.Trusts("/x", "/x/y", "a") {
			t.Errorf("%s: %v", text, err)
		}
		if err := s.Trust(t.TempDir(), map[string]string{"x": "y"}, nil); err == nil {
			t.Errorf("%s was overwritten", text)
		}
	}
}

// What several processes record at the same time is all there.
func TestConcurrent(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := New(dir, time.Now).Trust(root, map[string]string{filepath.Join(root, fmt.Sprint(i)): "s"}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	v, err := New(dir, time.Now).Read()
	if err != nil || len(v.Folders()[Resolve(root)].Files) != 20 {
		t.Errorf("%v %v", v, err)
	}
}
