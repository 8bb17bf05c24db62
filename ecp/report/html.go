package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html
var page string

// HTML writes a report as one page that needs nothing else: no network, no other file. All
// that an agent said is text in it.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"text": func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		},
		"json": func(v any) string {
			out, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				return err.Error()
			}
			return string(out)
		},
		"secs":    func(ms int64) string { return fmt.Sprintf("%.2f s", float64(ms)/1000) },
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
		"low": strings.ToLower,
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("the page of reports: %w", err)
	}
	return t.Execute(w, r)
}
