package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// grid is the scenarios by the variants of the matrix.
type grid struct {
	Columns []string // variants; one without a name if there is no matrix
	Rows    []gridRow
}

// gridRow is a scenario, with a cell for each variant.
type gridRow struct {
	Name  string
	Cells []gridCell
}

// gridCell is what came of a scenario with a variant.
type gridCell struct {
	Ran    bool
	Place  int    // of the scenario in the report
	Status string // Passed, Failed or Error
	Rate   string // how many attempts passed, if there were several
	Flaky  bool   // some attempts passed, and some did not
	Why    string // it did not pass
}

// grid puts scenarios that are the same in several variants into one row, in the order of the
// report.
func (r *Report) grid() grid {
	var g grid
	columns, rows := map[string]int{}, map[string]int{}
	for i := range r.Scenarios {
		label := strings.Join(r.Scenarios[i].Labels(), ", ")
		if _, ok := columns[label]; !ok {
			columns[label] = len(g.Columns)
			g.Columns = append(g.Columns, label)
		}
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		row, ok := rows[s.ID]
		if !ok {
			row = len(g.Rows)
			rows[s.ID] = row
			g.Rows = append(g.Rows, gridRow{Name: s.Name, Cells: make([]gridCell, len(g.Columns))})
		}
		g.Rows[row].Cells[columns[strings.Join(s.Labels(), ", ")]] = s.cell(i)
	}
	return g
}

func (s *Scenario) cell(place int) gridCell {
	c := gridCell{Ran: true, Place: place, Status: s.Status, Why: s.Why()}
	if s.Repeat != nil {
		c.Rate = fmt.Sprintf("%d/%d", s.Repeat.Passed, s.Repeat.N)
		c.Flaky = s.Repeat.Passed > 0 && s.Repeat.Passed < s.Repeat.N
	}
	return c
}

// Why says in one line why a scenario did not pass; empty if it did. What went wrong comes
// first, then the first check that failed.
func (s *Scenario) Why() string {
	if s.Status == Passed {
		return ""
	}
	if len(s.Errors) > 0 {
		return oneLine(s.Errors[0].Kind + ": " + s.Errors[0].Message)
	}
	for _, st := range s.Steps {
		for _, c := range st.Checks {
			if !c.Passed && c.Error == "" {
				return oneLine(c.Type + ": " + c.Reasoning)
			}
		}
	}
	return ""
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
