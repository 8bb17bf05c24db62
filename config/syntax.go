package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// isUTF16 says whether a text is encoded so, as some editors of Windows save files: its
// first character, which is ASCII, has a zero byte.
func isUTF16(text []byte) bool {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return true
		}
	}
	return bytes.IndexByte(text[:min(2, len(text))], 0) >= 0
}

// syntaxError says where a text is no JSON, and in the user's words why.
func syntaxError(text []byte, err error) (line, column int, cause string) {
	line, column, found := splitPosition(err.Error())
	at := newLines(text)
	// The parser's text may have one line more.
	if line > len(at) {
		line, column = len(at), len(text)-at[len(at)-1]+1
	}
	if offset, ok := openString(text); ok && !strings.Contains(found, "invalid character '\\''") {
		// The parser takes the next quote, or what follows the line, for its end.
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

// splitPosition takes "hujson: line 3, column 5: cause" apart.
func splitPosition(msg string) (line, column int, cause string) {
	m := regexp.MustCompile(`(?s)^(?:hujson: )?line (\d+), column (\d+): (.*)$`).FindStringSubmatch(msg)
	if m == nil {
		return 0, 0, msg
	}
	line, _ = strconv.Atoi(m[1])
	column, _ = strconv.Atoi(m[2])
	return line, column, m[3]
}

// syntaxCause says in the user's words what the parser found.
func syntaxCause(found string) string {
	if m := regexp.MustCompile(`^invalid character '(\\'|[‘’‚“”„«»` + "`" + `])'`).FindStringSubmatch(found); m != nil {
		kind := "other quotes"
		if m[1] == `\'` {
			kind = "single quotes"
		}
		return "invalid JSON: " + kind + "; use double quotes (\")"
	}
	for sign, cause := range map[string]string{
		"expecting ',' or":  "missing comma",
		"after object name": "missing colon",
		"unexpected EOF":    "the text ends before the JSON is complete",
	} {
		if strings.Contains(found, sign) {
			return "invalid JSON: " + cause + " (" + found + ")"
		}
	}
	return found
}

// openString returns where the first string begins that does not end in its line.
func openString(text []byte) (offset int, ok bool) {
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			i += length(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i += length(rest, "*/")
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

// length is how far a text goes up to an end, or all of it.
func length(text []byte, end string) int {
	if n := bytes.Index(text, []byte(end)); n >= 0 {
		return n + len(end) - 1
	}
	return len(text)
}
