package diagnostics

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/seed-dec29ce4/eca/tools"
)

// hunk is a range of lines that an edit replaced. Lines count from 1; the ends are exclusive.
type hunk struct{ from, to, newFrom, newTo int }

// hunks returns the hunks between two versions of a text.
func hunks(before, after string) (out []hunk) {
	shift := 0
	for _, e := range udiff.Lines(before, after) {
		from := 1 + strings.Count(before[:e.Start], "\n")
		removed, added := lineCount(before[e.Start:e.End]), lineCount(e.New)
		out = append(out, hunk{from, from + removed, from + shift, from + shift + added})
		shift += added - removed
	}
	return out
}

func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// identity is equal for two diagnostics about the same mistake at different positions. It ignores
// numbers after a colon or the word "line" in the message, because they are positions that an edit can
// shift.
type identity struct {
	severity              tools.Severity
	message, source, code string
}

func identify(d tools.Diagnostic, places *regexp.Regexp) identity {
	return identity{d.Severity, places.ReplaceAllString(d.Message, "$1#"), d.Source, d.Code}
}

// newDiagnostics returns the new diagnostics: those in now that are not in known. known are the diagnostics of
// the text before the changes. A diagnostic on a changed line is not new if one of the replaced lines
// had the same diagnostic.
func newDiagnostics(known, now []tools.Diagnostic, changes []hunk) (out []tools.Diagnostic) {
	positions := regexp.MustCompile(`(:|\bline )\d+`)
	type occurrence struct {
		identity
		line int
	}
	unchanged := map[occurrence]int{}
	inHunk := map[occurrence]int{} // by the index of the hunk
	for _, d := range known {
		id := identify(d, positions)
		if line, n := newLine(d.At.Line, changes); n < 0 {
			unchanged[occurrence{id, line}]++
		} else {
			inHunk[occurrence{id, n}]++
		}
	}
	for _, d := range now {
		id := identify(d, positions)
		if same := (occurrence{id, d.At.Line}); unchanged[same] > 0 {
			unchanged[same]--
			continue
		}
		n := slices.IndexFunc(changes, func(h hunk) bool { return d.At.Line >= h.newFrom && d.At.Line < h.newTo })
		if same := (occurrence{id, n}); n >= 0 && inHunk[same] > 0 {
			inHunk[same]--
			continue
		}
		out = append(out, d)
	}
	return out
}

// newLine returns the new number of an unchanged line, and n < 0. For a changed line, n is the index of
// its hunk.
func newLine(line int, changes []hunk) (now, n int) {
	for i, h := range changes {
		switch {
		case line >= h.from && line < h.to:
			return 0, i
		case line >= h.to:
			now = h.newTo - h.to
		}
	}
	return line + now, -1
}
