package repomap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mapOf(t testing.TB, x *Index, root string, f Focus) *Map {
	t.Helper()
	m, err := x.Map(context.Background(), root, f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// paths lists the files of a map, best first.
func paths(m *Map) string {
	var out []string
	for _, f := range m.Files {
		out = append(out, f.Path)
	}
	return strings.Join(out, " ")
}

// shop is a small repository. Many files use core, no Go file uses odd, and only vendored code and
// a test use lonely.
func shop() map[string]string {
	files := map[string]string{
		"core/basket.go":  "package core\n\n// Basket holds things.\ntype Basket struct{}\n\nfunc (b *Basket) AddItem(name string) error { return nil }\n",
		"odd/odd.go":      "package odd\n\nfunc NobodyCalls() {}\n",
		"lonely.go":       "package shop\n\nfunc LonelyHelper() {}\n",
		"lonely_test.go":  "package shop\n\nfunc TestLonely(t *testing.T) { LonelyHelper(); LonelyHelper() }\n",
		"vendor/x/big.go": "package x\n\ntype Basket struct{}\n\nfunc Vendored() { LonelyHelper() }\n",
		"main.py":         "def main():\n    NobodyCalls()\n",
		"notes.txt":       "Basket Basket",
	}
	for i := range 5 {
		files[fmt.Sprintf("user%d.go", i)] = fmt.Sprintf("package shop\n\nfunc UserOf%d(b *core.Basket) { b.AddItem(`x`) }\n", i)
	}
	return files
}

func TestRanking(t *testing.T) {
	root := t.TempDir()
	testkit.WriteFiles(t, root, shop())
	x := New(Options{})
	defer x.Close()
	m := mapOf(t, x, root, Focus{})
	if got := paths(m); !strings.HasPrefix(got, "core/basket.go ") || !strings.HasSuffix(got, "vendor/x/big.go") || strings.Contains(got, "notes") {
		t.Errorf("the order: %s", got)
	}
	sum := 0.0
	for _, f := range m.Files {
		sum += f.Rank
	}
	if sum < .999 || sum > 1.001 {
		t.Errorf("the ranks are %f together", sum)
	}
	for _, c := range []struct {
		focus Focus
		first string
	}{
		{Focus{Paths: []string{"odd/odd.go"}}, "odd/odd.go"},
		{Focus{Paths: []string{filepath.Join(root, "odd")}}, "odd/odd.go"},
		{Focus{Paths: []string{"odd/"}}, "odd/odd.go"},
		{Focus{Paths: []string{"odd.go"}}, "odd/odd.go"},
		{Focus{Paths: []string{"NobodyCalls"}}, "odd/odd.go"},
		{Focus{Names: []string{"odd.NobodyCalls"}}, "odd/odd.go"},
		{Focus{Text: "Please look at (`NobodyCalls`), it is slow"}, "odd/odd.go"},
		{Focus{Text: "what is in odd.go?"}, "odd/odd.go"},
		{Focus{Text: "see odd/odd.go."}, "odd/odd.go"},
		{Focus{Paths: []string{"vendor"}}, "vendor/x/big.go"},
		{Focus{Paths: []string{"nothing", "../..", ".", ""}, Text: "and some words, that are no names / . .. #"}, "core/basket.go"},
	} {
		if got := paths(mapOf(t, x, root, c.focus)); !strings.HasPrefix(got, c.first+" ") {
			t.Errorf("%+v: %s", c.focus, got)
		}
	}
}

// The text of a map stays within its budget, has its files in order, and shows each definition
// below the definition that contains it.
func TestText(t *testing.T) {
	root := t.TempDir()
	files := shop()
	files["shapes.py"] = "class Shape:\n    def area_of(self):\n        pass\n\n    class Inner:\n        def deep_one(self): pass\n"
	files["use.py"] = "area_of deep_one area_of\n"
	testkit.WriteFiles(t, root, files)
	x := New(Options{})
	defer x.Close()
	m := mapOf(t, x, root, Focus{})
	for tokens := range 400 {
		text := m.Text(tokens)
		if Tokens(text) > tokens {
			t.Fatalf("%d tokens: the text has %d", tokens, Tokens(text))
		}
		var order []string
		depth := 0
		for line := range strings.Lines(text) {
			rest := strings.TrimLeft(line, " ")
			d := len(line) - len(rest)
			if d > depth+1 {
				t.Fatalf("%d tokens: the text lacks the definition that contains this one: %s\n%s", tokens, line, text)
			}
			if depth = d; d == 0 {
				order = append(order, strings.TrimSpace(line))
			}
		}
		for i := 1; i < len(order); i++ {
			if order[i-1] >= order[i] {
				t.Fatalf("%d tokens: %s", tokens, order)
			}
		}
	}
	const all = `core/basket.go
 type Basket struct
 func (b *Basket) AddItem(name string) error
lonely.go
 func LonelyHelper()
`
	if got := m.Text(1000); !strings.HasPrefix(got, all) || !strings.Contains(got, "shapes.py\n class Shape\n  def area_of(self)\n  class Inner\n   def deep_one(self)\n") {
		t.Errorf("the whole map:\n%s", got)
	}
}

// The text of a map does not change if only bodies or positions of definitions change.
func TestTextIsStable(t *testing.T) {
	root := t.TempDir()
	testkit.WriteFiles(t, root, shop())
	x := New(Options{})
	defer x.Close()
	before := mapOf(t, x, root, Focus{}).Text(60)
	testkit.WriteFiles(t, root, map[string]string{"core/basket.go": "package core\n\n// Basket holds things.\n// And more.\ntype Basket struct{ a int }\n\nfunc (b *Basket) AddItem(name string) error { return fmt.Errorf(name) }\n"})
	if after := mapOf(t, x, root, Focus{}).Text(60); after != before || before == "" {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// The map is the same whether an index read all files, followed edits one by one, or loaded a
// stored map.
func TestIncremental(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	source := func() string {
		var b strings.Builder
		b.WriteString("package p\n")
		for range random.IntN(4) {
			fmt.Fprintf(&b, "func Name%d() { Name%d(); local%d() }\n", random.IntN(40), random.IntN(40), random.IntN(5))
			fmt.Fprintf(&b, "func local%d() {}\n", random.IntN(5))
		}
		return b.String()
	}
	clock := time.Now()
	now := func() time.Time { return clock.Add(time.Hour) } // so late that the index trusts the times of files
	edit := func(i int) {
		name := fmt.Sprintf("d%d/f%d.go", random.IntN(3), random.IntN(20))
		path := filepath.Join(root, filepath.FromSlash(name))
		if random.IntN(4) == 0 {
			_ = os.Remove(path)
			return
		}
		testkit.WriteFiles(t, root, map[string]string{name: source()})
		at := clock.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		edit(i)
	}
	o := Options{CacheDir: cache, Now: now, Workers: 2}
	lasting := New(o)
	for i := range 60 {
		for range random.IntN(3) {
			edit(100 + i)
		}
		focus := Focus{}
		if i%3 == 0 {
			focus.Names = []string{"Name7"}
		}
		want := mapOf(t, New(Options{Now: now, Workers: 1}), root, focus)
		if diff := cmp.Diff(want, mapOf(t, lasting, root, focus)); diff != "" {
			t.Fatalf("round %d, edited (-fresh +edited):\n%s", i, diff)
		}
		if i%10 == 9 {
			lasting.Close()
			lasting = New(o)
			if diff := cmp.Diff(want, mapOf(t, lasting, root, focus)); diff != "" {
				t.Fatalf("round %d, stored (-fresh +stored):\n%s", i, diff)
			}
		}
	}
	lasting.Close()
}

// The index notices a change that keeps the size and the time of a file if it comes immediately
// after the file was read.
func TestRacyEdit(t *testing.T) {
	root := t.TempDir()
	at := time.Now()
	x := New(Options{CacheDir: t.TempDir(), Now: func() time.Time { return at.Add(time.Second) }})
	for _, name := range []string{"Before", "Behind"} {
		testkit.WriteFiles(t, root, map[string]string{"a.go": "package a\nfunc " + name + "() {}\n"})
		if err := os.Chtimes(filepath.Join(root, "a.go"), at, at); err != nil {
			t.Fatal(err)
		}
		if got := mapOf(t, x, root, Focus{}).Text(100); !strings.Contains(got, name) {
			t.Errorf("%s: %s", name, got)
		}
		x.Close()
		x = New(x.opts) // the same with a stored map
	}
	x.Close()
}

// Another index loads the stored map, which is outside the repository. It does not use a damaged one,
// and replaces it.
func TestStored(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	testkit.WriteFiles(t, root, shop())
	later := func() time.Time { return time.Now().Add(time.Hour) }
	x := New(Options{CacheDir: cache, Now: later})
	want := mapOf(t, x, root, Focus{})
	x.Close()
	stored := x.storedPath(mustAbs(t, root))
	good, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	files, err := decode(good, mustAbs(t, root), x.languages())
	if err != nil || len(files) != len(want.Files) {
		t.Fatalf("%d files are stored: %v", len(files), err)
	}
	if _, err := decode(good, "/another", x.languages()); !errors.Is(err, errDamaged) {
		t.Errorf("decoding the stored map of another root: %v", err)
	}
	old := filepath.Join(filepath.Dir(stored), "old"+storedExt)
	testkit.WriteFiles(t, filepath.Dir(stored), map[string]string{"old" + storedExt: "x"})
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*storedAge)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{nil, good[:len(good)/2], append([]byte("x"), good...), []byte("rubbish")} {
		if err := os.WriteFile(stored, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		y := New(Options{CacheDir: cache, Now: later})
		if diff := cmp.Diff(want, mapOf(t, y, root, Focus{})); diff != "" {
			t.Errorf("with a damaged store: %s", diff)
		}
		y.Close()
		if again, err := os.ReadFile(stored); err != nil || string(again) != string(good) {
			t.Errorf("the store is not rebuilt: %v", err)
		}
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("Close did not remove an old map")
	}
	for i := 0; i < len(good); i += 1 + len(good)/300 {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x55
		if _, err := decode(bad, mustAbs(t, root), x.languages()); err == nil {
			t.Errorf("byte %d was changed, and decode returned no error", i)
		}
	}
}

func mustAbs(t testing.TB, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// decode does not trust a file because its checksum is right: any program can write one.
func FuzzDecode(f *testing.F) {
	root := f.TempDir()
	testkit.WriteFiles(f, root, shop())
	x := New(Options{})
	mapOf(f, x, root, Focus{})
	var stored bytes.Buffer
	if err := encode(&stored, "/r", x.tree(root).order); err != nil {
		f.Fatal(err)
	}
	whole := stored.Bytes()
	f.Add(whole[:len(whole)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		data := appendChecksum(body)
		files, err := decode(data, "/r", x.languages())
		if err != nil {
			return
		}
		tr := &tree{root: "/r", files: files}
		for _, f := range files {
			tr.order = append(tr.order, f)
		}
		tr.link(tr.order, 0, false, 1)
		tr.rank(Focus{}).Text(100)
	})
}

func appendChecksum(body []byte) []byte {
	c := checksum(body)
	return append(append([]byte(nil), body...), byte(c), byte(c>>8), byte(c>>16), byte(c>>24))
}

// A cancelled call does not affect the next one, and concurrent calls get the same map.
func TestConcurrent(t *testing.T) {
	root := t.TempDir()
	testkit.WriteFiles(t, root, shop())
	x := New(Options{CacheDir: t.TempDir()})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.Map(ended, root, Focus{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	want := mapOf(t, New(Options{}), root, Focus{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m, err := x.Map(context.Background(), root, Focus{})
			if err != nil || cmp.Diff(want, m) != "" {
				t.Errorf("%v %s", err, cmp.Diff(want, m))
			}
		})
	}
	wg.Wait()
	x.Forget([]string{root})
	x.Forget(nil)
	mapOf(t, x, root, Focus{})
	x.Close()
	x.Close()
	mapOf(t, x, root, Focus{})
}

func TestRoots(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	testkit.WriteFiles(t, a, shop())
	testkit.WriteFiles(t, b, map[string]string{"one.py": "def one(): pass\n"})
	x := New(Options{})
	defer x.Close()
	none := filepath.Join(a, "none")
	text, err := x.Text(context.Background(), []string{a, none, b}, Focus{}, 300)
	if err != nil || !strings.HasPrefix(text, a+":\ncore/basket.go\n") || !strings.HasSuffix(text, b+":\none.py\n def one()\n") || Tokens(text) > 300 {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err := x.Text(context.Background(), []string{none}, Focus{}, 300); err == nil || text != "" {
		t.Errorf("a missing root: %q, %v", text, err)
	}
	if text, err := x.Text(context.Background(), []string{t.TempDir()}, Focus{}, 300); err != nil || text != "" {
		t.Errorf("an empty root: %q, %v", text, err)
	}
}

// The index does not read binary, huge or hidden files, and does not follow links out of the
// repository.
func TestWhatIsRead(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	testkit.WriteFiles(t, outside, map[string]string{"secret.go": "package s\nfunc Secret() {}\n"})
	testkit.WriteFiles(t, root, map[string]string{
		"bin.go": "package b\x00func Binary() {}", "huge.go": "package h\n" + strings.Repeat("// x\n", maxBytes/5+1) + "func Huge() {}",
		"run": "#!/usr/bin/env python3\ndef script(): pass\n", "LICENSE": "def no(): pass", "a.go": "package a\nfunc Here() {}",
		".hidden/h.go": "package h\nfunc Hidden() {}",
	})
	for _, name := range []string{"link.go", "dir"} {
		target := filepath.Join(outside, "secret.go")
		if name == "dir" {
			target = outside
		}
		needs.Symlink(t, target, filepath.Join(root, name))
	}
	x := New(Options{})
	defer x.Close()
	for range 2 {
		if got := mapOf(t, x, root, Focus{}).Text(1000); got != "a.go\n func Here()\nrun\n def script()\n" {
			t.Errorf("read:\n%s", got)
		}
	}
}

// Files that are not code are shown by name where the name tells what a repository is.
func TestLandmarks(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	files := shop()
	for _, name := range []string{"README.md", "Makefile", "web/package.json", "web/logo.svg", "deploy/Dockerfile", "vendor/x/README", "main.go/notes.md"} {
		files[name] = "func NotRead() {}\n"
	}
	testkit.WriteFiles(t, root, files)
	for range 2 { // from the files, then from the stored map
		x := New(Options{CacheDir: cache, Now: func() time.Time { return time.Now().Add(time.Hour) }})
		m := mapOf(t, x, root, Focus{})
		x.Close()
		found := map[string]File{}
		for _, f := range m.Files {
			found[f.Path] = f
		}
		for _, name := range []string{"README.md", "Makefile", "web/package.json", "deploy/Dockerfile"} {
			if f, ok := found[name]; !ok || f.Language != "" || len(f.Definitions) > 0 || f.Rank <= 0 {
				t.Errorf("%s: %v %+v", name, ok, f)
			}
			if text := m.Text(1000); !strings.Contains("\n"+text, "\n"+name+"\n") {
				t.Errorf("%s is not in\n%s", name, text)
			}
		}
		if found["README.md"].Rank <= found["web/package.json"].Rank || found["Makefile"].Rank <= found["vendor/x/README"].Rank {
			t.Errorf("the order: %s", paths(m))
		}
		if _, ok := found["web/logo.svg"]; ok || strings.Contains(m.Text(1000), "NotRead") {
			t.Errorf("the map has a file that is no landmark: %s", paths(m))
		}
		x = New(Options{})
		if got := paths(mapOf(t, x, root, Focus{Text: "see package.json"})); !strings.HasPrefix(got, "web/package.json ") {
			t.Errorf("the focus names package.json, which must come first: %s", got)
		}
		x.Close()
	}
}

func TestRoleOf(t *testing.T) {
	for path, want := range map[string]fileRole{
		"a/b.go": ordinary, "a/b_test.go": test, "tests/x.py": test, "x/test_y.py": test, "src/ShopTest.java": test, "Latest.java": ordinary,
		"contest.py": ordinary, "app.spec.ts": test, "vendor/a/b_test.go": vendored, "web/node_modules/x.js": vendored, "examples/a.go": example,
		"examples/a_test.go": test, "api/x.pb.go": generated, "x.min.js": generated, "Testament.kt": ordinary,
	} {
		if got := roleOf(path, []byte("package x\n")); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for src, want := range map[string]fileRole{
		"// Code generated by x. DO NOT EDIT.\n":        generated,
		strings.Repeat("a = 1;", 2000):                  generated,
		strings.Repeat("\n", 3000) + "// DO NOT EDIT\n": ordinary,
	} {
		if got := roleOf("a.js", []byte(src)); got != want {
			t.Errorf("%.40q: %d", src, got)
		}
	}
}

func TestParseLog(t *testing.T) {
	h := parseLog([]byte("\x01200\na.go\n\n\x01100\na.go\nb.go\n\n\x0150\n" + strings.Repeat("mass.go\n", maxTouched+1)))
	if h.last != 200e9 || h.files["a.go"] != 1 || h.files["b.go"] <= 0 || h.files["b.go"] >= .5 || h.files["mass.go"] != 0 {
		t.Errorf("%+v", h)
	}
	for _, text := range []string{"", "\x01", "\x01x", "junk", "\x01-5\n\x01\n\n", "\x0199999999999999999999\na"} {
		if h := parseLog([]byte(text)); h.last != 0 {
			t.Errorf("%q: %+v", text, h)
		}
	}
	files := []*file{{path: "old.go", mtime: 5}, {path: "new.go", mtime: 500e9, lang: New(Options{}).languages().ByName("go")}}
	h.findRecent(files)
	if h.weight(files[0]) != 0 || h.weight(files[1]) != editedWeight {
		t.Errorf("%v", h.recent)
	}
}
