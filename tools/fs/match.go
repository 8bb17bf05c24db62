package fs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// replaceMatch replaces original with replacement in text. It searches for original with increasing
// tolerance and uses the first method that finds a match:
//
//  1. exactly;
//  2. ignoring line endings and trailing blanks;
//  3. ignoring indentation: the replacement gets the indentation of the match;
//  4. as a sequence of words, whatever the white space between them.
//
// Unless all is set, there must be exactly one match. all applies only to the first two methods,
// which cannot match anything unexpected.
func replaceMatch(text, original, replacement string, all bool) (string, error) {
	if original == "" {
		return "", errors.New("original_content is empty; use write_file to create a file")
	}
	if n := strings.Count(text, original); n > 0 {
		if n > 1 && !all {
			return "", ambiguous(n)
		}
		return strings.ReplaceAll(text, original, withEOL(replacement, usesCRLF(text))), nil
	}
	if spans := matchLines(text, original, trimRight); len(spans) > 0 {
		if len(spans) > 1 && !all {
			return "", ambiguous(len(spans))
		}
		return splice(text, spans, func(span) string { return replacement }), nil
	}
	if all {
		return "", errNotFound
	}
	if spans := matchLines(text, original, strings.TrimSpace); len(spans) > 0 {
		if len(spans) > 1 {
			return "", ambiguous(len(spans))
		}
		return splice(text, spans, func(s span) string {
			return reindent(replacement, original, text[s.start:s.end])
		}), nil
	}
	spans := matchWords(text, original)
	switch len(spans) {
	case 0:
		return "", errNotFound
	case 1:
		return splice(text, spans, func(span) string { return strings.TrimSpace(replacement) }), nil
	}
	return "", ambiguous(len(spans))
}

var errNotFound = errors.New("original_content was not found; read the file again and copy the passage exactly")

func ambiguous(n int) error {
	return fmt.Errorf("original_content occurs %d times; include more of the surrounding lines, or set all_occurrences", n)
}

// span is a half-open range of bytes.
type span struct{ start, end int }

// line is a line of text with its position in the file; the line ending is excluded.
type line struct {
	text       string
	start, end int
}

func splitLines(s string) []line {
	var out []line
	for start := 0; start <= len(s); {
		end := strings.IndexByte(s[start:], '\n')
		if end < 0 {
			out = append(out, line{s[start:], start, len(s)})
			break
		}
		end += start
		out = append(out, line{strings.TrimSuffix(s[start:end], "\r"), start, end})
		start = end + 1
	}
	return out
}

func trimRight(s string) string { return strings.TrimRight(s, " \t\r") }

// matchLines finds non-overlapping runs of whole lines that equal original's lines after norm was
// applied to both. A final line ending of original is part of the match.
func matchLines(text, original string, norm func(string) string) []span {
	hay, needle := splitLines(text), splitLines(original)
	trailing := len(needle) > 1 && needle[len(needle)-1].text == ""
	if trailing {
		needle = needle[:len(needle)-1]
	}
	want := make([]string, len(needle))
	blank := true
	for i, l := range needle {
		want[i] = norm(l.text)
		blank = blank && want[i] == ""
	}
	if blank {
		return nil
	}
	var out []span
	for i := 0; i+len(want) <= len(hay); i++ {
		j := 0
		for j < len(want) && norm(hay[i+j].text) == want[j] {
			j++
		}
		if j < len(want) {
			continue
		}
		last := hay[i+j-1]
		end := last.end
		if trailing && end < len(text) {
			end++
		} else if !trailing && end > last.start && text[end-1] == '\r' {
			end--
		}
		out = append(out, span{hay[i].start, end})
		i += j - 1
	}
	return out
}

// matchWords finds original as a sequence of words.
func matchWords(text, original string) []span {
	words := strings.Fields(original)
	// A single short word would match almost anywhere; a huge original is not an edit.
	if len(words) < 2 || len(words) > 2000 {
		return nil
	}
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	re, err := regexp.Compile(strings.Join(words, `\s+`))
	if err != nil {
		return nil
	}
	var out []span
	for _, m := range re.FindAllStringIndex(text, 3) {
		out = append(out, span{m[0], m[1]})
	}
	return out
}

// splice replaces spans, which are sorted and disjoint, and keeps the file's line endings.
func splice(text string, spans []span, with func(span) string) string {
	crlf := usesCRLF(text)
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.start])
		b.WriteString(withEOL(with(s), crlf))
		at = s.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// usesCRLF reports whether a text has CRLF line endings.
func usesCRLF(text string) bool { return strings.Contains(text, "\r\n") }

// withEOL converts the line endings of s to CRLF or LF.
func withEOL(s string, crlf bool) string {
	if !crlf {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// reindent shifts replacement by the difference between the indentation the model
// assumed (original) and the one in the file (found).
func reindent(replacement, original, found string) string {
	assumed, actual := indentOf(original), indentOf(found)
	if assumed == actual {
		return replacement
	}
	lines := strings.Split(replacement, "\n")
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(l, assumed); ok {
			lines[i] = actual + rest
		} else {
			lines[i] = actual + strings.TrimLeft(l, " \t")
		}
	}
	return strings.Join(lines, "\n")
}

// indentOf returns the indentation of the first line that is not blank.
func indentOf(s string) string {
	for l := range strings.SplitSeq(s, "\n") {
		if t := strings.TrimLeft(l, " \t"); strings.TrimSpace(t) != "" {
			return l[:len(l)-len(t)]
		}
	}
	return ""
}
