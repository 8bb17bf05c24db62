package acp

import (
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// diffs are the hunks of a unified diff as ACP has them: what was there and what will be.
// That of a new file has no old text. Ends of line are line feeds, as editors have them, unless
// nothing but these changes.
func diffs(path, unified string) []any {
	var out []any
	var before, after strings.Builder
	open, isNew := false, false
	flush := func() {
		if !open {
			return
		}
		was, will := withLF(before.String()), withLF(after.String())
		if was == will {
			was, will = before.String(), after.String()
		}
		d := object{"type": "diff", "path": path, "oldText": was, "newText": will}
		if isNew {
			d["oldText"] = nil
		}
		out = append(out, d)
		before.Reset()
		after.Reset()
	}
	var last *strings.Builder // what the last line was for, if for one side only
	for line := range strings.Lines(unified) {
		text := line
		if !strings.HasSuffix(text, "\n") {
			text += "\n" // the last line of the diff lost its end
		}
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			open, isNew = true, strings.HasPrefix(line, "@@ -0,0 ")
		case !open:
		case strings.HasPrefix(line, "-"):
			before.WriteString(text[1:])
			last = &before
		case strings.HasPrefix(line, "+"):
			after.WriteString(text[1:])
			last = &after
		case strings.HasPrefix(line, "\\"): // the line before it has no end
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

// gap stands for lines between two hunks.
const gap = "⋯\n"

// asOne is what several hunks of a file change, as one diff to look at: some clients show the
// first alone when they ask.
func asOne(hunks []any) []any {
	if len(hunks) < 2 {
		return hunks
	}
	var before, after []string
	for _, h := range hunks {
		d, _ := h.(object)
		was, _ := d["oldText"].(string)
		will, _ := d["newText"].(string)
		before, after = append(before, was), append(after, will)
	}
	first, _ := hunks[0].(object)
	return []any{object{"type": "diff", "path": first["path"], "oldText": strings.Join(before, gap), "newText": strings.Join(after, gap)}}
}

// firstLine is the line where a unified diff begins in the new file; 0 if it says none.
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
