package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// grid returns the grid of a report: a row for each case, in the order of the report, and a column for
// each variant.
func (r *Report) grid() *Grid {
	g := &Grid{}
	columns, rows := indexes{}, indexes{}
	for i := range r.Scenarios {
		if name := r.Scenarios[i].VariantName(); columns.indexOf(name) == len(g.Columns) {
			g.Columns = append(g.Columns, name)
		}
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		at := rows.indexOf(s.ID)
		if at == len(g.Rows) {
			g.Rows = append(g.Rows, GridRow{Name: s.Name, Cells: make([]Cell, len(g.Columns))})
		}
		cell := s.Cell()
		cell.Href = "#" + s.anchor(i)
		g.Rows[at].Cells[columns[s.VariantName()]] = cell
	}
	for i := range g.Rows {
		g.Rows[i].computeTotals()
	}
	g.Total = len(g.Rows)
	return g
}

// computeTotals computes the fields of a row from its cells.
func (row *GridRow) computeTotals() {
	n, passed := 0, 0
	for _, c := range row.Cells {
		n += c.N
		passed += c.Passed
		row.Cost += c.Cost
		row.MS += c.MS
	}
	row.Rate = float64(passed) / float64(max(n, 1))
}

// keepWorst drops the rows that exceed the limit of a page, and keeps the worst ones. A shortened grid
// is sorted by pass rate.
func (g *Grid) keepWorst() {
	if len(g.Rows) > maxPageAttempts {
		slices.SortStableFunc(g.Rows, func(a, b GridRow) int { return cmp.Compare(a.Rate, b.Rate) })
		g.Rows = g.Rows[:maxPageAttempts]
	}
}

// Cell returns the cell of a scenario for a grid.
func (s *Scenario) Cell() Cell {
	sample := s.Sample(0)
	c := Cell{Ran: true, Status: s.Status, N: sample.N, Passed: sample.Passed, Why: s.Why(), Kind: s.FailureKind(), MS: s.DurationMS}
	if s.Repeat != nil {
		c.N, c.Passed, c.CI95 = s.Repeat.N, s.Repeat.Passed, &s.Repeat.CI95
	}
	if cost := s.cost(); cost != nil {
		c.Cost = *cost
	}
	return c
}

// CellsHTML renders the cells of a row. They are not in a template, because a page can have thousands
// of them, and html/template needs 20 µs for each.
func (row GridRow) CellsHTML() template.HTML {
	var b strings.Builder
	for i := range row.Cells {
		row.Cells[i].render(&b)
	}
	return template.HTML(b.String()) //nolint:gosec // render escapes all text
}

// render writes the cell as an element of a table. It does not check the scheme of Href, which this
// program made.
func (c *Cell) render(b *strings.Builder) {
	if !c.Ran {
		b.WriteString(`<td><span class="dim">not run</span></td>`)
		return
	}
	escape := template.HTMLEscapeString
	status, sign := escape(c.Status), symbol(c.Status)
	if c.Status == Error {
		sign = "!"
	}
	flakyAttribute, flaky := "", ""
	if c.Flaky() {
		flakyAttribute, flaky = " data-flaky", " flaky"
	}
	ratio, bar, cost := "", "", ""
	if c.N > 1 {
		ratio = fmt.Sprintf(" %d/%d", c.Passed, c.N)
		bar = `<span class="rate" aria-hidden="true"><i style="width:` + share(float64(c.Passed), float64(c.N)) + `%"></i></span>`
		if c.CI95 != nil {
			bar += `<span class="dim small">` + range95(*c.CI95) + `</span>`
		}
	}
	if c.Cost != 0 {
		cost = " · " + money(c.Cost)
	}
	for _, s := range []string{
		`<td data-status="`, status, `" data-kind="`, escape(c.Kind), `"`, flakyAttribute, `><a class="`, status, `" href="`, escape(c.Href), `">`,
		sign, " ", status, ratio, flaky, `</a> <span class="dim small">`, duration(c.MS), cost, `</span>`, bar,
	} {
		b.WriteString(s)
	}
	if c.Why != "" {
		why := escape(c.Why)
		b.WriteString(` <span class="reason" title="` + why + `">` + why + `</span>`)
	}
	b.WriteString(`</td>`)
}

// cost returns the cost of a scenario's attempts, or nil if the agent reported none.
func (s *Scenario) cost() *float64 {
	one := Report{}
	for _, a := range s.AllAttempts() {
		one.addSteps(a.Steps)
	}
	return one.CostUSD
}

// Why returns in one line why a scenario did not pass: its first error, or otherwise its first failed
// check. It is empty for a scenario that passed.
func (s *Scenario) Why() string {
	kind, text := s.failure()
	if kind == "" {
		return ""
	}
	return oneLine(kind + ": " + text)
}

// FailureKind returns the kind of a scenario's first error, or otherwise the type of its first failed
// check. It is empty for a scenario that passed.
func (s *Scenario) FailureKind() string {
	kind, _ := s.failure()
	return kind
}

func (s *Scenario) failure() (kind, text string) {
	if s.Status == Passed {
		return "", ""
	}
	if len(s.Errors) > 0 {
		return s.Errors[0].Kind, s.Errors[0].Message
	}
	for _, st := range s.Steps {
		for _, c := range st.Checks {
			if !c.Passed && c.Error == "" {
				return c.Type, c.Reasoning
			}
		}
	}
	return "", ""
}

// maxWhy limits the length of a reason in the grid, in characters.
const maxWhy = 160

func oneLine(text string) string {
	return shorten(strings.Join(strings.Fields(text), " "), maxWhy)
}
