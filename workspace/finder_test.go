package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree creates files below a new folder; a name that ends with a slash is a folder.
func tree(t testing.TB, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, n := range names {
		path := filepath.Join(root, filepath.FromSlash(n))
		dir := filepath.Dir(path)
		if strings.HasSuffix(n, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir != path {
			if err := os.WriteFile(path, []byte(n), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// newFinder returns a Finder for one test.
func newFinder(t testing.TB) *Finder {
	f := &Finder{}
	t.Cleanup(f.Close)
	return f
}

// find returns the results of a query as text, relative to root.
func find(t *testing.T, f *Finder, roots []string, query string) string {
	t.Helper()
	found, err := f.Find(context.Background(), roots, query)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range found {
		rel, err := filepath.Rel(roots[0], e.Path)
		if err != nil || !filepath.IsAbs(e.Path) {
			t.Fatalf("%s: %v", e.Path, err)
		}
		if rel = filepath.ToSlash(rel); e.Dir {
			rel += "/"
		}
		out = append(out, rel)
	}
	return strings.Join(out, " ")
}

func TestFind(t *testing.T) {
	root := tree(t, "README.md", "a.txt", "src/b.py", "src/main.go", "src/domain.go", "main/z.go", "cmd/x/main.go", "cmd/Main_test.go",
		"remains/q", ".git/config", ".hidden", "out.log", ".gitignore", "link/")
	other := tree(t, "b2.py", "deep/b.rb")
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.log\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := newFinder(t)
	for query, want := range map[string]string{
		"":            "README.md a.txt cmd/Main_test.go main/z.go remains/q src/b.py src/domain.go src/main.go cmd/x/main.go",
		"  read ":     "README.md",
		"MAIN":        "main/ src/main.go cmd/x/main.go cmd/Main_test.go remains/ src/domain.go main/z.go remains/q",
		"src/":        "src/b.py src/main.go src/domain.go",
		"zzz":         "",
		"log":         "",
		"hidden":      "",
		"./":          ".git/ cmd/ link/ main/ remains/ src/ .gitignore .hidden a.txt out.log README.md",
		"./re":        "remains/ README.md",
		"./src":       "src/b.py src/domain.go src/main.go",
		"./src/":      "src/b.py src/domain.go src/main.go",
		"./.":         ".git/ .gitignore .hidden",
		"./a.txt":     "a.txt",
		"./a.txt/":    "",
		"./none/x":    "",
		root + "/src": "src/b.py src/domain.go src/main.go",
	} {
		if got := find(t, f, []string{root}, query); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", query, got, want)
		}
	}
	up, err := filepath.Rel(root, other)
	if err != nil {
		t.Fatal(err)
	}
	up = filepath.ToSlash(up)
	// A root may be missing, given twice, or inside another.
	roots := []string{root, other, filepath.Join(root, "none"), root, filepath.Join(root, "src")}
	if got, want := find(t, f, roots, "b."), "src/b.py "+up+"/deep/b.rb "+up+"/b2.py"; got != want {
		t.Errorf("several roots: %s, want %s", got, want)
	}
	if got := find(t, f, roots[1:2], "src"); got != "" {
		t.Errorf("after a change of the roots: %s", got)
	}
	if home, err := os.UserHomeDir(); err == nil {
		a, _ := f.Find(context.Background(), nil, "~")
		b, _ := f.Find(context.Background(), nil, home+"/")
		if !slices.Equal(a, b) {
			t.Errorf("home: %v, by path: %v", a, b)
		}
	}
}

// The best of many results are those of a full sort, in the same order each time.
func TestFindBest(t *testing.T) {
	needs.Long(t)
	var names []string
	for i := range 700 {
		names = append(names, fmt.Sprintf("d%d/x%dquery%d", i%7, i%13, i), fmt.Sprintf("d%d/query%d", i%7, i))
	}
	root := tree(t, names...)
	f := newFinder(t)
	got, err := f.Find(context.Background(), []string{root}, "QUERY")
	if err != nil || len(got) != 100 {
		t.Fatalf("%d results, %v", len(got), err)
	}
	var want []string
	for _, n := range names {
		if strings.Contains(n, "/query") {
			want = append(want, n)
		}
	}
	slices.SortFunc(want, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	for i := range got {
		if got[i].Path != filepath.Join(root, want[i]) {
			t.Fatalf("%d: %s, want %s", i, got[i].Path, want[i])
		}
	}
	if many, _ := f.Find(context.Background(), nil, root+"/d1/"); len(many) != 100 {
		t.Errorf("a listing of %d", len(many))
	}
}

// If there are too many files, the index leaves out the deepest ones.
func TestScanIsBounded(t *testing.T) {
	root := tree(t, "1", "a/2", "a/b/3", "c/4", "c/5")
	for limit, want := range map[int]string{1: "1", 3: "1 a/ c/", 5: "1 a/ a/2 a/b/ c/", 6: "1 a/ a/2 a/b/ c/ c/4", 100: "1 a/ a/2 a/b/ a/b/3 c/ c/4 c/5"} {
		if limit == 1 {
			want = "1" // folders go first
		}
		sc := &scanner{top: root, remaining: limit}
		f := &folder{}
		if err := sc.scanBelow(context.Background(), f); err != nil {
			t.Fatal(err)
		}
		if got := render(f); got != want {
			t.Errorf("%d: %s, want %s", limit, got, want)
		}
	}
}

// render returns a folder's entries as text.
func render(f *folder) string {
	var out []string
	var visit func(f *folder)
	visit = func(f *folder) {
		for i := range f.ends {
			out = append(out, f.text.plain+f.file(i).plain)
		}
		for _, sub := range f.subs {
			out = append(out, sub.text.plain)
			visit(sub)
		}
	}
	visit(f)
	slices.Sort(out)
	return strings.Join(out, " ")
}
