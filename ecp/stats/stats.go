// Package stats has the formulas of evaluations: the probability that an agent passes, its
// uncertainty, and whether two agents differ.
//
// All functions are pure: equal arguments give equal results, even for random draws, which take a
// seed. No function extrapolates beyond the observations: if there is too little data, its ok is
// false. The package knows neither reports nor runs.
package stats

import (
	"maps"
	"math"
	"slices"
)

// MinClusters is the minimum number of clusters for an interval: with fewer, their spread is hardly
// known.
const MinClusters = 5

// PassAtK is the unbiased estimate of the probability that at least one of k attempts passes, from
// n attempts of which c passed. ok is false if there were fewer than k attempts.
func PassAtK(n, c, k int) (p float64, ok bool) {
	if k < 1 || k > n {
		return 0, false
	}
	return 1 - allAmong(n-c, n, k), true
}

// PassAllK is the probability that each of k attempts passes (pass^k).
func PassAllK(n, c, k int) (p float64, ok bool) {
	if k < 1 || k > n {
		return 0, false
	}
	return allAmong(c, n, k), true
}

// allAmong is the share of the ways to choose k of n where all are among c.
func allAmong(c, n, k int) float64 {
	if k > c {
		return 0
	}
	p := 1.0
	for i := range k {
		p *= float64(c-i) / float64(n-i)
	}
	return p
}

// Powers lists 1, 2, 4, 8 and so on below n, and n: the k worth showing.
func Powers(n int) (out []int) {
	for k := 1; k < n; k *= 2 {
		out = append(out, k)
	}
	if n > 0 {
		out = append(out, n)
	}
	return out
}

// z95 is the 97.5 % quantile of the normal distribution.
const z95 = 1.959963984540054

// Wilson is the score interval of the share c of n, with a confidence of 95%.
func Wilson(c, n int) [2]float64 {
	if n == 0 {
		return [2]float64{0, 1}
	}
	p, m := float64(c)/float64(n), float64(n)
	mid := p + z95*z95/(2*m)
	half := z95 * math.Sqrt(p*(1-p)/m+z95*z95/(4*m*m))
	low, high := (mid-half)/(1+z95*z95/m), (mid+half)/(1+z95*z95/m)
	return [2]float64{math.Max(low, 0), math.Min(high, 1)}
}

// Cluster is a group of dependent values, such as the attempts of one scenario: their sum and their
// number.
type Cluster struct {
	Sum float64
	N   int
}

// Mean is the mean of all values in clusters.
func Mean(clusters []Cluster) float64 {
	sum, n := 0.0, 0
	for _, c := range clusters {
		sum += c.Sum
		n += c.N
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// ClusterInterval is the cluster-robust interval of a mean of values between 0 and 1, with a
// confidence of 95%. It uses the t distribution with one degree of freedom less than there are
// clusters. ok is false with fewer than MinClusters.
func ClusterInterval(clusters []Cluster) (interval [2]float64, ok bool) {
	g := len(clusters)
	if g < MinClusters {
		return interval, false
	}
	mean := Mean(clusters)
	half := StudentT(0.975, g-1) * standardError(clusters)
	return [2]float64{math.Max(mean-half, 0), math.Min(mean+half, 1)}, true
}

// standardError is the cluster-robust standard error of the mean of all values.
func standardError(clusters []Cluster) float64 {
	mean, n, squares := Mean(clusters), 0, 0.0
	for _, c := range clusters {
		d := c.Sum - float64(c.N)*mean
		squares += d * d
		n += c.N
	}
	g := float64(len(clusters))
	return math.Sqrt(g/(g-1)*squares) / float64(n)
}

// Percentile is the value at the nearest rank, p between 0 and 1. It sorts values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(max(int(math.Ceil(p*float64(len(values)))), 1), len(values))-1]
}

// CountedPercentile is the value at the nearest rank, p between 0 and 1, of values that occur as often
// as counts says.
func CountedPercentile(counts map[int64]int, p float64) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	rank := max(int(math.Ceil(p*float64(total))), 1)
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		if rank -= counts[value]; rank <= 0 {
			return float64(value)
		}
	}
	return 0
}
