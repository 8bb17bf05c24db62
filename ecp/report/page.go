package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page
var pageFiles embed.FS

// Page is the contents of one page: of a self-contained file, or of ecp view. Nil fields are not
// shown.
type Page struct {
	Title    string
	Live     bool    // a server handles its controls
	Crumbs   []Link  // the pages above it
	Run      *Report // totals, statistics and comparisons; its scenarios are not shown
	Failures []Failure
	Query    Query
	Grid     *Grid
	Omitted  string // what is missing from a page that would be too long
	Detail   *Detail
	Pair     *PairPage
	Pairs    []*PairPage // of Run's comparisons, whose cases are linked
	Runs     []RunLink

	details []template.HTML // of a self-contained file
}

// Link leads to another page.
type Link struct{ Text, Href string }

// RunLink leads to a run.
type RunLink struct {
	Href   string
	Report *Report
}

// Failure counts one kind of failure.
type Failure struct {
	Kind  string
	Count int
}

// Query selects and sorts the rows of a grid.
type Query struct {
	Text   string // part of the name
	Status string // Passed, Failed, Error or StatusFlaky; empty is all
	Kind   string // of failure
	Sort   string // SortName and so on; empty is the run's own order
}

// StatusFlaky selects cases of which only some attempts passed.
const StatusFlaky = "flaky"

// Orders of a grid.
const (
	SortName = "name"
	SortRate = "rate" // worst first
	SortCost = "cost" // most first
	SortTime = "time" // longest first
)

// Grid shows cases by variants.
type Grid struct {
	Columns []string // variants; a single empty one if there is no matrix
	Rows    []GridRow
	Total   int    // rows, of all pages
	Next    string // link to the next page
}

// GridRow is a case, with a cell for each variant.
type GridRow struct {
	Name  string
	Rate  float64 // of attempts that passed
	Cost  float64
	MS    int64
	Cells []Cell
}

// Cell is the result of a case with a variant.
type Cell struct {
	Ran    bool
	Href   string
	Status string // Passed, Failed or Error
	N      int    // attempts
	Passed int    // attempts
	CI95   *[2]float64
	Why    string // why it did not pass
	Kind   string // of failure
	Cost   float64
	MS     int64
}

// Flaky reports whether only some attempts passed.
func (c Cell) Flaky() bool { return c.Passed > 0 && c.Passed < c.N }

// Detail is a case with a variant, and some of its attempts.
type Detail struct {
	*Scenario
	Anchor     string
	Reason     string // why it did not pass, in one line
	Open       bool
	Shown      []NumberedAttempt
	Total      int // attempts
	More       *Link
	Prev, Next *Link
}

// NumberedAttempt is an attempt with its number, from 1.
type NumberedAttempt struct {
	Number int
	Attempt
}

// PairPage is a comparison with links to the cases that changed.
type PairPage struct {
	Pair
	HrefA, HrefB func(Change) string // empty if there is no page to link to
	Sides        []Link              // the choices for A and B
	KeyA, KeyB   string
}

// Pages renders pages.
type Pages struct{ t *template.Template }

// NewPages returns a renderer of pages.
func NewPages() (*Pages, error) {
	t, err := template.New("").Funcs(pageFuncs).ParseFS(pageFiles, "page/*")
	if err != nil {
		return nil, fmt.Errorf("the pages of reports: %w", err)
	}
	return &Pages{t}, nil
}

// Write writes a self-contained page: it needs no other file and, unless it is live, no server. An
// agent's output is always shown as text. Characters that are invisible, or change how others look,
// are made visible.
func (p *Pages) Write(w io.Writer, page *Page) error {
	var out bytes.Buffer
	if err := p.t.ExecuteTemplate(&out, "page.html", page); err != nil {
		return fmt.Errorf("the pages of reports: %w", err)
	}
	_, err := w.Write(bytes.Map(seen, out.Bytes()))
	return err
}

