package main

import (
	"strings"
	"unicode"
)

// printable returns text on one line, without control and format characters, because text from
// models and servers could otherwise control the terminal.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))), " ")
}
