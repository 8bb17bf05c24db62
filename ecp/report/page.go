package report

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

//go:embed page
var pageFiles embed.FS

// Page is the data of a page: a self-contained file, or a page of ecp view. Nil fields are not shown.
type Page struct {
	Title    string
	Live     bool    // served by ecp view, which handles the controls
	Crumbs   []Link  // links to the pages above this one
	Run      *Report // totals, statistics and comparisons; its scenarios are not shown
	Failures []Failure
	Query    Query
	Grid     *Grid
	Omitted  string // describes results that were left out because the page would be too long
	Detail   *Detail
	Pair     *PairPage
	Pairs    []*PairPage // the comparisons of Run
	Runs     []RunLink

	details []template.HTML // rendered details of a self-contained page
}

// Link is a link to another page.
type Link struct{ Text, Href string }

// RunLink is a link to the page of a run.
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
	Status string // Passed, Failed, Error or StatusFlaky; empty selects all
	Kind   string // of failure; empty selects all
	Sort   string // SortName and so on; empty is the order of the run
}

// StatusFlaky selects cases where only some attempts passed.
const StatusFlaky = "flaky"

// Orders of a grid.
const (
	SortName = "name"
	SortRate = "rate" // worst first
	SortCost = "cost" // most first
	SortTime = "time" // longest first
)

// Grid is a table with a row for each case and a column for each variant.
type Grid struct {
	Columns []string // names of variants; one empty name if there is no matrix
	Rows    []GridRow
	Total   int    // number of rows on all pages
	Next    string // link to the next page
}

// GridRow is a case, with a cell for each variant.
type GridRow struct {
	Name  string
	Rate  float64 // share of attempts that passed
	Cost  float64
	MS    int64
	Cells []Cell
}

// Cell is the result of a case with a variant.
type Cell struct {
	Ran    bool
	Href   string
	Status string // Passed, Failed or Error
	N      int    // number of attempts
	Passed int    // number of attempts that passed
	CI95   *[2]float64
	Why    string // why it did not pass, in one line; empty if it passed
	Kind   string // kind of failure; empty if it passed
	Cost   float64
	MS     int64
}

// Flaky reports whether only some attempts passed.
func (c Cell) Flaky() bool { return c.Passed > 0 && c.Passed < c.N }

// Detail is the result of a case with a variant, and some of its attempts.
type Detail struct {
	*Scenario
	Anchor     string
	Reason     string // why it did not pass, in one line
	Open       bool   // initially unfolded
	Shown      []NumberedAttempt
	Total      int // number of attempts
	More       *Link
	Prev, Next *Link
}

// NumberedAttempt is an attempt with its number, from 1.
type NumberedAttempt struct {
	Number int
	Attempt
}

// PairPage is a comparison with links to the changed cases.
type PairPage struct {
	Pair
	HrefA, HrefB func(Change) string // returns the link to A's or B's result, or ""
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

// Write renders a page, which needs no other file and, unless it is live, no server. An agent's output
// is always shown as text, with control characters and direction changes made visible.
func (p *Pages) Write(w io.Writer, page *Page) error {
	var out bytes.Buffer
	if err := p.t.ExecuteTemplate(&out, "page.html", page); err != nil {
		return fmt.Errorf("the pages of reports: %w", err)
	}
	text := out.Bytes()
	changed := func(r rune) bool { return r == utf8.RuneError || visibleRune(r) != r }
	if i := bytes.IndexFunc(text, changed); i >= 0 { // Map is slower
		text = append(text[:i:i], bytes.Map(visibleRune, text[i:])...)
	}
	_, err := w.Write(text)
	return err
}

// LinkPairs sets Pairs to the comparisons of Run. href returns the link to a result by its index in
// the report, or "" if there is no page for it.
func (p *Page) LinkPairs(href func(index int) string) {
	to := func(index func(Change) int) func(Change) string {
		return func(c Change) string { return href(index(c)) }
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

// Details returns the rendered details of the results on a self-contained page.
func (p *Page) Details() []template.HTML { return p.details }

// Limits of a self-contained page. A page that exceeds maxPageAttempts or maxPageBytes has the details
// of failures only.
const (
	maxPageAttempts = 2000
	maxPageFailures = 500
	maxPageBytes    = 16 << 20
	maxOpen         = 5 // failures are initially unfolded if there are at most this many
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
		page.Grid.keepWorst()
		page.Omitted = fmt.Sprintf("This page has details of %d of %d results: only of results that did not pass. A run file has all of them: ecp run --run-file FILE, then ecp view FILE.", len(page.details), len(r.Scenarios))
	}
	if err != nil {
		return err
	}
	page.LinkPairs(func(index int) string {
		if !whole {
			return ""
		}
		return "#" + r.Scenarios[index].anchor(index)
	})
	return pages.Write(w, page)
}

// details renders the details of scenarios into a page, and reports whether all of them fit.
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

func (s *Scenario) detail(index int) *Detail {
	d := &Detail{Scenario: s, Anchor: s.anchor(index), Reason: s.Why()}
	for i, a := range s.AllAttempts() {
		d.Shown = append(d.Shown, NumberedAttempt{i + 1, a})
	}
	d.Total = len(d.Shown)
	return d
}

// anchor returns the id of a scenario in a page, which is the same in all reports of the case. index
// is used for reports without variant keys.
func (s *Scenario) anchor(index int) string {
	if s.VariantKey == "" { // from the reference, or an older version
		return fmt.Sprintf("s%d", index)
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

// SortedFailures returns the counts by kind, the most frequent first.
func SortedFailures(counts map[string]int) (out []Failure) {
	for kind, n := range counts {
		out = append(out, Failure{kind, n})
	}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Kind, b.Kind))
	})
	return out
}

// Statuses returns the values of Query.Status.
func (Query) Statuses() []string { return []string{Passed, Failed, Error, StatusFlaky} }

// Sorts returns the values of Query.Sort, with their descriptions.
func (Query) Sorts() []Link {
	return []Link{{"name", SortName}, {"pass rate, worst first", SortRate}, {"cost", SortCost}, {"time", SortTime}}
}