// LinkPairs adds the comparisons of a page's run. href returns the link to a result by its place in
// the report, or "" if the page does not have the result.
func (p *Page) LinkPairs(href func(place int) string) {
	to := func(place func(Change) int) func(Change) string {
		return func(c Change) string { return href(place(c)) }
	}
	a, b := to(func(c Change) int { return c.PlaceA }), to(func(c Change) int { return c.PlaceB })
	for _, pair := range p.Run.Comparisons {
		p.Pairs = append(p.Pairs, &PairPage{Pair: pair, HrefA: a, HrefB: b})
	}
	if p.Run.Baseline == nil {
		return
	}
	for _, pair := range p.Run.Baseline.Pairs {
		p.Pairs = append(p.Pairs, &PairPage{Pair: pair, HrefA: func(Change) string { return "" }, HrefB: b})
	}
}

// Details are the parts of a self-contained page.
func (p *Page) Details() []template.HTML { return p.details }

// Limits of a self-contained page. Above them, it only has the grid and the failures.
const (
	maxPageAttempts = 2000
	maxPageFailures = 500
	maxPageBytes    = 16 << 20
	maxOpen         = 5 // failures that are initially unfolded
)

// HTML writes a report as one self-contained page.
func (r *Report) HTML(w io.Writer) error {
	pages, err := NewPages()
	if err != nil {
		return err
	}
	page := &Page{Title: r.Name, Run: r, Failures: Failures(r.Scenarios), Grid: r.grid()}
	attempts := 0
	var all, failed []int
	for i := range r.Scenarios {
		attempts += len(r.Scenarios[i].AllAttempts())
		all = append(all, i)
		if r.Scenarios[i].Status != Passed {
			failed = append(failed, i)
		}
	}
	whole := attempts <= maxPageAttempts
	if whole {
		whole, err = pages.details(page, r, all, failed)
	}
	if err == nil && !whole {
		_, err = pages.details(page, r, failed[:min(len(failed), maxPageFailures)], failed)
		page.Grid.shorten()
		page.Omitted = fmt.Sprintf("This page has %d of %d results, of those that did not pass. A run file has all: ecp run --run-file FILE, then ecp view FILE.", len(page.details), len(r.Scenarios))
	}
	if err != nil {
		return err
	}
	page.LinkPairs(func(place int) string {
		if !whole {
			return ""
		}
		return "#" + r.Scenarios[place].anchor(place)
	})
	return pages.Write(w, page)
}

// details renders scenarios into a page, and reports whether all fitted.
func (p *Pages) details(page *Page, r *Report, which, failed []int) (whole bool, err error) {
	page.details = nil
	size := 0
	for _, i := range which {
		d := r.Scenarios[i].detail(i)
		d.Open = d.Status != Passed && len(failed) <= maxOpen
		var out bytes.Buffer
		if err := p.t.ExecuteTemplate(&out, "folded", d); err != nil {
			return false, fmt.Errorf("the pages of reports: %w", err)
		}
		if size += out.Len(); size > maxPageBytes {
			return false, nil
		}
		page.details = append(page.details, template.HTML(out.String())) //nolint:gosec // it comes from a template
	}
	return true, nil
}

func (s *Scenario) detail(place int) *Detail {
	d := &Detail{Scenario: s, Anchor: s.anchor(place), Reason: s.Why()}
	for i, a := range s.AllAttempts() {
		d.Shown = append(d.Shown, NumberedAttempt{i + 1, a})
	}
	d.Total = len(d.Shown)
	return d
}

// anchor names a scenario in a page; it is the same in each report of the run's cases.
func (s *Scenario) anchor(place int) string {
	if s.VariantKey == "" { // a report of another program, or an older one
		return fmt.Sprintf("s%d", place)
	}
	return "s-" + s.ID + "-" + s.VariantKey
}

// Failures counts the failures by kind, the most frequent first.
func Failures(scenarios []Scenario) []Failure {
	counts := map[string]int{}
	for i := range scenarios {
		if kind := scenarios[i].FailureKind(); kind != "" {
			counts[kind]++
		}
	}
	return SortedFailures(counts)
}

// SortedFailures puts the most frequent first.
func SortedFailures(counts map[string]int) (out []Failure) {
	for kind, n := range counts {
		out = append(out, Failure{kind, n})
	}
	slices.SortFunc(out, func(a, b Failure) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return out
}

// Statuses lists the values of Query.Status.
func (Query) Statuses() []string { return []string{Passed, Failed, Error, StatusFlaky} }

// Sorts lists the values of Query.Sort.
func (Query) Sorts() []Link {
	return []Link{{"name", SortName}, {"pass rate, worst first", SortRate}, {"cost", SortCost}, {"time", SortTime}}
}
