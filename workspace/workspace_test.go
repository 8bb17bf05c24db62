package workspace

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

func TestContains(t *testing.T) {
	needs.Symlinks(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{base}, parts...)...) }
	for _, dir := range []string{in("app", "src"), in("app-evil"), in("elsewhere")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		in("app", "out"): in("elsewhere"), in("app", "dangling"): in("elsewhere", "new.txt"), in("app", "rel"): "../elsewhere/x",
		in("app", "loop"): in("app", "loop"), in("app", "inside"): in("app", "src"), in("alias"): in("app"),
		in("app", "chain"): in("app", "dangling"),
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{in("app"), in("alias"), in("app") + "/"} {
		w := New(root)
		for path, want := range map[string]bool{
			in("app"): true, in("app", "src", "a.go"): true, in("app", "not", "there", "yet"): true, in("alias", "x"): true, in("app", "inside", "x"): true,
			in("app", "..", "app", "x"): true, in("app", "..", "app-evil", "x"): false, in("app-evil"): false, in("app-evil", "x"): false, base: false, "/": false,
			in("app", "out"): false, in("app", "out", "x"): false, in("app", "dangling"): false, in("app", "rel"): false, in("app", "chain"): false,
		} {
			if got := w.Contains(path); got != want {
				t.Errorf("root %s: %s: %v", root, path, got)
			}
		}
	}
	if New().Contains(base) {
		t.Error("no roots contain nothing")
	}
}

func TestFromURI(t *testing.T) {
	for in, want := range map[string]string{
		"file:///home/u/a%20b": "/home/u/a b", "file:///home/u/a b": "/home/u/a b", "file:/x": "/x", "file://localhost/x": "/x",
		"file:///C:/x": "C:/x", "file:///c%3A/x": "c:/x", "file://C:/x": "C:/x", "/plain": "/plain", "file:///%E6%97%A5": "/日",
	} {
		if got := FromURI(in); got != filepath.FromSlash(want) {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestAbs(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for in, want := range map[string]string{
		"~": home, "~/x": filepath.Join(home, "x"), "a/../b": filepath.Join(root, "b"), root: root,
	} {
		if got := Abs([]string{root, "/other"}, in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestWalkDoesNotFollowLinksOut(t *testing.T) {
	needs.Symlinks(t)
	base := t.TempDir()
	root, out := filepath.Join(base, "root"), filepath.Join(base, "out")
	for _, d := range []string{filepath.Join(root, "a"), out} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "secret"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(base, "alias")
	if err := os.Symlink(root, alias); err != nil {
		t.Fatal(err)
	}
	visited := 0
	if err := Walk(context.Background(), alias, func(f File) error {
		visited++
		if f.Path != filepath.Join(alias, f.Rel) {
			t.Errorf("below a link: %s", f.Path)
		}
		return nil
	}); err != nil || visited != 2 {
		t.Errorf("below a link to a folder: %d entries, %v", visited, err)
	}
	var got []string
	if err := Walk(context.Background(), root, func(f File) error { got = append(got, f.Rel); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != "a" || got[1] != "link" {
		t.Errorf("walked %v", got)
	}
}

func TestToURI(t *testing.T) {
	for in, want := range map[string]string{
		"/home/u/a b": "file:///home/u/a%20b", "/日#?%": "file:///%E6%97%A5%23%3F%25", "C:/x": "file:///C:/x", "/": "file:///",
	} {
		if got := ToURI(in); got != want || FromURI(got) != filepath.FromSlash(in) {
			t.Errorf("%s: %s, and back %s", in, got, FromURI(got))
		}
	}
}

// A Resolver resolves paths like Resolve, but sees one state: it reads each path only once.
func TestResolverSeesOneState(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b", "c/d"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	needs.Symlink(t, filepath.Join(dir, "a", "b"), link)
	needs.Symlink(t, "loop", filepath.Join(dir, "loop"))
	needs.Symlink(t, filepath.Join("c", "none"), filepath.Join(dir, "dangling"))
	r := NewResolver()
	for range 2 {
		for _, name := range []string{"", "a", "a/b", "link", "link/x", "link/../x", "a//b/./x", "none/x/../y", "loop/x", "dangling/x", "dangling/../x", "../" + filepath.Base(dir) + "/link"} {
			if got, want := r.Resolve(dir+"/"+name), Resolve(dir+"/"+name); got != want {
				t.Errorf("%s leads to %s, with Resolve to %s", name, got, want)
			}
		}
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	needs.Symlink(t, filepath.Join(dir, "c", "d"), link)
	if got, want := r.Resolve(filepath.Join(link, "x")), filepath.Join(dir, "a", "b", "x"); got != want {
		t.Errorf("a link that changed leads to %s, not to %s as before", got, want)
	}
	if got, want := Resolve(filepath.Join(link, "x")), filepath.Join(dir, "c", "d", "x"); got != want {
		t.Errorf("Resolve: %s, want %s", got, want)
	}
}
