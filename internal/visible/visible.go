// Package visible writes out what a text of others hides, for people who have to decide about
// it: orders for a terminal, and characters that turn text around or cannot be seen.
//
// It guarantees that escaped characters stay in their places, and that nothing else changes but
// carriage returns, which go. It does not make one line of a text, and does not know letters
// that look like others.
package visible

import (
	"fmt"
	"strings"
	"unicode"
)

// Text is text of others as it may be shown: what a terminal would take as an order, and
// what turns text around or cannot be seen, is written out, so that the user who has to
// decide about it sees nothing else. Lines and tabs stay.
func Text(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r", "") { // after which a line is overwritten
		const joiner, nonJoiner = '\u200d', '\u200c' // parts of words and of emoji
		switch {
		case r == '\n', r == '\t', r == joiner, r == nonJoiner:
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
