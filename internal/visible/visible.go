// Package visible escapes hidden characters in untrusted text, for people who have to decide about
// it: control sequences for a terminal, and characters that are invisible or change the direction
// of text.
//
// Escaped characters stay in their places, written as JSON escapes. Carriage returns are removed, and
// nothing else changes.
// The package does not convert text to one line, and does not detect letters that look like others.
package visible

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Name returns a path in a form that is unambiguous in a line of text: unchanged, or as a quoted
// string if it has characters that are not visible, spaces at an end, or a quotation mark at the
// beginning.
func Name(path string) string {
	hidden := func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }
	if strings.TrimSpace(path) == path && !strings.HasPrefix(path, `"`) && strings.IndexFunc(path, hidden) < 0 {
		return path
	}
	return strconv.Quote(path)
}

// Text returns untrusted text in a form that is safe to show: terminal control characters, and
// characters that are invisible or change the direction of text, are escaped, so that the user sees
// everything they decide about. Line breaks and tabs stay.
func Text(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r", "") { // a carriage return would let a line be overwritten
		const joiner, nonJoiner = '\u200d', '\u200c' // parts of words and of emoji
		switch {
		case r == '\n', r == '\t', r == joiner, r == nonJoiner:
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029':
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
