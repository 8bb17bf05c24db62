package inline

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/workspace"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// maxFile is the maximum size of a file that is read, in bytes.
const maxFile = 16 << 20

// readFile returns the text of a file; ok is false if the file is not text, too large, or not
// readable.
func readFile(path string) (text string, ok bool) {
	data, err := safeio.Read(path, maxFile)
	if err != nil || workspace.IsBinary(data) {
		return "", false
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), true
}

// Marker lines in the text for the model (config/prompts/rewrite.md explains them).
const (
	selectionBegins = "[[selection begins]]\n"
	selectionEnds   = "[[selection ends]]\n"
)

// window returns a file with its selected lines marked: the whole file if it is within the limits, or
// else the same number of lines before and after the selection, where possible. It is empty if the
// selected lines alone exceed the limits. first and last are 1-based and inclusive; lines beyond the
// end of the file mean its end.
func window(file string, first, last, maxLines, maxBytes int) string {
	lines := slices.Collect(strings.Lines(file))
	begin := min(max(first-1, 0), len(lines))
	end := min(max(last, begin), len(lines))
	size := 0
	for _, l := range lines[begin:end] {
		size += len(l)
	}
	if end-begin > maxLines || size > maxBytes {
		return ""
	}
	from, to := begin, end
	take := func(i int) bool {
		if i < 0 || i >= len(lines) || to-from >= maxLines || size+len(lines[i]) > maxBytes {
			return false
		}
		size += len(lines[i])
		return true
	}
	for up, down := true, true; up || down; {
		if up = up && take(from-1); up {
			from--
		}
		if down = down && take(to); down {
			to++
		}
	}
	var b strings.Builder
	writeOmission(&b, from)
	writeLines(&b, lines[from:begin])
	b.WriteString(selectionBegins)
	writeLines(&b, lines[begin:end])
	b.WriteString(selectionEnds)
	writeLines(&b, lines[end:to])
	writeOmission(&b, len(lines)-to)
	return b.String()
}

func writeOmission(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "[[%d lines left out]]\n", n)
	}
}

// writeLines writes lines, and ends the last one with a line break.
func writeLines(b *strings.Builder, lines []string) {
	for _, l := range lines {
		b.WriteString(l)
	}
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		b.WriteByte('\n')
	}
}

// offset returns the byte offset of a 1-based position in a text. Characters are code points; a
// character beyond the end of its line means the end of the line. ok is false if the line does not
// exist.
func offset(text string, line, character int) (at int, ok bool) {
	if line < 1 || character < 1 {
		return 0, false
	}
	for range line - 1 {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
	}
	for range character - 1 {
		r, size := utf8.DecodeRuneInString(text[at:])
		if size == 0 || r == '\n' || r == '\r' {
			break
		}
		at += size
	}
	return at, true
}

// lastPart returns at most the last n bytes of a text, from the beginning of a line if possible.
func lastPart(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// firstPart returns at most the first n bytes of a text, up to the end of a line if possible.
func firstPart(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		return s[:i+1]
	}
	return strings.ToValidUTF8(s, "")
}
