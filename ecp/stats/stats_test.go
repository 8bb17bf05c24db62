package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp/stats"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %.9f, want %.9f", what, got, want)
	}
}

// Binomial coefficients by hand: C(7,2)/C(10,2) = 21/45, C(3,2)/C(10,2) = 3/45.
func TestPassAtK(t *testing.T) {
	for _, c := range []struct {
		n, c, k  int
		any, all float64
	}{
		{10, 3, 1, 0.3, 0.3},
		{10, 3, 2, 1 - 21.0/45, 3.0 / 45},
		{10, 3, 8, 1, 0},
		{5, 5, 3, 1, 1},
		{5, 0, 5, 0, 0},
		{200, 13, 100, 1 - choose(187, 100)/choose(200, 100), 0},
		{4, 2, 2, 1 - 1.0/6, 1.0 / 6},
	} {
		any, ok := stats.PassAtK(c.n, c.c, c.k)
		all, okAll := stats.PassAllK(c.n, c.c, c.k)
		if !ok || !okAll {
			t.Errorf("%+v: not known", c)
		}
		near(t, "pass@k", any, c.any, 1e-12)
		near(t, "pass^k", all, c.all, 1e-12)
	}
	if _, ok := stats.PassAtK(3, 3, 4); ok {
		t.Error("pass@4 is made of three attempts")
	}
	if _, ok := stats.PassAllK(3, 3, 0); ok {
		t.Error("pass^0 has a value")
	}
	if got := stats.Powers(5); !slices.Equal(got, []int{1, 2, 4, 5}) {
		t.Error(got)
	}
}

func choose(n, k int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(n-i) / float64(k-i)
	}
	return p
}

// Newcombe, Two-sided confidence intervals for the single proportion (1998), table I, method 3.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		c, n      int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		got := stats.Wilson(c.c, c.n)
		near(t, "low", got[0], c.low, 5e-5)
		near(t, "high", got[1], c.high, 5e-5)
	}
	if got := stats.Wilson(0, 0); got != [2]float64{0, 1} {
		t.Error(got)
	}
}

// The usual table of t(0.975).
func TestStudentT(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706205, 2: 4.302653, 4: 2.776445, 10: 2.228139, 30: 2.042272, 120: 1.979930, 1000: 1.962339, 1_000_000: 1.959966} {
		near(t, "t", stats.StudentT(0.975, freedom), want, 1e-6)
	}
	near(t, "t of one half", stats.StudentT(0.9, 3), 1.637744, 1e-6)
}

// Five clusters of unequal sizes by hand: mean 9/15; the deviations are 1.2, -0.2, -0.6, 0.2 and
// -0.6, their squares 1.44+0.04+0.36+0.04+0.36 = 2.24; SE² = 5/4 · 2.24 / 225.
func TestClusterInterval(t *testing.T) {
	clusters := []stats.Cluster{{3, 3}, {1, 2}, {0, 1}, {2, 3}, {3, 6}}
	got, ok := stats.ClusterInterval(clusters)
	if !ok {
		t.Fatal("no interval")
	}
	half := 2.7764451051977987 * math.Sqrt(1.25*2.24/225)
	near(t, "low", got[0], 0.6-half, 1e-9)
	near(t, "high", got[1], 0.6+half, 1e-9)
	if _, ok := stats.ClusterInterval(clusters[:4]); ok {
		t.Error("four clusters have an interval")
	}
	if got, _ := stats.ClusterInterval([]stats.Cluster{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}); got != [2]float64{1, 1} {
		t.Error(got)
	}
}

// The exact probabilities are sums of binomial coefficients by powers of two.
func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		b, c int
		p    float64
	}{
		{0, 0, 1},
		{1, 0, 1},
		{0, 5, 2.0 / 32},
		{1, 9, 2 * 11.0 / 1024},
		{9, 1, 2 * 11.0 / 1024},
		{5, 5, 1},
		{3, 12, 2 * (1 + 15 + 105 + 455) / 32768.0},
		{0, 3000, 0},
	} {
		near(t, "p", stats.McNemar(c.b, c.c), c.p, 1e-12)
	}
}

