package report

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// grid puts the same scenario of several variants into one row, in the order of the report.
func (r *Report) grid() *Grid {
	g := &Grid{}
	columns, rows := map[string]int{}, map[string]int{}
	for i := range r.Scenarios {
		name := r.Scenarios[i].VariantName()
		if _, ok := columns[name]; !ok {
			columns[name] = len(g.Columns)
			g.Columns = append(g.Columns, name)
		}
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		at, ok := rows[s.ID]
		if !ok {
			at = len(g.Rows)
			rows[s.ID] = at
			g.Rows = append(g.Rows, GridRow{Name: s.Name, Cells: make([]Cell, len(g.Columns))})
		}
		cell := s.Cell()
		cell.Href = "#" + s.anchor(i)
		g.Rows[at].Cells[columns[s.VariantName()]] = cell
	}
	for i := range g.Rows {
		g.Rows[i].sum()
	}
	g.Total = len(g.Rows)
	return g
}

// sum computes the fields of a row from its cells.
func (row *GridRow) sum() {
	n, passed := 0, 0
	for _, c := range row.Cells {
		n += c.N
		passed += c.Passed
		row.Cost += c.Cost
		row.MS += c.MS
	}
	row.Rate = float64(passed) / float64(max(n, 1))
}

// shorten keeps the rows that fit on a page, the worst first.
func (g *Grid) shorten() {
	if len(g.Rows) > maxPageAttempts {
		slices.SortStableFunc(g.Rows, func(a, b GridRow) int { return cmp.Compare(a.Rate, b.Rate) })
		g.Rows = g.Rows[:maxPageAttempts]
	}
}

// Cell is the cell of a scenario in a grid.
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

// cost is the cost of a scenario's attempts; nil if the agent did not report it.
func (s *Scenario) cost() *float64 {
	one := Report{}
	for _, a := range s.AllAttempts() {
		one.sumSteps(a.Steps)
	}
	return one.CostUSD
}

// Why explains in one line why a scenario did not pass; empty if it did. Errors come first, then
// the first failed check.
func (s *Scenario) Why() string {
	kind, text := s.failure()
	if kind == "" {
		return ""
	}
	return oneLine(kind + ": " + text)
}

// FailureKind groups scenarios that did not pass: by the kind of the error, or by the failed
// grader. It is empty for those that passed.
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

// maxWhy bounds a reason in the grid, in characters.
const maxWhy = 160

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxWhy {
		text = string([]rune(text)[:maxWhy]) + "…"
	}
	return text
}
