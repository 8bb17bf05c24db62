package consent

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

func TestFolders(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	dir := filepath.Join(t.TempDir(), "state")
	s, root := NewFolders(dir, func() time.Time { return now }), t.TempDir()
	file := filepath.Join(root, ".eca", "config.json")
	view := func() Folders {
		t.Helper()
		v, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if view().Trusts(root, file, "a") || view().Trusts(root, file, "") {
		t.Error("Trusts is true without a record")
	}
	if err := s.Trust(root, map[string]Agreed{file: {Sum: "a"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Trust(root, map[string]Agreed{filepath.Join(root, "x"): {Sum: "b"}}); err != nil {
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
	if f := v[Resolve(root)]; len(f.Files) != 2 || f.Since != now.Truncate(time.Second) {
		t.Errorf("%+v", v)
	}
	if runtime.GOOS != "windows" {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(root, link); err != nil {
			t.Fatal(err)
		}
		if !v.Trusts(link, filepath.Join(link, ".eca", "config.json"), "a") {
			t.Error("Trusts is false for a path through a link to the trusted folder")
		}
		if info, err := os.Stat(s.File.Path); err != nil || info.Mode().Perm() != 0o600 {
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

// A record that is broken, or of a newer version, trusts no folder, and eca does not change it.
func TestBrokenFolders(t *testing.T) {
	for _, text := range []string{"{", `{"version": 2}`, "[]"} {
		s := NewFolders(t.TempDir(), time.Now)
		if err := os.WriteFile(s.File.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Read(); err == nil || v.Trusts("/x", "/x/y", "a") {
			t.Errorf("%s: %v", text, err)
		}
		if err := s.Trust(t.TempDir(), map[string]Agreed{"x": {Sum: "y"}}); err == nil {
			t.Errorf("%s was overwritten", text)
		}
	}
}

// Concurrent records of several processes are all kept.
func TestConcurrentFolders(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := NewFolders(dir, time.Now).Trust(root, map[string]Agreed{filepath.Join(root, fmt.Sprint(i)): {Sum: "s"}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	v, err := NewFolders(dir, time.Now).Read()
	if err != nil || len(v[Resolve(root)].Files) != 20 {
		t.Errorf("%v %v", v, err)
	}
}

// Records of earlier versions stay valid: one of trust.json without texts, and one with them.
func TestRecordsOfEarlierVersions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, other := Resolve(t.TempDir()), Resolve(t.TempDir())
	write("trust.json", fmt.Sprintf(`{"version": 1, "folders": {
		%q: {"files": {".eca/config.json": "a"}, "since": "2026-01-02T03:04:05Z"},
		%q: {"files": {".eca/config.json": "b"}, "since": "2026-01-02T03:04:05Z", "texts": {".eca/config.json": "shown"}, "parts": {".eca/config.json": {"hooks": "h"}}}}}`, root, other))
	write("mcp-agreed.json", `{"version": 1, "servers": {"x of /c": {"launch": {"command": "npx", "args": ["y"], "env": {"K": "sum"}}, "tools": {"t": {"sum": "s", "description": "d"}},
		"since": "2026-01-02T03:04:05Z", "spoken": {"version": "2025-06-18", "launch": "l", "at": "2026-01-02T03:04:05Z"}}}}`)
	folders, servers := NewFolders(dir, time.Now), NewServers(dir, time.Now)
	if err := folders.Trust(root, map[string]Agreed{filepath.Join(root, "new"): {Sum: "n", Text: "t"}}); err != nil {
		t.Fatal(err)
	}
	view, err := folders.Read()
	if err != nil || !view.Trusts(root, filepath.Join(root, ".eca", "config.json"), "a") || !view.Trusts(root, filepath.Join(root, "new"), "n") {
		t.Errorf("%+v, %v", view, err)
	}
	changed, before := view.Changes(other, filepath.Join(other, ".eca", "config.json"), map[string]string{"hooks": "i"})
	if shown := view.Shown(other, filepath.Join(other, ".eca", "config.json")); !before || len(changed) != 1 || shown != "shown" {
		t.Errorf("%q, %v, %q", changed, before, shown)
	}
	if err := servers.Change("y", func(*Server) {}); err != nil {
		t.Fatal(err)
	}
	if s, err := servers.Get("x of /c"); err != nil || s.Launch.Args[0] != "y" || s.Launch.Env["K"] != "sum" || s.Tools["t"].Sum != "s" || s.Spoken.Version != "2025-06-18" {
		t.Errorf("%+v, %v", s, err)
	}
}
