package llm

import "github.com/seed-dec29ce4/eca/config"

// Price returns the cost of a usage in dollars, and false if the prices of input and output are not
// both known.
func Price(c config.Cost, u Usage) (float64, bool) {
	if c.Input == nil || c.Output == nil {
		return 0, false
	}
	read, write := *c.Input, *c.Input
	if c.CacheRead != nil {
		read = *c.CacheRead
	}
	if c.CacheWrite != nil {
		write = *c.CacheWrite
	}
	// Price lists do not contain the price of cache entries that live for an hour. For Claude it is
	// twice the input price, and that for five minutes is 1.25 times the input price. If cache writes
	// are free, these are free too.
	long := max(write, 2**c.Input)
	if write == 0 {
		long = 0
	}
	const million = 1e6
	written := float64(u.CacheWrite-u.CacheWriteLong)*write + float64(u.CacheWriteLong)*long
	searches := 0.0
	if c.WebSearch != nil {
		searches = float64(u.WebSearches) * *c.WebSearch / 1000
	}
	return searches + (float64(u.Input)**c.Input+float64(u.Output)**c.Output+float64(u.CacheRead)*read+written)/million, true
}
