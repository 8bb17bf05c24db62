package acp

import (
	"strconv"
	"strings"
)

// diffs converts each hunk of a unified diff to an ACP diff: the old and the new text. A new file has no
// old text. CRLF becomes LF, as editors show it, unless a hunk changes only line endings.
func diffs(path, unified string) []diff {
	var out []diff
	var before, after strings.Builder
	open, isNew := false, false
	flush := func() {
		if !open {
			return
		}
		oldText, newText := withLF(before.String()), withLF(after.String())
		if oldText == newText {
			oldText, newText = before.String(), after.String()
		}
		d := diff{NewText: newText, Path: path, Type: "diff"}
		if !isNew {
			d.OldText = &oldText
		}
		out = append(out, d)
		before.Reset()
		after.Reset()
	}
	var last *strings.Builder // the side of the previous line; nil if that belongs to both
	for line := range strings.Lines(unified) {
		text := line
		if !strings.HasSuffix(text, "\n") {
			text += "\n" // the diff was stored without its last line feed
		}
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			open, isNew = true, strings.HasPrefix(line, "@@ -0,0 ")
		case !open: // before the first hunk
		case strings.HasPrefix(line, "-"):
			before.WriteString(text[1:])
			last = &before
		case strings.HasPrefix(line, "+"):
			after.WriteString(text[1:])
			last = &after
		case strings.HasPrefix(line, "\\"): // the previous line has no line ending
			for _, side := range []*strings.Builder{&before, &after} {
				if last == nil || last == side {
					cut := strings.TrimSuffix(side.String(), "\n")
					side.Reset()
					side.WriteString(cut)
				}
			}
		default:
			rest := strings.TrimPrefix(text, " ")
			before.WriteString(rest)
			after.WriteString(rest)
			last = nil
		}
	}
	flush()
	return out
}

func withLF(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// gap stands for the lines between two hunks.
const gap = "⋯\n"

// joinHunks joins the hunks of a file into one diff, because some clients show only the first one when
// they ask for permission.
func joinHunks(hunks []diff) []diff {
	if len(hunks) < 2 {
		return hunks
	}
	var before, after []string
	for _, h := range hunks {
		if h.OldText != nil {
			before = append(before, *h.OldText)
		}
		after = append(after, h.NewText)
	}
	oldText := strings.Join(before, gap)
	return []diff{{strings.Join(after, gap), &oldText, hunks[0].Path, "diff"}}
}

// firstLine returns the line in the new file where a unified diff begins, or 0 if it has no hunk header.
func firstLine(unified string) int64 {
	_, rest, ok := strings.Cut(unified, " +")
	if !ok || !strings.HasPrefix(unified, "@@") {
		return 0
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(rest[:digits], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
