package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp"
)

// pageFuncs are the functions of the page templates.
var pageFuncs = template.FuncMap{
	"text":       func(s *string) string { return deref(s) },
	"json":       readableJSON,
	"diff":       diffFiles,
	"trace":      traceOf,
	"ms":         duration,
	"money":      money,
	"thousands":  thousands,
	"count":      func(u ecp.Usage, key string) string { return thousands(u.Count(key)) },
	"percent":    percent,
	"range95":    range95,
	"byK":        byK,
	"mark":       symbol,
	"resultLink": func(verdict, href string) Link { return Link{verdict, href} },
	"share":      share,
	"inc":        func(i int) int { return i + 1 },
	"float":      toFloat,
	"sub": func(whole float64, parts ...int64) float64 {
		for _, p := range parts {
			whole -= float64(p)
		}
		return max(whole, 0)
	},
	"failures": func(checks []Check) (n int) {
		for _, c := range checks {
			if !c.Passed && c.Error == "" {
				n++
			}
		}
		return n
	},
}

func money(v any) string {
	switch v := v.(type) {
	case *float64:
		return fmt.Sprintf("$%.4f", *v)
	case float64:
		return fmt.Sprintf("$%.4f", v)
	}
	return ""
}

func symbol(status string) string { return map[string]string{Passed: "✓", Failed: "✗"}[status] }

func range95(ci [2]float64) string { return percent(ci[0]) + " to " + percent(ci[1]) }

// share returns a part in percent, without the sign, for the width of a bar.
func share(part, whole float64) string {
	if whole <= 0 {
		return "0"
	}
	return strconv.FormatFloat(min(100*part/whole, 100), 'f', 1, 64)
}

func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) + "%" }

// byK lists the values by k, the lowest k first.
func byK(values map[string]float64) string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = k + ": " + percent(values[k])
	}
	return strings.Join(keys, ", ")
}

// diffFile is the part of a diff for one file.
type diffFile struct {
	Name           string
	Added, Removed int
	Lines          []diffLine
	Open           bool // initially unfolded
}

type diffLine struct{ Class, Text string }

// maxOpenDiff limits the files of a diff that are initially unfolded: the first ones, up to this
// number of lines together.
const maxOpenDiff = 200

// diffFiles splits a diff by file.
func diffFiles(diff string) (out []diffFile) {
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "diff --git "); ok || len(out) == 0 {
			out = append(out, diffFile{Name: diffName(strings.TrimSpace(name))})
			if ok {
				continue
			}
		}
		f := &out[len(out)-1]
		l := diffLine{Text: line}
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "@@ "):
			l.Class = "head"
		case strings.HasPrefix(line, "+"):
			l.Class = "added"
			f.Added++
		case strings.HasPrefix(line, "-"):
			l.Class = "removed"
			f.Removed++
		}
		f.Lines = append(f.Lines, l)
	}
	total := 0
	for i := range out {
		total += len(out[i].Lines)
		out[i].Open = total <= maxOpenDiff
	}
	return out
}

// diffName extracts NAME from "a/NAME b/NAME". It returns other text unchanged.
func diffName(both string) string {
	if half := len(both) / 2; len(both) > 4 && both[half] == ' ' && strings.HasPrefix(both, "a/") {
		return both[2:half]
	}
	return both
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// duration formats milliseconds in a readable unit.
func duration(v any) string {
	var ms float64
	switch v := v.(type) {
	case int64:
		ms = float64(v)
	case float64:
		ms = v
	}
	switch {
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 100_000:
		return strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
	}
	return fmt.Sprintf("%d min %02d s", int64(ms)/60000, int64(ms)/1000%60)
}

// thousands formats an integer with commas between groups of three digits.
func thousands(v any) string {
	s := fmt.Sprint(v)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// visibleRune replaces control characters, and characters that change the direction of text, with
// visible ones. It drops carriage returns.
func visibleRune(r rune) rune {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n', r == '\t':
		return r
	case r == '\r':
		return -1
	case r < ' ':
		return 0x2400 + r // the pictures of control characters
	case r == 0x7f:
		return 0x2421
	case r >= 0x80 && r < 0xa0, IsBidiControl(r):
		return 0xfffd
	}
	return r
}

// IsBidiControl reports whether a character changes the direction of the text around it, so that
// readers see the text in another order than it is stored in.
func IsBidiControl(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func toFloat(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return 0
}
