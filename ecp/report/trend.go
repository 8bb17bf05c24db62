package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Directions of a trend.
const (
	Improving = "improving"
	Degrading = "degrading"
	Stable    = "stable"
)

// Input is a report file for Trends.
type Input struct {
	Path string
	Data []byte
}

// Trend is the change of the pass rate of one manifest's checks, over reports in the order of their
// runs.
type Trend struct {
	Manifest  string  `json:"manifest"`
	Runs      []Run   `json:"runs"`
	Direction string  `json:"direction"`
	Slope     float64 `json:"slope"`            // of the pass rate, per run
	Reason    string  `json:"reason,omitempty"` // why the direction is not stable
	// Flaky lists the scenarios that passed in some of the runs and failed in others.
	Flaky []Flaky `json:"flaky"`
}

// Run is one report of a trend.
type Run struct {
	Path     string  `json:"path"`
	Name     string  `json:"name"`
	Passed   int     `json:"passed"`
	Total    int     `json:"total"`
	PassRate float64 `json:"pass_rate"`
}

// Flaky is a scenario that does not always pass.
type Flaky struct {
	Scenario string `json:"scenario"`
	Passed   int    `json:"passed"`
	Runs     int    `json:"runs"` // runs without an error in this scenario
}

// TrendOptions configure Trends.
type TrendOptions struct {
	Window int // number of latest runs to use; at least 1

	// Reference combines all reports into one trend, in the order of their paths, and counts a report
	// without checks as a pass rate of 0, as the reference does.
	Reference bool
}

type loadedReport struct {
	path   string
	report *Report
}

// Trends returns the trend of each manifest, and the reports that it could not use, with the reasons.
func Trends(inputs []Input, o TrendOptions) (trends []Trend, skipped []string) {
	groups := map[string][]loadedReport{}
	var order []string
	slices.SortFunc(inputs, func(a, b Input) int {
		if o.Reference {
			return strings.Compare(a.Path, b.Path)
		}
		return compareNatural(a.Path, b.Path)
	})
	for _, in := range inputs {
		r, err := Parse(in.Data)
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("%s: %v", in.Path, err))
			continue
		}
		if r.Total <= 0 && !o.Reference {
			skipped = append(skipped, in.Path+": it has no checks")
			continue
		}
		key := r.Manifest
		if o.Reference {
			key = ""
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], loadedReport{in.Path, r})
	}
	for _, key := range order {
		trends = append(trends, trendOf(groups[key], o))
	}
	return trends, skipped
}

func trendOf(list []loadedReport, o TrendOptions) Trend {
	timed := !slices.ContainsFunc(list, func(l loadedReport) bool { return l.report.StartedAt.IsZero() })
	if timed && !o.Reference {
		slices.SortStableFunc(list, func(a, b loadedReport) int { return a.report.StartedAt.Compare(b.report.StartedAt) })
	}
	list = list[max(0, len(list)-max(o.Window, 1)):]
	t := Trend{Manifest: list[0].report.Manifest, Runs: []Run{}, Flaky: flakyScenarios(list)}
	for _, l := range list {
		t.Runs = append(t.Runs, Run{l.path, l.report.Manifest, l.report.Passed, l.report.Total, l.report.passRate()})
	}
	if o.Reference {
		t.Slope = slope(t.Runs)
		t.Direction = referenceDirection(t.Slope)
		return t
	}
	t.setDirection()
	return t
}

// referenceDirection returns the direction that the reference derives from a slope.
func referenceDirection(slope float64) string {
	const least = 0.001
	switch {
	case slope > least:
		return Improving
	case slope < -least:
		return Degrading
	}
	return Stable
}

// slope returns the least-squares slope of the pass rates over the runs.
func slope(runs []Run) float64 {
	var sxy, sxx float64
	mid := float64(len(runs)-1) / 2
	for i, r := range runs {
		sxy += (float64(i) - mid) * r.PassRate
		sxx += (float64(i) - mid) * (float64(i) - mid)
	}
	if sxx == 0 {
		return 0
	}
	return sxy / sxx
}

func flakyScenarios(list []loadedReport) []Flaky {
	counts := map[string]*Flaky{}
	for _, l := range list {
		for i := range l.report.Scenarios {
			s := &l.report.Scenarios[i]
			if s.Status == Error { // neither passed nor failed
				continue
			}
			f := counts[s.Title()]
			if f == nil {
				f = &Flaky{Scenario: s.Title()}
				counts[s.Title()] = f
			}
			f.Runs++
			if s.Status == Passed {
				f.Passed++
			}
		}
	}
	out := []Flaky{}
	for _, f := range counts {
		if f.Passed > 0 && f.Passed < f.Runs {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b Flaky) int { return strings.Compare(a.Scenario, b.Scenario) })
	return out
}

// compareNatural compares strings, with numbers in them by value: run-8 before run-10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x != "" && y != "" {
			p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q)); c != 0 {
				return c
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}

// Write writes a trend in the reference's format.
func (t Trend) Write(w io.Writer, window int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s %-32s %7s %7s %8s\n", "Run", "Manifest", "Passed", "Total", "Rate")
	for _, r := range t.Runs {
		fmt.Fprintf(&b, "%-40s %-32s %7d %7d %7.1f%%\n", r.Path, r.Name, r.Passed, r.Total, 100*r.PassRate)
	}
	flag := "No"
	if t.Direction == Degrading {
		flag = "YES"
	}
	fmt.Fprintf(&b, "\nTrend Direction : %s\nSlope (per run) : %+.6f\nWindow          : %d run(s) analysed (max %d)\nRegression flag : %s\n", strings.ToUpper(t.Direction), t.Slope, len(t.Runs), window, flag)
	if t.Reason != "" {
		fmt.Fprintf(&b, "Reason          : %s\n", t.Reason)
	}
	for _, f := range t.Flaky {
		fmt.Fprintf(&b, "Flaky           : %s passed %d of %d\n", f.Scenario, f.Passed, f.Runs)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// TrendsJSON writes trends as JSON.
func TrendsJSON(w io.Writer, trends []Trend) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"trends": trends})
}
