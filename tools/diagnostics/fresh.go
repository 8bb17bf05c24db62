package diagnostics

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/seed-dec29ce4/eca/tools"
)

// hunk is a part of a file that an edit replaced, in lines that count from 1. The ends are excluded.
type hunk struct{ from, to, newFrom, newTo int }

// hunks returns how the lines of a text changed.
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

// identity is what two diagnostics have in common that are about the same mistake, their place
// aside. Numbers after a colon or the word line are places too, which edits shift.
type identity struct {
	severity              tools.Severity
	message, source, code string
}

func identify(d tools.Diagnostic, places *regexp.Regexp) identity {
	return identity{d.Severity, places.ReplaceAllString(d.Message, "$1#"), d.Source, d.Code}
}

// fresh returns the diagnostics of a file that are not among the known ones, which are about the
// text before the changes. A mistake on a changed line is known if the lines that replaced it have
// the same one.
func fresh(known, now []tools.Diagnostic, changes []hunk) (out []tools.Diagnostic) {
	places := regexp.MustCompile(`(:|\bline )\d+`)
	type at struct {
		identity
		line int
	}
	unchanged := map[at]int{}
	inHunk := map[at]int{} // by the number of the hunk
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

// mapped returns the number of an unchanged line after the changes, or else the number of the hunk
// that replaced it; n is negative for an unchanged line.
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
