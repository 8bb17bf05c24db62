//go:build unix

package cmdline

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// checkPlain reports whether a program is plain, so that Canonical does not parse its form again. It
// fails if parsing it again gives another result.
func checkPlain(t interface{ Fatalf(string, ...any) }, text string) bool {
	p := Parse(text)
	if p.tree == nil || !p.allKnown() {
		return false
	}
	form := Form{Home: "/home/u", Dir: "/work"}
	printed, plain, why := p.tree.print(form)
	if !plain || why != "" {
		return false
	}
	_, again, why := p.reparse(printed, form)
	if why != "" {
		t.Fatalf("%q, printed %q: %s", text, printed, why)
	}
	for _, of := range []*Program{&p, &again} {
		of.tree = nil
		for i := range of.Commands {
			of.Commands[i].Source = "" // has other quotes
		}
	}
	if !reflect.DeepEqual(p, again) {
		t.Fatalf("%q, printed %q:\n%+v\n%+v", text, printed, p, again)
	}
	return true
}

// Parsing the canonical form of a plain program again changes nothing.
func TestPlainProgramsNeedNotBeParsedAgain(t *testing.T) {
	for _, text := range []string{"ls -la", "go test ./... 2>&1 | tail -20", "cd src; ls\ncat 'a b'", `grep -rn "func main" --include='*.go' . || echo a'b'"c"`, `\if x`, `'time' ls`, "ls |'time' cat", "a'='b c", "echo 'x\ny'; ls"} {
		if !checkPlain(t, text) {
			t.Errorf("%q is not plain", text)
		}
	}
	for _, text := range []string{"ls *.go", "ls ~", "echo ~/x", "echo {a,b}", "echo $x", "A=1 ls", "ls > x", "! ls", "ls &", "(ls)", "if ls; then ls; fi", "sh -c 'ls'", "ls |& cat", "bash -lc ls", "echo a=~", `echo $'a\tb'`} {
		if checkPlain(t, text) {
			t.Errorf("%q is plain", text)
		}
	}
	plain := 0
	for _, odd := range []bool{false, true} {
		w := &writer{Rand: rand.New(rand.NewPCG(seed(), 0)), odd: odd}
		for range 10_000 {
			if checkPlain(t, w.program()) {
				plain++
			}
		}
	}
	if plain < 100 {
		t.Errorf("%d of 20,000 programs are plain: the test sees too little", plain)
	}
	t.Logf("%d plain programs", plain)
}

func FuzzPlain(f *testing.F) {
	for _, text := range []string{"ls -la", "go test ./... 2>&1 | tail", `cat "a b" && cd 'c d'; ls`, "a\\\nb", "echo a~b", "x=y z", "ls 2>&-", "ls |'time' x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkPlain(t, text) })
}
