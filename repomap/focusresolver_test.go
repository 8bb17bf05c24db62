package repomap

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/repomap/lang"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// For each word of a focus, the resolver finds the same files as a search through all files.
func TestFocusResolver(t *testing.T) {
	root := t.TempDir()
	files := shop()
	for i, text := range []string{
		"package a\n\nfunc Shared() {}\nfunc hidden() {}\n", "package b\n\nfunc hidden() {}\nfunc sharedToo() {}\n", "def shared():\n    pass\n\nclass Basket:\n    pass\n",
	} {
		for _, dir := range []string{"a", "a/b", "a-b", "c"} {
			files[fmt.Sprintf("%s/f%d%s", dir, i, []string{".go", ".go", ".py"}[i])] = text
		}
	}
	files["c/package.json"], files["c/data.bin"] = "{}", "x"
	testkit.WriteFiles(t, root, files)
	x := New(Options{})
	defer x.Close()
	mapOf(t, x, root, Focus{})
	tr := x.tree(root)
	for _, word := range []string{
		"a", "a/b", "a-b", "a/f0.go", "f0.go", "f1.go", "package.json", "c/package.json", "data.bin", "c/data.bin", "none", "a/none", ".", "..", "", "hidden", "Shared", "sharedToo", "shared", "a.hidden", "Basket", "core.Basket", "vendor",
	} {
		for name, c := range map[string]struct {
			aim  func(*focusResolver) bool
			want func(i int, f *file) bool
		}{
			"path": {func(a *focusResolver) bool { return a.addPath(tr.relative(word), 1) }, func(_ int, f *file) bool {
				rel := tr.relative(word)
				return f.shown() && (f.path == rel || strings.HasPrefix(f.path, rel+"/"))
			}},
			"base": {func(a *focusResolver) bool { return a.addBase(word, 1) }, func(_ int, f *file) bool { return f.shown() && path.Base(f.path) == word }},
			"name": {func(a *focusResolver) bool { a.addName(word, 1); return true }, func(_ int, f *file) bool {
				name := word[strings.LastIndexAny(word, ".")+1:]
				return slices.ContainsFunc(f.defs, func(d lang.Definition) bool { return d.Name == name })
			}},
		} {
			got, want := target{files: map[int]float64{}, names: map[int32]bool{}}, target{files: map[int]float64{}}
			var in []int
			for i, f := range tr.order {
				if c.want(i, f) {
					in = append(in, i)
				}
			}
			want.add(in, 1)
			found := c.aim(&focusResolver{t: tr, out: &got})
			if len(got.files) != len(want.files) || found != (len(in) > 0) && name != "name" && tr.relative(word) != "." {
				t.Errorf("%s %q: %v, want %v; found: %v", name, word, got.files, want.files, found)
			}
			for i, w := range want.files {
				if math.Abs(got.files[i]-w) > 1e-9 {
					t.Errorf("%s %q: %s counts %v, want %v", name, word, tr.order[i].path, got.files[i], w)
				}
			}
			for id := range got.names {
				if len(in) == 0 || !slices.ContainsFunc(in, func(i int) bool { return slices.Contains(tr.order[i].definedNames, id) }) {
					t.Errorf("%s %q: the result has a name that none of the files defines", name, word)
				}
			}
		}
	}
}

// mentions counts how often a text has each word.
func TestMentions(t *testing.T) {
	got := fmt.Sprint(mentions("see a.go, (a.go) and `b`; a.go."))
	if want := "[{see 1} {a.go 3} {and 1} {b 1}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := len(mentions(strings.Repeat("x ", maxWords) + "last")); n != 1 {
		t.Errorf("%d words", n)
	}
}

// BenchmarkLongText makes a map for a long text in which each word may be the name of a file or definition.
func BenchmarkLongText(b *testing.B) {
	root := b.TempDir()
	files := map[string]string{}
	for i := range 5000 {
		files[fmt.Sprintf("d%d/file%d.go", i%100, i)] = fmt.Sprintf("package x\n\nfunc Do%d() {}\nfunc doIt%d() {}\n", i, i)
	}
	testkit.WriteFiles(b, root, files)
	x := New(Options{})
	defer x.Close()
	var text strings.Builder
	for i := range maxWords / 4 {
		fmt.Fprintf(&text, "Other%d doIt%d other%d.go:12 d/other%d.go ", i, i, i, i)
	}
	mapOf(b, x, root, Focus{})
	for name, focus := range map[string]Focus{"none": {}, "long": {Text: text.String()}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mapOf(b, x, root, focus)
			}
		})
	}
}
