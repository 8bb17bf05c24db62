package agent

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
)

// tokenCounts sums up the tokens of a step.
type tokenCounts struct{ input, output, cacheRead, cacheWrite int64 }

func (c *tokenCounts) add(b event.UsageReported) {
	c.input += max(b.InputTokens, 0)
	c.output += max(b.OutputTokens, 0)
	c.cacheRead += max(b.CacheReadTokens, 0)
	c.cacheWrite += max(b.CacheWriteTokens, 0)
}

// usage returns the usage for a step result. It is nil if no provider reported tokens, because zeros
// would claim that the step used none.
func (c *tokenCounts) usage() ecp.Usage {
	total := ecp.AddTokens(c.input, c.output, c.cacheRead, c.cacheWrite)
	if total == 0 {
		return nil
	}
	counts := map[string]int64{ecp.TokensInput: c.input, ecp.TokensOutput: c.output, ecp.TokensTotal: total}
	if c.cacheRead > 0 {
		counts[ecp.TokensCacheRead] = c.cacheRead
	}
	if c.cacheWrite > 0 {
		counts[ecp.TokensCacheWrite] = c.cacheWrite
	}
	return ecp.NewUsage(counts)
}
