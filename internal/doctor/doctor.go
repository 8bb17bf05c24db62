// Package doctor runs checks in parallel, each within a time limit, and reports their findings for
// people and for programs.
//
// A report lists sections and findings in the order of the checks, whatever their duration. Run
// returns when all checks have ended, so checks must respect their context. The package does not
// know the checks, and does not remove secrets: use Map for that.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Time limits of checks.
const (
	CheckTimeout        = 5 * time.Second
	ProgramStartTimeout = 15 * time.Second // for starting programs, which may have to be downloaded first
)

// Status is the severity of a finding.
type Status string

// Statuses.
const (
	OK      Status = "ok"      // checked and working
	Note    Status = "note"    // information only
	Warning Status = "warning" // working, but not as well as it could
	Problem Status = "problem" // something that is configured does not work
)

// Finding is one result of a check.
type Finding struct {
	Status  Status `json:"status"`
	Subject string `json:"subject"` // what it is about
	Text    string `json:"text"`
}

// Found returns a finding with a formatted text.
func Found(s Status, subject, format string, args ...any) Finding {
	return Finding{Status: s, Subject: subject, Text: fmt.Sprintf(format, args...)}
}

// Count formats a number with its noun.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Section is a group of findings.
type Section struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
}

// Report is the result of a check-up.
type Report struct {
	Healthy  bool      `json:"healthy"` // no finding is a problem
	Sections []Section `json:"sections"`
}

// Check is one check.
type Check struct {
	Section string // checks of one section must be adjacent
	Subject string // subject of the finding if the check takes too long
	Run     func(ctx context.Context) []Finding
	Limit   time.Duration // 0 means that of the run
}

// Run runs all checks in parallel. A check that exceeds its limit and returns nothing is reported as a
// problem.
func Run(ctx context.Context, limit time.Duration, checks []Check) Report {
	found := make([][]Finding, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		limit := cmp.Or(c.Limit, limit)
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		wg.Go(func() {
			found[i] = c.Run(limited)
			if found[i] == nil && limited.Err() != nil {
				found[i] = []Finding{{Problem, c.Subject, fmt.Sprintf("no answer within %s", limit)}}
			}
		})
	}
	wg.Wait()
	report := Report{Healthy: true}
	for i, c := range checks {
		if len(found[i]) == 0 {
			continue
		}
		if n := len(report.Sections); n == 0 || report.Sections[n-1].Name != c.Section {
			report.Sections = append(report.Sections, Section{Name: c.Section, Findings: []Finding{}})
		}
		last := &report.Sections[len(report.Sections)-1]
		last.Findings = append(last.Findings, found[i]...)
		for _, f := range found[i] {
			report.Healthy = report.Healthy && f.Status != Problem
		}
	}
	return report
}

// Map returns the report with change applied to all its texts.
func (r Report) Map(change func(string) string) Report {
	out := Report{Healthy: r.Healthy, Sections: []Section{}}
	for _, s := range r.Sections {
		mapped := Section{Name: s.Name, Findings: []Finding{}}
		for _, f := range s.Findings {
			mapped.Findings = append(mapped.Findings, Finding{f.Status, change(f.Subject), change(f.Text)})
		}
		out.Sections = append(out.Sections, mapped)
	}
	return out
}

// Markdown formats the report for a chat.
func (r Report) Markdown() string {
	var b strings.Builder
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "\n### %s\n\n", s.Name)
		for _, f := range s.Findings {
			mark := map[Status]string{OK: "✅ ", Warning: "⚠️ ", Problem: "❌ "}[f.Status]
			fmt.Fprintf(&b, "- %s**%s**: %s\n", mark, oneLine(f.Subject), oneLine(f.Text))
		}
	}
	return b.String()
}

// Write formats the report for a terminal.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	for i, s := range r.Sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s.Name + "\n")
		for _, f := range s.Findings {
			mark := map[Status]string{OK: "ok", Warning: "warning", Problem: "PROBLEM"}[f.Status]
			fmt.Fprintf(&b, "  %-8s %s: %s\n", mark, oneLine(f.Subject), oneLine(f.Text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// oneLine prevents text from servers from looking like findings, or from controlling a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
