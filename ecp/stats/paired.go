package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// McNemar is the exact two-sided test of pairs: b passed only with the first agent, c only with the
// second. It returns the probability of a difference this large by chance.
func McNemar(b, c int) float64 {
	n := b + c
	if n == 0 {
		return 1
	}
	// The terms are summed relative to the largest one, to avoid underflow.
	k := min(b, c)
	sum, term := 1.0, 1.0 // of C(n,k), C(n,k-1), ...
	for i := k; i > 0; i-- {
		term *= float64(i) / float64(n-i+1)
		sum += term
	}
	return math.Min(1, 2*math.Exp(logChoose(n, k)-float64(n)*math.Ln2)*sum)
}

func logChoose(n, k int) float64 {
	return logGamma(float64(n+1)) - logGamma(float64(k+1)) - logGamma(float64(n-k+1))
}

func logGamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// Resampling of a paired comparison. With very many clusters, means are normally distributed, and
// resampling would take long to give the same result.
const (
	resamples    = 10_000
	maxResampled = 5_000 // clusters
)

// Bootstrap is the percentile interval of a mean of differences, with a confidence of 95%, by
// resampling clusters. p is the probability of a mean this far from 0 if there is no difference. ok
// is false with fewer than MinClusters. Above 5,000 clusters, both come from the normal
// distribution.
func Bootstrap(clusters []Cluster, seed [2]uint64) (interval [2]float64, p float64, ok bool) {
	g := len(clusters)
	if g < MinClusters {
		return interval, 1, false
	}
	if g > maxResampled {
		interval, p = normal(clusters)
		return interval, p, true
	}
	clusters = slices.SortedFunc(slices.Values(clusters), func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Sum, b.Sum), cmp.Compare(a.N, b.N))
	})
	random := rand.New(rand.NewPCG(seed[0], seed[1]))
	means := make([]float64, resamples)
	var below, above int
	for i := range means {
		var drawn Cluster
		for range g {
			c := clusters[random.IntN(g)]
			drawn.Sum += c.Sum
			drawn.N += c.N
		}
		means[i] = drawn.Sum / float64(drawn.N)
		if means[i] <= 0 {
			below++
		}
		if means[i] >= 0 {
			above++
		}
	}
	p = math.Min(1, 2*float64(min(below, above)+1)/(resamples+1))
	return [2]float64{Percentile(means, 0.025), Percentile(means, 0.975)}, p, true
}

// normal is the interval of a mean, and the probability of a mean this far from 0.
func normal(clusters []Cluster) (interval [2]float64, p float64) {
	mean, se := Mean(clusters), standardError(clusters)
	if se == 0 {
		if mean == 0 {
			return interval, 1
		}
		return [2]float64{mean, mean}, 0
	}
	return [2]float64{mean - z95*se, mean + z95*se}, math.Erfc(math.Abs(mean) / se / math.Sqrt2)
}

// Holm corrects the probabilities of several comparisons with one baseline, so that the probability
// of any false positive is the same as for one comparison.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out, least := make([]float64, len(p)), 0.0
	for rank, i := range order {
		least = math.Max(least, math.Min(1, p[i]*float64(len(p)-rank)))
		out[i] = least
	}
	return out
}
