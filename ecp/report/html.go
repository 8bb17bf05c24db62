package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp"
)

//go:embed report.html
var page string

// HTML writes a report as one page that needs nothing else: no network, no other file. All
// that an agent said is text in it, and characters that would change how others look, or can
// not be seen, are shown as what they are.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"grid":  (*Report).grid,
		"text":  func(s *string) string { return deref(s) },
		"json":  readable,
		"lines": func(s string) []string { return strings.SplitAfter(s, "\n") },
		"lineClass": func(line string) string {
			switch {
			case strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "@@ "):
				return "head"
			case strings.HasPrefix(line, "+"):
				return "added"
			case strings.HasPrefix(line, "-"):
				return "removed"
			}
			return ""
		},
		"trace":   traceOf,
		"ms":      duration,
		"money":   func(f *float64) string { return fmt.Sprintf("$%.4f", *f) },
		"thous":   thousands,
		"count":   func(u ecp.Usage, key string) string { return thousands(u.Count(key)) },
		"percent": func(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) },
		"inc":     func(i int) int { return i + 1 },
		"share": func(part, whole float64) string {
			if whole <= 0 {
				return "0"
			}
			return fmt.Sprintf("%.1f", 100*part/whole)
		},
		"longest": func(steps []Step) (ms float64) {
			for _, s := range steps {
				ms = max(ms, s.DurationMS)
			}
			return ms
		},
		"failures": func(checks []Check) (n int) {
			for _, c := range checks {
				if !c.Passed && c.Error == "" {
					n++
				}
			}
			return n
		},
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("the page of reports: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, r); err != nil {
		return fmt.Errorf("the page of reports: %w", err)
	}
	_, err = w.Write(bytes.Map(seen, out.Bytes()))
	return err
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// duration shows milliseconds as people say them.
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

// thousands separates the digits of a number.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// seen has characters that are not seen, or that turn others around, shown by a sign.
func seen(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r == '\r':
		return -1
	case r < ' ':
		return 0x2400 + r // the pictures of control characters
	case r == 0x7f:
		return 0x2421
	case r >= 0x80 && r < 0xa0, Turns(r):
		return 0xfffd
	}
	return r
}

// Turns says whether a character changes the direction of the text around it, so that what
// is read is not what is there.
func Turns(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
