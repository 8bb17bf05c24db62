package main

import (
	"strings"
	"unicode"
)

// printable is foreign text in one line, without characters that control a terminal.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))), " ")
}
