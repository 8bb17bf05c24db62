// Package visible escapes hidden characters in untrusted text, for people who have to decide about
// it: control sequences for a terminal, and characters that are invisible or change the direction
// of text.
//
// Escaped characters stay in their places, written as JSON escapes. Carriage returns are removed,
// and nothing else changes. Argument is different: it returns text for a command line, to be pasted
// into a shell.
//
// The package does not convert text to one line, and does not detect letters that look like others.
package visible

import (
	"fmt"
	"regexp"
	"runtime"
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
	if strings.TrimSpace(path) == path && !strings.HasPrefix(path, `"`) && strings.IndexFunc(path, isHidden) < 0 {
		return path
	}
	return strconv.Quote(path)
}

// Argument returns a word as one argument of a command line that the user may paste into a shell of
// this system: quoted if the shell would read anything else into it. Hidden characters are written
// as escapes.
func Argument(word string) string {
	plain := regexp.MustCompile(`^[\w@%+=:,./-]+$`)
	switch {
	case runtime.GOOS == "windows" && strings.ContainsAny(word, "$`'"): // PowerShell expands them between double quotes
		return "'" + strings.ReplaceAll(word, "'", "''") + "'"
	case plain.MatchString(word), runtime.GOOS == "windows" && plain.MatchString(strings.ReplaceAll(word, `\`, "/")):
		return word
	case runtime.GOOS == "windows":
		return `"` + word + `"`
	case strings.IndexFunc(word, isHidden) < 0:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for i, r := range word { // a part that is not UTF-8 is U+FFFD here
		_, size := utf8.DecodeRuneInString(word[i:])
		part := word[i : i+size]
		switch {
		case isHidden(r):
			for _, c := range []byte(part) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		case r == '\'', r == '\\':
			b.WriteString(`\` + part)
		default:
			b.WriteString(part)
		}
	}
	return "$'" + b.String() + "'"
}

// isHidden reports whether a character is not visible, or not a character at all.
func isHidden(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }

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
