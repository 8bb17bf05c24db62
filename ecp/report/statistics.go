package report

import (
	"math"
	"strconv"
)

// Statistics sums up the attempts of a scenario: how many passed, between which pass rates
// the true one lies with a confidence of 95 %, and how likely it is that at least one, and
// that each, of k attempts passes, without bias, from all that were made and could be judged.
func Statistics(attempts []Attempt) (*Repeat, map[string]float64) {
	n, c := 0, 0
	for _, a := range attempts {
		if unjudged(a.Status, a.Errors) {
			continue
		}
		n++
		if a.Status == Passed {
			c++
		}
	}
	r := &Repeat{N: n, Passed: c, PassAllK: map[string]float64{}}
	if n == 0 {
		return r, map[string]float64{}
	}
	r.PassRate = float64(c) / float64(n)
	r.CI95 = wilson(c, n)
	any := map[string]float64{}
	for _, k := range powers(n) {
		any[strconv.Itoa(k)] = 1 - chosen(n-c, n, k)
		r.PassAllK[strconv.Itoa(k)] = chosen(c, n, k)
	}
	return r, any
}

// powers lists 1, 2, 4, 8 and so on below n, and n.
func powers(n int) (out []int) {
	for k := 1; k < n; k *= 2 {
		out = append(out, k)
	}
	return append(out, n)
}

// chosen is the share of the ways to choose k of n that are all among c.
func chosen(c, n, k int) float64 {
	if k > c {
		return 0
	}
	p := 1.0
	for i := range k {
		p *= float64(c-i) / float64(n-i)
	}
	return p
}

// wilson is Wilson's score interval for c of n.
func wilson(c, n int) [2]float64 {
	const z = 1.959963984540054
	p, m := float64(c)/float64(n), float64(n)
	mid := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	low, high := (mid-half)/(1+z*z/m), (mid+half)/(1+z*z/m)
	return [2]float64{math.Max(low, 0), math.Min(high, 1)}
}
