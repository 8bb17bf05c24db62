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

// identity is equal for two diagnostics about the same mistake at different positions. Numbers
// after a colon or the word line in the message are positions too, which edits shift.
type identity struct {
	severity              tools.Severity
	message, source, code string
}

func identify(d tools.Diagnostic, places *regexp.Regexp) identity {
	return identity{d.Severity, places.ReplaceAllString(d.Message, "$1#"), d.Source, d.Code}
}

// fresh returns the diagnostics in now that are not in known, which are about the text before the
// changes. A diagnostic on a changed line is not new if the replaced lines had the same one.
func fresh(known, now []tools.Diagnostic, changes []hunk) (out []tools.Diagnostic) {
	places := regexp.MustCompile(`(:|\bline )\d+`)
	type at struct {
		identity
		line int
	}
	unchanged := map[at]int{}
	inHunk := map[at]int{} // by the index of the hunk
	for _, d := range known {
		id := identify(d, places)
		if line, n := mapped(d.At.Line, changes); n < 0 {
			unchanged[at{id, line}]++
		} else {
			inHunk[at{id, n}]++
		}
	}
	for _, d := range now {
		id := identify(d, places)
		if same := (at{id, d.At.Line}); unchanged[same] > 0 {
			unchanged[same]--
			continue
		}
		n := slices.IndexFunc(changes, func(h hunk) bool { return d.At.Line >= h.newFrom && d.At.Line < h.newTo })
		if same := (at{id, n}); n >= 0 && inHunk[same] > 0 {
			inHunk[same]--
			continue
		}
		out = append(out, d)
	}
	return out
}

// mapped returns the new number of an unchanged line with n < 0, or for a changed line the index n
// of its hunk.
func mapped(line int, changes []hunk) (now, n int) {
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
