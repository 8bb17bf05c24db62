package shorten

import "testing"

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		text             string
		n                int
		byBytes, byChars string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "abc…"},
		{"a", 0, "…", "…"},
		{"äöü", 3, "ä…", "äöü"},
		{"äöüß", 3, "ä…", "äöü…"},
		{"日本語", 4, "日…", "日本語"},
		{"a\xff\xfeb", 3, "a…", "a…"},
		{"a\xffb", 9, "a\xffb", "a\xffb"},
	} {
		if got := Bytes(c.text, c.n); got != c.byBytes {
			t.Errorf("%q, %d bytes: %q, want %q", c.text, c.n, got, c.byBytes)
		}
		if got := Text(c.text, c.n); got != c.byChars {
			t.Errorf("%q, %d characters: %q, want %q", c.text, c.n, got, c.byChars)
		}
	}
}
