package extensions

import (
	"strings"
	"testing"
)

// A mistake in front matter is named in plain words, with its line in the file and what helps.
func TestFrontmatterMistakesInPlainWords(t *testing.T) {
	for front, want := range map[string]struct {
		line int
		text string
	}{
		"description: \"x":                {2, "no closing quote"},
		"a: 1\n\ttools: x":                {3, "indent with spaces"},
		"- a\n- b":                        {2, "lines like description: TEXT, not a sequence"},
		"tools: {a: b":                    {2, "a { has no matching }"},
		"tools: [a, b":                    {2, "a [ has no matching ]"},
		"a: 1\nb: 2\na: 3":                {4, `the key "a" occurs twice`},
		"description: Use when: x":        {2, "put a text with a colon in quotes"},
		"description: x\n  mode: primary": {2, "begin keys of one level in the same column"},
		"description: @x":                 {2, "put it in quotes"},
		"description: *x":                 {2, "in quotes"},
		"description: %x":                 {2, "cannot begin with %"},
		"description: a\n b: 3\nc: 1":     {2, "begin keys of one level in the same column"},
	} {
		_, _, flt := parseFrontmatter(front + "\n")
		switch {
		case flt == nil:
			t.Errorf("%q is read", front)
		case flt.line != want.line || !strings.Contains(flt.cause, want.text):
			t.Errorf("%q: line %d: %s; want line %d: %s", front, flt.line, flt.cause, want.line, want.text)
		}
		if flt != nil && (strings.Contains(flt.cause, "token") || strings.Contains(flt.cause, "mapping")) {
			t.Errorf("%q: words of the library: %s", front, flt.cause)
		}
	}
}
