package main

import (
	"strings"
	"unicode"
)

// printable is a text of others in one line, without what a terminal would take as orders.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))), " ")
}
