package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp"
)

// Variant is the result of one variant of a matrix.
type Variant struct {
	Labels     map[string]string `json:"labels"`
	Counts     Counts            `json:"counts"`   // scenarios
	Passed     int               `json:"passed"`   // number of checks in all attempts that passed
	Total      int               `json:"total"`    // number of checks in all attempts
	Tokens     int64             `json:"tokens"`   // input and output, including cache reads and writes
	CostUSD    *float64          `json:"cost_usd"` // null if no agent reported it
	DurationMS int64             `json:"duration_ms"`
	Summary    Summary           `json:"summary"`
}

// Name returns the labels of the variant in one line.
func (v *Variant) Name() string {
	return (&Scenario{Variant: v.Labels}).VariantName()
}

// VariantName returns the labels of a scenario's variant in one line; empty without a matrix.
func (s *Scenario) VariantName() string { return strings.Join(s.Labels(), " ") }

func (v *Variant) add(s Sums) {
	switch s.Status {
	case Passed:
		v.Counts.Passed++
	case Failed:
		v.Counts.Failed++
	default:
		v.Counts.Error++
	}
	v.Passed += s.PassedChecks
	v.Total += s.Checks
	u := s.Usage
	v.Tokens = ecp.AddTokens(v.Tokens, u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
	v.DurationMS += s.DurationMS
	v.CostUSD = addCost(v.CostUSD, s.CostUSD)
}

// WriteVariants writes a line for each variant of a matrix, for human readers. printable escapes the
// names.
func (r *Report) WriteVariants(w io.Writer, printable func(string) string) error {
	width := 0
	for i := range r.Variants {
		width = max(width, len([]rune(r.Variants[i].Name())))
	}
	for i := range r.Variants {
		v := &r.Variants[i]
		cost := ""
		if v.CostUSD != nil {
			cost = fmt.Sprintf(", $%.4f", *v.CostUSD)
		}
		if _, err := fmt.Fprintf(w, "%-*s  %d of %d scenarios passed, %d of %d checks, %.1f s%s\n", width, printable(v.Name()),
			v.Counts.Passed, v.Counts.Passed+v.Counts.Failed+v.Counts.Error, v.Passed, v.Total, float64(v.DurationMS)/1000, cost); err != nil {
			return err
		}
	}
	return nil
}
