package permission

import "testing"

// A pattern matches what it matches in Java, or it is refused.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           string // yes, no, or refused
	}{
		{`git (?!push).*`, "git log", "yes"},
		{`git (?!push).*`, "git push", "no"},
		{`(\w+) \1`, "a a", "yes"},
		{`npm test`, "npm test now", "no"},
		{`npm.*`, "npm a\nb", "no"},
		{`(?s)npm.*`, "npm a\nb", "yes"},
		{`a\_b\-c\/d\"`, `a_b-c/d"`, "yes"},
		{`[\w./-]+`, "a/b-c.d", "yes"},
		{`[]a]+[^]a]`, "]ab", "yes"},
		{`\[x\]`, "[x]", "yes"},
		// ASCII alone, as in Java.
		{`\w+`, "é", "no"},
		{`\d+`, "٣", "no"},
		{`a\sb`, "a\u00a0b", "no"},
		{`\W`, "é", "yes"},
		// Java reads these in another way, or there is nothing like it here.
		{`\Qa.b\E`, "a.b", "refused"},
		{`a\hb`, "a b", "refused"},
		{`a\Rb`, "a\nb", "refused"},
		{`\v`, "\v", "refused"},
		{`\0101`, "A", "refused"},
		{`[a-z&&[^r]]+`, "abc", "refused"},
		{`[a-z&&r]+`, "r", "refused"},
		{`[ab[cd]]+`, "abcd", "refused"},
		{`[a-c-[b]]`, "b", "refused"},
		{`a*+`, "aa", "refused"},
		{`\p{Alpha}`, "a", "refused"},
		{`(`, "(", "refused"},
	} {
		got := "refused"
		if re, err := compileExpression(c.pattern); err == nil {
			got = map[bool]string{true: "yes", false: "no"}[fullMatch(re, c.value)]
		}
		if got != c.want {
			t.Errorf("%s and %q: %s, want %s", c.pattern, c.value, got, c.want)
		}
	}
}
