package visible

import (
	"os/exec"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"a\n\tb":                       "a\n\tb",
		"rm -r x\r\nls\r":              "rm -r x\nls",
		"\x1b[2K\a\x00\x7f\u009b1A":    `\u001b[2K\u0007\u0000\u007f\u009b1A`,
		"\u202ea\u2066b\u2069\u200e":   `\u202ea\u2066b\u2069\u200e`,
		"a\u200bb\ufeffc\u2060\u00add": `a\u200bb\ufeffc\u2060\u00add`,
		"🏴\U000e0067\U000e007f":        `🏴\udb40\udc67\udb40\udc7f`,
		"a\u2028b\u2029c\u0085":        `a\u2028b\u2029c\u0085`,
		"👩\u200d💻 می\u200cروم é ⏎":     "👩\u200d💻 می\u200cروم é ⏎",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"/a b/ü.go":           "/a b/ü.go",
		`C:\a\n`:              `C:\a\n`,
		"a\nb":                `"a\nb"`,
		"a\r":                 `"a\r"`,
		" x":                  `" x"`,
		`"x"`:                 `"\"x\""`,
		"a\u2028b\u202ec\x1b": `"a\u2028b\u202ec\x1b"`,
		"\xff":                `"\xff"`,
	} {
		if got := Name(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

// A shell reads Argument's result as the same word, without running anything.
func TestArgument(t *testing.T) {
	needs.POSIX(t)
	for word, want := range map[string]string{
		"/a/b-c.d":      "/a/b-c.d",
		"":              "''",
		"a b":           "'a b'",
		"x$(id)`id`":    "'x$(id)`id`'",
		"it's":          `'it'\''s'`,
		"a!b":           "'a!b'",
		"-a\nb":         `$'-a\x0ab'`,
		"'\\\u202e":     `$'\'\\\xe2\x80\xae'`,
		"bad\xff\ufffd": `$'bad\xff\xef\xbf\xbd'`,
	} {
		got := Argument(word)
		if got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
		if out, err := exec.Command("bash", "-c", "printf %s "+got).Output(); err != nil || string(out) != word {
			t.Errorf("a shell reads %s as %q: %v", got, out, err)
		}
	}
}