func TestBootstrap(t *testing.T) {
	var clusters []stats.Cluster
	for range 6 {
		clusters = append(clusters, stats.Cluster{Sum: 1, N: 1})
	}
	for range 2 {
		clusters = append(clusters, stats.Cluster{Sum: -1, N: 1})
	}
	for range 112 {
		clusters = append(clusters, stats.Cluster{N: 1})
	}
	got, p, ok := stats.Bootstrap(clusters, [2]uint64{1, 2})
	if !ok {
		t.Fatal("no interval")
	}
	// The normal interval of 4/120 with this spread is 0.0333 ± 0.0455.
	near(t, "low", got[0], -0.0122, 0.009)
	near(t, "high", got[1], 0.0788, 0.009)
	near(t, "p", p, 0.15, 0.1)
	slices.Reverse(clusters)
	again, _, _ := stats.Bootstrap(clusters, [2]uint64{1, 2})
	if again != got {
		t.Errorf("%v, then %v", got, again)
	}
	if _, _, ok := stats.Bootstrap(clusters[:4], [2]uint64{1, 2}); ok {
		t.Error("four clusters have an interval")
	}
}

// With many clusters, the normal interval is used; the resampled one is close to it.
func TestBootstrapOfMany(t *testing.T) {
	var clusters []stats.Cluster
	for i := range 5_000 {
		clusters = append(clusters, stats.Cluster{Sum: []float64{1, -1, 0, 0, 0.5}[i%5], N: 1})
	}
	few, p, _ := stats.Bootstrap(clusters, [2]uint64{1, 2})
	many, q, ok := stats.Bootstrap(append(clusters, stats.Cluster{N: 1}), [2]uint64{1, 2})
	// Mean 0.1, variance 0.45 - 0.01 = 0.44: 0.1 ± 1.96 · sqrt(0.44/5000).
	near(t, "low", many[0], 0.0816, 1e-4)
	near(t, "high", many[1], 0.1184, 1e-4)
	near(t, "resampled low", few[0], 0.0816, 1e-3)
	near(t, "resampled high", few[1], 0.1184, 1e-3)
	if !ok || p > 0.001 || q > 1e-20 {
		t.Errorf("p %v, %v", p, q)
	}
	if got, p, _ := stats.Bootstrap(slices.Repeat([]stats.Cluster{{N: 1}}, 6_000), [2]uint64{}); got != [2]float64{} || p != 1 {
		t.Errorf("%v, %v", got, p)
	}
}

func TestHolm(t *testing.T) {
	got := stats.Holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		near(t, "p", got[i], want, 1e-12)
	}
	if got := stats.Holm([]float64{0.7, 0.8}); got[0] != 1 || got[1] != 1 {
		t.Error(got)
	}
}

func TestPercentile(t *testing.T) {
	var values []float64
	for i := 100; i > 0; i-- {
		values = append(values, float64(i))
	}
	near(t, "p50", stats.Percentile(values, 0.5), 50, 0)
	near(t, "p95", stats.Percentile(values, 0.95), 95, 0)
	near(t, "p95 of one", stats.Percentile([]float64{7}, 0.95), 7, 0)
	near(t, "p95 of nothing", stats.Percentile(nil, 0.95), 0, 0)
	counts := map[int64]int{}
	for _, v := range values {
		counts[int64(v)]++
	}
	near(t, "p50 of counts", stats.CountedPercentile(counts, 0.5), 50, 0)
	near(t, "p95 of counts", stats.CountedPercentile(counts, 0.95), 95, 0)
	near(t, "p95 of no counts", stats.CountedPercentile(nil, 0.95), 0, 0)
}
