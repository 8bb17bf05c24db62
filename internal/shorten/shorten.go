// Package shorten cuts untrusted or long texts (from servers, models, files) for a message, a list
// or a prompt.
//
// A result is not longer than the limit, except for the mark of the omission, and no character is
// cut in the middle. The package does not make a text safe to show: see internal/visible.
package shorten

import "strings"

// mark stands for the omitted part.
const mark = "…"

// Bytes returns at most the first n bytes of a text, followed by a mark if the text is longer.
func Bytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + mark
}

// Text returns the first n characters of a text, followed by a mark if the text is longer.
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
