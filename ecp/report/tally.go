package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/stats"
)

// Sums are the values of a result that a tally adds up.
type Sums struct {
	Sample
	DurationMS int64

	ExitReason   string // empty is ReasonOK
	Checks       int    // in all attempts, except those that could not be judged
	PassedChecks int
	Usage        Tokens
	CostUSD      *float64
	TookMS       []int64 // by each attempt that is not from the cache
	Cached       int     // attempts
}

// Sums returns the values of a scenario for a tally. place is its index in the report.
func (s *Scenario) Sums(place int) Sums {
	out := Sums{Sample: s.Sample(place), DurationMS: s.DurationMS, Cached: s.Cached}
	if s.ExitReason != ReasonOK {
		out.ExitReason = s.ExitReason
	}
	var all Report
	for _, a := range s.AllAttempts() {
		all.addSteps(a.Steps)
		if !a.Cached {
			out.TookMS = append(out.TookMS, a.DurationMS)
		}
	}
	out.Checks, out.PassedChecks, out.Usage, out.CostUSD = all.Total, all.Passed, all.Usage, all.CostUSD
	return out
}

// Tally sums up results one by one, so that they need not stay in memory. Its size depends on the
// number of scenarios and variants, not on the number of results.
type Tally struct {
	all        Variant
	usage      Tokens
	cached     int
	exitReason string
	cases      caseTally
	variants   map[string]*variantTally
	order      []*variantTally
}

type variantTally struct {
	Variant
	cases caseTally
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{exitReason: ReasonOK, variants: map[string]*variantTally{}}
}

// Add adds a result of a variant. name is that of the variant, see VariantName.
func (t *Tally) Add(name string, labels map[string]string, s Sums) {
	t.all.add(s)
	t.usage.InputTokens = ecp.AddTokens(t.usage.InputTokens, s.Usage.InputTokens)
	t.usage.OutputTokens = ecp.AddTokens(t.usage.OutputTokens, s.Usage.OutputTokens)
	t.usage.CacheReadTokens = ecp.AddTokens(t.usage.CacheReadTokens, s.Usage.CacheReadTokens)
	t.usage.CacheWriteTokens = ecp.AddTokens(t.usage.CacheWriteTokens, s.Usage.CacheWriteTokens)
	t.usage.ReasoningTokens = ecp.AddTokens(t.usage.ReasoningTokens, s.Usage.ReasoningTokens)
	t.cached += s.Cached
	if s.ExitReason != "" && t.exitReason == ReasonOK || s.ExitReason == ReasonDuration {
		t.exitReason = s.ExitReason
	}
	t.cases.add(s)
	if len(labels) == 0 {
		return
	}
	v := t.variants[name]
	if v == nil {
		v = &variantTally{Variant: Variant{Labels: labels}}
		t.variants[name] = v
		t.order = append(t.order, v)
	}
	v.add(s)
	v.cases.add(s)
}

// SetReport sets the counts, the sums, the status and the statistics of a report, and its variants in the
// order of their first results.
func (t *Tally) SetReport(r *Report) {
	t.setSums(r)
	t.setStatistics(r)
}

func (t *Tally) setSums(r *Report) {
	r.ExitReason, r.Passed, r.Total, r.Counts, r.Usage, r.CostUSD = t.exitReason, t.all.Passed, t.all.Total, t.all.Counts, t.usage, t.all.CostUSD
	r.setStatus()
}

func (t *Tally) setStatistics(r *Report) {
	sum := t.cases.summary()
	r.Summary, r.Variants = &sum, nil
	for _, v := range t.order {
		v.Summary = v.cases.summary()
		r.Variants = append(r.Variants, v.Variant)
	}
}

// Cached returns the number of attempts from the cache.
func (t *Tally) Cached() int { return t.cached }

// caseTally sums up the cases of a variant, or of a run.
type caseTally struct {
	sum       Summary
	groups    indexes
	clusters  []stats.Cluster
	durations map[int64]int   // attempts that were made, by their duration in milliseconds
	outcomes  map[outcome]int // cases
}

// outcome is the number of attempts of a case, and of those that passed.
type outcome struct{ n, passed int }

func (t *caseTally) add(s Sums) {
	if t.groups == nil {
		t.groups, t.durations, t.outcomes = indexes{}, map[int64]int{}, map[outcome]int{}
	}
	t.sum.Cases++
	t.sum.Attempts += s.N
	t.sum.Passed += s.Passed
	t.sum.Errors += s.Errors
	if s.Passed > 0 && s.Passed < s.N {
		t.sum.Flaky++
	}
	at := t.groups.indexOf(s.Group)
	if at == len(t.clusters) {
		t.clusters = append(t.clusters, stats.Cluster{})
	}
	t.clusters[at].Sum += float64(s.Passed)
	t.clusters[at].N += s.N
	t.outcomes[outcome{s.N, s.Passed}]++
	for _, ms := range s.TookMS {
		t.durations[ms]++
	}
}

// summary returns the summary of the cases.
func (t *caseTally) summary() Summary {
	out := t.sum
	out.P50MS, out.P95MS = stats.CountedPercentile(t.durations, 0.5), stats.CountedPercentile(t.durations, 0.95)
	if out.Attempts == 0 {
		return out
	}
	out.PassRate = float64(out.Passed) / float64(out.Attempts)
	if graded := out.Attempts - out.Errors; graded > 0 {
		out.GradedRate = float64(out.Passed) / float64(graded)
	}
	out.CI95, out.Note = t.passRateInterval()
	t.setPassK(&out)
	return out
}

// passRateInterval returns the interval of the pass rate, or why it is unknown.
func (t *caseTally) passRateInterval() (*[2]float64, string) {
	if t.sum.Cases == 1 {
		ci := stats.Wilson(t.sum.Passed, t.sum.Attempts)
		return &ci, ""
	}
	if len(t.clusters) < stats.MinClusters {
		return nil, fmt.Sprintf("no interval: there are %d scenarios, but at least %d are needed to estimate their spread", len(t.clusters), stats.MinClusters)
	}
	ci, _ := stats.ClusterInterval(t.clusters)
	if ci[0] == ci[1] { // all scenarios have the same result, so their spread is unknown
		ci = stats.Wilson(int(ci[0]*float64(len(t.clusters))), len(t.clusters))
	}
	return &ci, ""
}

// setPassK sets pass@k and pass^k, averaged over the cases with at least k attempts.
func (t *caseTally) setPassK(out *Summary) {
	byAttempts := func(a, b outcome) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.passed, b.passed)) }
	outcomes := slices.SortedFunc(maps.Keys(t.outcomes), byAttempts)
	most := outcomes[len(outcomes)-1].n
	if most < 2 {
		return
	}
	out.PassAtK, out.PassAllK = map[string]float64{}, map[string]float64{}
	for _, k := range stats.Powers(most) {
		var any, all stats.Cluster
		for _, o := range outcomes {
			if p, ok := stats.PassAtK(o.n, o.passed, k); ok {
				q, _ := stats.PassAllK(o.n, o.passed, k)
				n := t.outcomes[o]
				any.Sum, any.N = any.Sum+p*float64(n), any.N+n
				all.Sum, all.N = all.Sum+q*float64(n), all.N+n
			}
		}
		out.PassAtK[strconv.Itoa(k)], out.PassAllK[strconv.Itoa(k)] = stats.Mean([]stats.Cluster{any}), stats.Mean([]stats.Cluster{all})
	}
}
