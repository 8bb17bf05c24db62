package lang

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Reading eight bytes at a time gives the same result as byte by byte.
func TestReadName(t *testing.T) {
	l := New().ByName("go")
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in each run
	const likely = "aZz_059AMm@[`{/:^\xc3\x9f\x7f\x80\xff .(\n\x00"
	for range 100_000 {
		src := make([]byte, 1+random.IntN(24))
		for i := range src {
			src[i] = byte(random.UintN(256))
			if random.IntN(3) > 0 {
				src[i] = likely[random.IntN(len(likely))]
			}
		}
		src[0] = "aZ_\xc3"[random.IntN(4)]
		end := 1
		for end < len(src) && l.tails[src[end]] {
			end++
		}
		// Somewhere else, with other bytes after it.
		want := hash(append([]byte("x"), src[:end]...)[1:])
		if got, h := l.readName(src, 0); got != end || h != want || l.Hash(string(src[:end])) != l.withPrivacyBit(h^l.seed, src[0]) {
			t.Fatalf("%q: %q with %x, want %q with %x", src, src[:got], h, src[:end], want)
		}
		if got := l.alphanumeric(src, 1); got != end {
			t.Fatalf("%q: %q, want %q", src, src[:got], src[:end])
		}
	}
}

// The counts are right after the table has grown, and after another file was counted before.
func TestCounter(t *testing.T) {
	var c counter
	for round := range 3 {
		c.begin(100 * round)
		for i := range 5000 {
			for range 1 + i%3 {
				c.add(uint64(i) << 20)
			}
		}
		uses := c.result()
		if len(uses.Names) != 5000 || len(uses.Counts) != 5000 {
			t.Fatalf("round %d: %d names", round, len(uses.Names))
		}
		for i, name := range uses.Names {
			if name != uint64(i)<<20 || int(uses.Counts[i]) != 1+i%3 {
				t.Fatalf("round %d: %d is %x, %d times", round, i, name, uses.Counts[i])
			}
		}
	}
	c.begin(0)
	for range MaxCount + 10 {
		c.add(2)
	}
	if uses := c.result(); len(uses.Names) != 1 || uses.Counts[0] != MaxCount {
		t.Errorf("counted too far: %v", uses)
	}
	if c.begin(0); len(c.result().Names) != 0 {
		t.Error("after begin, the counter still has names of the file before")
	}
}

// A body without an end hides no definitions after it, and its names are not counted twice.
func TestHidden(t *testing.T) {
	l := New().ByName("go")
	var s Scanner
	src := []byte("package p\n\nfunc first() {\n\tif call(\"}\") { // }\n\n// Second is not in it.\nfunc Second() { call(Third{}) }\n\nvar Third = map[string]int{\"a\": call(1)}\n")
	defs, uses := s.Scan(l, src)
	if got := render(defs); got != "3 function first: func first()\n7 function Second: func Second()\n9 variable Third: var Third = map[string]int\n" {
		t.Errorf("defined:\n%s", got)
	}
	if i := slices.Index(uses.Names, l.Hash("call")); i < 0 || uses.Counts[i] != 3 {
		t.Errorf("call is counted: %d of %v", i, uses.Counts)
	}
	s.Scan(l, bytes.Replace(src, []byte("{ // }"), []byte("{}}"), 1))
	for _, tok := range s.lex.tokens {
		if text := string(src[tok.start:min(int(tok.end), len(src))]); text == "call" {
			t.Error("the scan did not skip a body that ends")
		}
	}
}
