package report

import (
	"fmt"
	"math"
)

// The pass rates of a trend are shares of checks. Their random variation depends on the number of
// checks: one of one is weak evidence, ten of ten is strong. Runs may vary more than that, for example
// if a model does not always give the same answers. A change counts only if it is large compared with
// the variation.

// The minimum size of a change, in standard errors. By chance alone, a change in one direction
// reaches significant with a probability of 5%. The limit for improvements, noticeable, is lower,
// because no decision depends on them.
const (
	significant = 1.6448536269514722
	noticeable  = 1
)

// setDirection sets the direction of a trend: it is not stable if the pass rate changed steadily over the
// runs, or if the last run differs from the runs before it.
func (t *Trend) setDirection() {
	change, slope := steadyChange(t.Runs)
	t.Slope, t.Direction = slope, Stable
	drop, before := lastChange(t.Runs)
	last := t.Runs[len(t.Runs)-1]
	switch sudden := fmt.Sprintf("the last run passed %d of %d checks, the runs before it %d of %d", last.Passed, last.Total, before.Passed, before.Total); {
	case drop <= -significant:
		t.Direction, t.Reason = Degrading, sudden
	case change <= -significant:
		t.Direction, t.Reason = Degrading, fmt.Sprintf("the pass rate falls by %.1f points a run", -100*slope)
	case drop >= noticeable:
		t.Direction, t.Reason = Improving, sudden
	case change >= noticeable:
		t.Direction, t.Reason = Improving, fmt.Sprintf("the pass rate rises by %.1f points a run", 100*slope)
	}
}

// steadyChange applies the Cochran-Armitage test for a linear trend of the pass rates. It returns the
// slope, and its distance from zero in standard errors.
func steadyChange(runs []Run) (z, slope float64) {
	all := sumRuns(runs)
	n, share := float64(all.Total), all.PassRate
	var middle, sxy, sxx, rest float64
	for i, r := range runs {
		middle += float64(i) * float64(r.Total) / n
	}
	for i, r := range runs {
		at := float64(i) - middle
		sxy += at * float64(r.Total) * (r.PassRate - share)
		sxx += at * at * float64(r.Total)
	}
	spread := share * (1 - share) // of one check
	if sxx == 0 || spread <= 0 {
		return 0, 0
	}
	slope = sxy / sxx
	for i, r := range runs {
		d := r.PassRate - share - slope*(float64(i)-middle)
		rest += d * d * float64(r.Total) / spread
	}
	noise := math.Sqrt(spread * sxx * overdispersion(rest, len(runs)-2))
	return shrink(sxy, 0.5) / noise, slope
}

// lastChange compares the last run with all runs before it. It returns the difference of the pass
// rates in standard errors, and the sum of the earlier runs.
func lastChange(runs []Run) (z float64, before Run) {
	if len(runs) < 2 {
		return 0, before
	}
	before = sumRuns(runs[:len(runs)-1])
	last, all := runs[len(runs)-1], sumRuns(runs)
	spread := all.PassRate * (1 - all.PassRate)
	if spread <= 0 {
		return 0, before
	}
	var rest float64
	if own := before.PassRate * (1 - before.PassRate); own > 0 {
		for _, r := range runs[:len(runs)-1] {
			d := r.PassRate - before.PassRate
			rest += d * d * float64(r.Total) / own
		}
	}
	inverse := 1/float64(last.Total) + 1/float64(before.Total)
	noise := math.Sqrt(spread * inverse * overdispersion(rest, len(runs)-2))
	return shrink(last.PassRate-before.PassRate, inverse/2) / noise, before
}

// overdispersion returns the overdispersion of the runs: Pearson's statistic divided by its degrees of
// freedom, at least 1.
func overdispersion(statistic float64, freedom int) float64 {
	if freedom < 1 {
		return 1
	}
	return max(statistic/float64(freedom), 1)
}

// shrink moves a difference toward zero by step: a continuity correction, because counts are integers
// and the normal distribution is continuous.
func shrink(difference, step float64) float64 {
	return math.Copysign(max(math.Abs(difference)-step, 0), difference)
}

// sumRuns returns the sum of runs.
func sumRuns(runs []Run) (sum Run) {
	for _, r := range runs {
		sum.Passed += min(max(r.Passed, 0), r.Total)
		sum.Total += r.Total
	}
	if sum.Total > 0 {
		sum.PassRate = float64(sum.Passed) / float64(sum.Total)
	}
	return sum
}
