package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Time      string      `xml:"time,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Class     string        `xml:"classname,attr"`
		File      string        `xml:"file,attr,omitempty"`
		Line      int           `xml:"line,attr,omitempty"`
		Time      string        `xml:"time,attr"`
		Failure   *junitProblem `xml:"failure"`
		Error     *junitProblem `xml:"error"`
		SystemOut string        `xml:"system-out,omitempty"`
		SystemErr string        `xml:"system-err,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a report as JUnit XML: one test case for each scenario.
func (r *Report) JUnit(w io.Writer) error {
	out := junitSuite{
		Name: xmlText(r.Name), Tests: len(r.Scenarios), Failures: r.Counts.Failed, Errors: r.Counts.Error,
		Time: seconds(r.DurationMS), Timestamp: r.StartedAt.UTC().Format(time.RFC3339),
	}
	for i := range r.Scenarios {
		out.Cases = append(out.Cases, r.Scenarios[i].junit(r))
	}
	all := junitSuites{Name: out.Name, Tests: out.Tests, Failures: out.Failures, Errors: out.Errors, Time: out.Time, Suite: out}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("encode JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *Scenario) junit(r *Report) junitCase {
	c := junitCase{Name: xmlText(s.Title()), Class: xmlText(r.Name), File: xmlText(r.Manifest), Line: s.Line, Time: seconds(s.DurationMS)}
	text := xmlText(strings.Join(s.Failures(), "\n"))
	switch s.Status {
	case Failed:
		first, _, _ := strings.Cut(text, "\n")
		c.Failure = &junitProblem{Message: first, Type: "check", Text: text}
	case Error:
		p := Problem{Kind: "error", Message: "error"}
		if len(s.Errors) > 0 {
			p = s.Errors[0]
		}
		c.Error = &junitProblem{Message: xmlText(p.Message), Type: p.Kind, Text: text}
	}
	for i, st := range s.Steps {
		c.SystemOut += xmlText(fmt.Sprintf("step %d\n> %s\n%s\n", i+1, st.Input, deref(st.Output)))
	}
	for _, e := range s.Errors {
		c.SystemErr += xmlText(e.Stderr)
	}
	return c
}

// Title returns a scenario's name with its variant.
func (s *Scenario) Title() string {
	title := s.Name
	for _, label := range s.Labels() {
		title += " [" + label + "]"
	}
	return title
}

// Failures returns the reasons why a scenario did not pass.
func (s *Scenario) Failures() (out []string) {
	for _, e := range s.Errors {
		out = append(out, e.Message)
	}
	for i, st := range s.Steps {
		for _, c := range st.Checks {
			if !c.Passed && c.Error == "" {
				out = append(out, fmt.Sprintf("step %d, %s on %s: %s", i+1, c.Type, c.Field, c.Reasoning))
			}
		}
	}
	if s.Repeat != nil {
		out = append(out, fmt.Sprintf("%d of %d attempts passed", s.Repeat.Passed, s.Repeat.N))
	}
	return out
}

func seconds(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }

// xmlText drops characters that XML does not allow, and those that change the direction of text.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if IsBidiControl(r) {
			return -1
		}
		if r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
