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

// variants returns the results of the variants, in the order of their first scenarios. Without a
// matrix it returns nil.
func (r *Report) variants() (out []Variant) {
	variants, members := places{}, [][]*Scenario{}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if len(s.Variant) == 0 {
			continue
		}
		at := variants.of(s.VariantName())
		if at == len(out) {
			out, members = append(out, Variant{Labels: s.Variant}), append(members, nil)
		}
		out[at].add(s)
		members[at] = append(members[at], s)
	}
	for i := range out {
		out[i].Summary = summarize(members[i])
	}
	return out
}

// VariantName returns the labels of a scenario's variant in one line; empty without a matrix.
func (s *Scenario) VariantName() string { return strings.Join(s.Labels(), " ") }

func (v *Variant) add(s *Scenario) {
	one := Report{Scenarios: []Scenario{*s}}
	one.total()
	v.Counts.Passed += one.Counts.Passed
	v.Counts.Failed += one.Counts.Failed
	v.Counts.Error += one.Counts.Error
	v.Passed += one.Passed
	v.Total += one.Total
	u := one.Usage
	v.Tokens = ecp.AddTokens(v.Tokens, u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
	v.DurationMS += s.DurationMS
	v.CostUSD = addCost(v.CostUSD, one.CostUSD)
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
