package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// syntaxError returns where a text is not valid JSON, and why, in the user's terms.
func syntaxError(text []byte, err error) (line, column int, cause string) {
	line, column, found := splitPosition(err.Error())
	at := newLines(text)
	// The parser sees the text with a final newline (withNewline), and so may count one more line.
	if line > len(at) {
		line, column = len(at), len(text)-at[len(at)-1]+1
	}
	if offset, ok := openString(text); ok && !strings.Contains(found, "invalid character '\\''") {
		// The parser continues the string to the next quote in the file, so it reports an error only
		// after the actual mistake.
		open := at.position(offset)
		inString := strings.HasPrefix(found, `invalid literal: "`) || strings.Contains(found, "parsing string")
		switch {
		case inString:
			return open.line, open.column, "invalid JSON: missing closing quote"
		case open.line == line:
			return line, column, "invalid JSON: missing closing quote in this line"
		}
	}
	return line, column, syntaxCause(found)
}

// splitPosition splits "hujson: line 3, column 5: cause".
func splitPosition(msg string) (line, column int, cause string) {
	m := regexp.MustCompile(`(?s)^(?:hujson: )?line (\d+), column (\d+): (.*)$`).FindStringSubmatch(msg)
	if m == nil {
		return 0, 0, msg
	}
	line, _ = strconv.Atoi(m[1])
	column, _ = strconv.Atoi(m[2])
	return line, column, m[3]
}

// syntaxCause describes the parser's message in the user's terms.
func syntaxCause(found string) string {
	if m := regexp.MustCompile(`^invalid character '(\\'|[‘’‚“”„«»` + "`" + `])'`).FindStringSubmatch(found); m != nil {
		kind := "typographic quotes"
		if m[1] == `\'` {
			kind = "single quotes"
		}
		return "invalid JSON: " + kind + "; use double quotes (\")"
	}
	if m := regexp.MustCompile(`^invalid character '\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))'`).FindStringSubmatch(found); m != nil {
		code, _ := strconv.ParseUint(m[1]+m[2], 16, 32)
		name := fmt.Sprintf("U+%04X", code)
		if code == 0xA0 {
			name = "a non-breaking space, " + name
		}
		return "invalid JSON: there is an invisible character here (" + name + "); delete it or replace it with a space"
	}
	if m := regexp.MustCompile(`^invalid character '([}\]])' after top-level value`).FindStringSubmatch(found); m != nil {
		return "invalid JSON: there is one " + m[1] + " too many here"
	}
	if literal, ok := strings.CutPrefix(found, "invalid literal: "); ok {
		return "invalid JSON: " + literal + " is not a value; the file must be an object in braces ({), and texts must be in double quotes"
	}
	for sign, cause := range map[string]string{
		"expecting ',' or":      "a comma is missing before this",
		"after object name":     "a colon is missing before this",
		"after top-level value": "there is text after the closing }",
		"at start of value":     "a value is missing before this",
		"unexpected EOF":        "the text ends before the JSON is complete; perhaps } is missing",
	} {
		if strings.Contains(found, sign) {
			return "invalid JSON: " + cause
		}
	}
	return "invalid JSON: " + found
}

// openString returns the start of the first string that does not end on its line.
func openString(text []byte) (offset int, ok bool) {
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			i += lastByteOf(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i += lastByteOf(rest, "*/")
		case text[i] == '"':
			begin := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
				if i < len(text) && text[i] == '\n' {
					return begin, true
				}
			}
			if i >= len(text) {
				return begin, true
			}
		}
	}
	return 0, false
}

// lastByteOf returns the offset of the last byte of an end marker; without a marker, the length of
// the text.
func lastByteOf(text []byte, end string) int {
	if n := bytes.Index(text, []byte(end)); n >= 0 {
		return n + len(end) - 1
	}
	return len(text)
}
