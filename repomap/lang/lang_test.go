package lang

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// render is the golden form: one line per definition.
func render(defs []Definition) string {
	var b strings.Builder
	for _, d := range defs {
		depth := 0
		for p := d.Parent; p >= 0; p = defs[p].Parent {
			depth++
		}
		fmt.Fprintf(&b, "%s%d %s %s: %s\n", strings.Repeat("  ", depth), d.Line, d.Kind, d.Name, d.Signature)
	}
	return b.String()
}

// Each file in testdata has a golden beside it; each language has a file.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*/sample*")
	if err != nil {
		t.Fatal(err)
	}
	ls, seen := New(), map[string]bool{}
	var s Scanner
	for _, file := range files {
		l, _ := ls.Of(file)
		if l == nil {
			continue
		}
		seen[l.Name] = true
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defs, _ := s.Scan(l, src)
		got := render(defs)
		golden := filepath.Join(filepath.Dir(file), strings.ReplaceAll(filepath.Base(file), ".", "_")+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("%s (%v):\n%s\nwant:\n%s", file, err, got, want)
		}
	}
	for _, l := range ls.All() {
		if !seen[l.Name] {
			t.Errorf("%s has no sample", l.Name)
		}
	}
}

// check fails the test if the result of a scan violates what Scan promises for any input.
func check(t *testing.T, l *Language, src []byte) {
	t.Helper()
	var s Scanner
	defs, uses := s.Scan(l, src)
	for i, d := range defs {
		switch {
		case d.Name == "" || !d.Kind.Valid():
			t.Fatalf("%s: definition %d is %+v", l.Name, i, d)
		case d.Parent >= i || d.Parent < -1:
			t.Fatalf("%s: the parent of %q is not an earlier definition", l.Name, d.Name)
		case d.Line < 1 || d.Line > strings.Count(string(src), "\n")+1:
			t.Fatalf("%s: %q is in line %d", l.Name, d.Name, d.Line)
		case len(d.Signature) > MaxSignature || strings.Contains(d.Signature, "\n"):
			t.Fatalf("%s: %q has signature %q", l.Name, d.Name, d.Signature)
		case utf8.Valid(src) && !utf8.ValidString(d.Signature):
			t.Fatalf("%s: the signature %q is cut in the middle of a character", l.Name, d.Signature)
		}
	}
	seen := map[uint64]bool{}
	for i, name := range uses.Names {
		if seen[name] || uses.Counts[i] == 0 {
			t.Fatalf("%s: a name is counted twice, or not at all", l.Name)
		}
		seen[name] = true
	}
	again, uses2 := s.Scan(l, src)
	if !reflect.DeepEqual(defs, again) || !reflect.DeepEqual(uses, uses2) {
		t.Fatalf("%s: a second scan differs", l.Name)
	}
	if l.skipsBody == nil {
		return
	}
	all := *l
	all.skipsBody = nil
	again, uses2 = s.Scan(&all, src)
	if !reflect.DeepEqual(defs, again) || !reflect.DeepEqual(uses, uses2) {
		t.Fatalf("%s: a scan that hides no bodies differs: %v, %v", l.Name, defs, again)
	}
}

// Fuzz with -fuzzminimizetime 100x: by default, minimizing takes a minute for each interesting input and
// is not counted as progress.
func FuzzScan(f *testing.F) {
	ls := New()
	files, err := filepath.Glob("testdata/*/sample*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, l := range ls.All() {
			if of, _ := ls.Of(file); of == l {
				f.Add(uint8(i), src)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, src []byte) {
		check(t, ls.All()[int(which)%len(ls.All())], src)
	})
}

// sample returns the sample of a language.
func sample(t testing.TB, ls *Languages, l *Language) []byte {
	t.Helper()
	files, err := filepath.Glob("testdata/" + l.Name + "/sample*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if of, _ := ls.Of(file); of == l {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return src
		}
	}
	t.Fatalf("%s has no sample", l.Name)
	return nil
}

// Scan works for code that is cut at its beginning or end, and for pieces that are repeated
// thousands of times.
func TestBrokenCode(t *testing.T) {
	needs.Long(t)
	ls := New()
	for _, l := range ls.All() {
		src := sample(t, ls, l)
		for cut := 0; cut < len(src); cut += 1 + len(src)/200 {
			check(t, l, src[:cut])
			check(t, l, src[cut:])
		}
		for _, piece := range pieces {
			check(t, l, []byte(strings.Repeat(piece, 2000)))
		}
	}
}

func TestOf(t *testing.T) {
	ls := New()
	for file, want := range map[string]string{
		"a/b.go": "go", "x.PY": "python", "index.d.ts": "typescript", "a.txt": "", "go": "", "x.tsx": "tsx",
		"x.h": "c", "X.HPP": "cpp", "a/Rakefile": "ruby", "x.kts": "kotlin", "x.mli": "ocaml", "run.zsh": "bash",
	} {
		l, _ := ls.Of(file)
		if got := name(l); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	for head, want := range map[string]string{
		"#!/usr/bin/env -S python3.12 -u\nx": "python", "#!/usr/bin/node": "javascript", "#!/bin/frob": "", "#!/bin/sh": "bash", "#!/usr/bin/env lua5.4": "lua", "#!": "", "x": "", "": "",
	} {
		if got := name(ls.OfScript([]byte(head))); got != want {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
}

func name(l *Language) string {
	if l == nil {
		return ""
	}
	return l.Name
}
