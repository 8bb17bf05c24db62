package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree makes files below a new folder; a name that ends with a slash is a folder.
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

// find renders what a query finds, relative to root.
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
		if got := find(t, &Finder{}, []string{root}, query); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", query, got, want)
		}
	}
	up, err := filepath.Rel(root, other)
	if err != nil {
		t.Fatal(err)
	}
	up = filepath.ToSlash(up)
	// A root may be missing, given twice, or inside another.
	f := &Finder{}
	roots := []string{root, other, filepath.Join(root, "none"), root, filepath.Join(root, "src")}
	if got, want := find(t, f, roots, "b."), "src/b.py "+up+"/deep/b.rb"; got != want {
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

// The best of many are what a full sort would give, in the same order each time.
func TestFindBest(t *testing.T) {
	var names []string
	for i := range 700 {
		names = append(names, fmt.Sprintf("d%d/x%dquery%d", i%7, i%13, i), fmt.Sprintf("d%d/query%d", i%7, i))
	}
	root := tree(t, names...)
	f := &Finder{}
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

func TestCollectIsBounded(t *testing.T) {
	a, b := tree(t, "1", "2", "3"), tree(t, "4")
	entries, err := collect(context.Background(), []string{a, b}, 2)
	if err != nil || len(entries) != 2 || entries[1].rel != "2" {
		t.Errorf("%v %v", entries, err)
	}
}

// A listing serves queries for some seconds, then a new walk sees what changed.
func TestListingAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := tree(t, "a")
		f := &Finder{}
		find(t, f, []string{root}, "")
		if err := os.WriteFile(filepath.Join(root, "b"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(listingAge - time.Millisecond)
		if got := find(t, f, []string{root}, ""); got != "a" {
			t.Errorf("before: %s", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if f.current != nil {
			t.Error("an old listing is kept")
		}
		if got := find(t, f, []string{root}, ""); got != "a b" {
			t.Errorf("after: %s", got)
		}
	})
}

// Queries share a walk; it goes on while one of them waits, and no longer.
func TestFindCancelled(t *testing.T) {
	f := &Finder{}
	l := &listing{roots: []string{"/r"}, done: make(chan struct{})}
	walk, cancel := context.WithCancel(context.Background())
	l.cancel, f.current = cancel, l
	var queries sync.WaitGroup
	var stop [2]context.CancelFunc
	var left [2]chan struct{}
	for i := range stop {
		ctx, cancel := context.WithCancel(context.Background())
		stop[i], left[i] = cancel, make(chan struct{})
		queries.Go(func() {
			defer close(left[i])
			if _, err := f.Find(ctx, l.roots, "x"); !errors.Is(err, context.Canceled) {
				t.Errorf("query %d: %v", i, err)
			}
		})
	}
	for waiting := 0; waiting < 2; {
		f.mu.Lock()
		waiting = l.waiting
		f.mu.Unlock()
	}
	stop[0]()
	<-left[0]
	if walk.Err() != nil {
		t.Error("the walk ended although a query waits")
	}
	stop[1]()
	<-left[1]
	if walk.Err() == nil || f.current != nil {
		t.Error("the walk goes on although no query waits")
	}
	queries.Wait()
	if found, err := f.Find(context.Background(), []string{tree(t, "x")}, "x"); err != nil || len(found) != 1 {
		t.Errorf("after that: %v %v", found, err)
	}
}

// A workspace of 20,000 files: the first keystroke, and the next ones.
func BenchmarkQueryFiles(b *testing.B) {
	root := b.TempDir()
	for i := range 20_000 {
		dir := filepath.Join(root, fmt.Sprintf("package%d", i%50), fmt.Sprintf("part%d", i%1000))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("Source%d.go", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.o\n/build/\nnode_modules/\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	query := func(b *testing.B, f *Finder, text string) {
		if found, err := f.Find(context.Background(), []string{root}, text); err != nil || len(found) == 0 {
			b.Fatal(found, err)
		}
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			query(b, &Finder{}, "source1")
		}
	})
	for _, text := range []string{"", "s", "source19999"} {
		b.Run("warm/"+text, func(b *testing.B) {
			entries, err := collect(context.Background(), []string{root}, maxEntries)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if len(best(entries, text)) == 0 {
					b.Fatal("nothing found")
				}
			}
		})
	}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if err := filepath.WalkDir(root, func(string, os.DirEntry, error) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}
