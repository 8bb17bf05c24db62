package linesearch

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// matchingLines returns the lines that a pattern finds, with their numbers.
func matchingLines(p *Pattern, text []byte) []string {
	s := p.Searcher()
	s.Start(text)
	var out []string
	for from := 0; from < len(text); {
		at, after, ok := s.Next(from)
		if !ok {
			break
		}
		start, end := s.Line(at)
		out = append(out, string(text[start:end])+"@"+strings.Repeat("|", bytes.Count(text[:start], []byte("\n"))))
		from = after
	}
	return out
}

// byRegexp is matchingLines, with package regexp applied to each line.
func byRegexp(re *regexp.Regexp, text []byte) []string {
	var out []string
	n := 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if re.Match(line) {
			out = append(out, string(line)+"@"+strings.Repeat("|", n))
		}
		n++
	}
	return out
}

func check(t interface{ Fatalf(string, ...any) }, expr string, text []byte) {
	re, err := regexp.Compile(expr)
	p, err2 := Compile(expr)
	if (err == nil) != (err2 == nil) {
		t.Fatalf("%q: %v, regexp says %v", expr, err2, err)
	}
	if err != nil {
		return
	}
	got, want := matchingLines(p, text), byRegexp(re, text)
	if strings.Join(got, "\x00") != strings.Join(want, "\x00") || len(got) != len(want) {
		t.Fatalf("%q in %q:\ngot  %q\nwant %q", expr, text, got, want)
	}
}

func TestExamples(t *testing.T) {
	text := []byte("func Hello() {}\r\n\nhello hello\n  K\u212a \u017fs \xff\xfe Stra\u00dfe\n\r\r\nlast a.b_c 42")
	for _, expr := range []string{
		"hello", "(?i)hello", "(?i)HELLO", "^hello", "hello$", "^$", "", "x*", `\bhello\b`, `\Bello`, `^func (\w+)\(\) \{\}$`, "hello|func", "(?i)k", "(?i)s", "(?i)kk", "(?i)task", "(?i)strasse|STRA\u00dfE", "\ufffd", "\ufffd\ufffd", ".{3,}", "[^a]$",
		`\d+$`, `\z`, `\A`, "(?m)^last", "(?s).", "a\nb", `\s`, "\r", "\\r$", "o\r", "hello\n", "[[:upper:]]{2}", "[\u0080-\uffff]", "(?i)[k]", "a.b", `\QA.B\E`, "(?i)a\\.b_C", "nothing", "(a|b|c|d|e|f|g|h)o", "(foo|bar|baz|Hel)l", "(?:hel+o ?){2}", "$^", `\w$`, `^\b`, "\x00",
	} {
		check(t, expr, text)
		check(t, expr, bytes.ReplaceAll(text, []byte("\r"), nil))
		check(t, expr, append(bytes.ReplaceAll(text, []byte("\r"), nil), '\n'))
		check(t, expr, nil)
		check(t, expr, []byte("\n"))
	}
}

// For generated expressions and texts, a search finds the same lines as package regexp.
func TestAsRegexp(t *testing.T) {
	pieces := []string{"a", "b", "ab", "abc", "foo", "k", "s", ".", "^", "$", `\b`, `\B`, `\w`, `\s`, `\d`, "[a-c]", "[^a]", "[^\\n]", "\u00e9", "\u212a", "\u4e16", "\ufffd", " ", "_", "(?i)a", "(?i:foo)", "(?i:ks)", "(?:)", `\n`, `\r`, `\x{ff}`, "x"}
	expr := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 5).Draw(t, "pieces") {
			b.WriteString(p + rapid.SampledFrom([]string{"", "", "", "", "*", "+", "?", "{2}", "{1,3}", "|", "*?"}).Draw(t, "suffix"))
		}
		if rapid.Bool().Draw(t, "group") {
			return "(" + b.String() + ")" + rapid.SampledFrom([]string{"", "+", "b", "$", "?"}).Draw(t, "behind")
		}
		return b.String()
	})
	words := []string{"a", "b", "ab", "abc", "foo", "FOO", "K", "\u212a", "s", "\u017f", " ", "_", "1", "\n", "\n", "\r\n", "\r", "\u00e9", "\u4e16", "\xff", "\xe4\xb8", "\ufffd", "\x00", "x", "."}
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		e := expr.Draw(t, "expression")
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 30).Draw(t, "text"), ""))
		check(t, e, text)
		if p, err := Compile(e); err == nil {
			found += len(matchingLines(p, text))
		}
	})
	if found == 0 {
		t.Error("no generated expression found a line")
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("(?i)hello|x+$", []byte("Hello\r\nxx\n"))
	f.Add(`\bfoo\B.`, []byte("foo\xff\n\u00e9foox"))
	f.Add("(a|ab)(c|bcd)(d*)", []byte("abcd\n"))
	f.Fuzz(func(t *testing.T, expr string, text []byte) {
		if len(expr) > 100 || len(text) > 2000 {
			return
		}
		check(t, expr, text)
	})
}

// A search also finds the lines of an expression whose automaton would need too many states.
func TestManyStates(t *testing.T) {
	text := make([]byte, 200_000)
	x := uint32(1)
	for i := range text {
		x = x*1664525 + 1013904223
		text[i] = "ab\nab"[x>>24%5]
	}
	expr := "[ab]*a[ab]{12}b[ab]{3}a$"
	p, err := Compile(expr)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Searcher()
	s.Start(text)
	s.auto.resets = maxResets // the next one is one too many
	n := 0
	for from := 0; from < len(text); n++ {
		_, after, ok := s.Next(from)
		if !ok {
			break
		}
		from = after
	}
	if want := len(byRegexp(regexp.MustCompile(expr), text)); n != want || want == 0 {
		t.Errorf("%d lines, want %d", n, want)
	}
	check(t, expr, text)
}
