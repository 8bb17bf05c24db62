package main

import (
	"fmt"
	"strings"
	"unicode"
)

// shown is text of others as it may be printed: what a terminal would take as an order, and
// what turns text around or can not be seen, is written out, so that nobody who has to decide
// about it is shown something else. Lines and tabs stay.
func shown(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r", "") { // behind which a line is written anew
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

// printable is a text of others in one line, without what a terminal would take as orders.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))), " ")
}
