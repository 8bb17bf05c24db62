// Package shorten cuts texts of others (servers, models, files) for a message, a list or a
// prompt.
//
// It guarantees that a result is not longer than the limit, except for the mark of the omission,
// and that no character is cut in the middle. It does not make a text
// harmless: see internal/visible.
package shorten

import "strings"

// mark stands for what is left out.
const mark = "…"

// Bytes returns at most the first n bytes of a text, and a mark if that is not all.
func Bytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + mark
}

// Text returns the first n characters of a text, and a mark if that is not all.
func Text(text string, n int) string {
	count := 0
	for i := range text {
		if count == n {
			return Bytes(text, i)
		}
		count++
	}
	return text
}
