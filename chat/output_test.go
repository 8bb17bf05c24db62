package chat

import (
	"strings"
	"testing"
)

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n \n": "", "one\ntwo": "two", "one\n\n": "one", "10%\r50%\r": "50%", "a\tb": "a b", "\x1b[1mbold\x1b[0m": "[1mbold[0m", "a\xffb": "ab",
		strings.Repeat("ü", 200): strings.Repeat("ü", maxShownLine) + "…",
	} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
