package llm

import (
	"context"
	"iter"
)

// Retention is how long a provider should keep a prompt in its cache (eca-features.md 4.1,
// cacheRetention). If it is empty, each API uses its cheapest default.
type Retention string

// Retentions, for APIs that support them: five minutes or an hour for Claude models, minutes or a
// day for OpenAI's.
const (
	RetainShort Retention = "short"
	RetainLong  Retention = "long"
)

// TTL returns a retention in the form of Claude's APIs. It is empty for five minutes, their
// default.
func (r Retention) TTL() string {
	if r == RetainLong {
		return "1h"
	}
	return ""
}

// CacheControl marks, in Claude's formats, the end of a prefix to cache.
type CacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

// Mark returns the mark for a retention.
func (r Retention) Mark() *CacheControl { return &CacheControl{Type: "ephemeral", TTL: r.TTL()} }

// LongWrites returns how many of the tokens written to a cache stay there for an hour, which costs more:
// the reported number, or, if the provider reported none (nil), all tokens if the request asked for an
// hour.
func (r Retention) LongWrites(written int64, reported *int64) int64 {
	switch {
	case reported != nil:
		return min(*reported, written)
	case r == RetainLong:
		return written
	}
	return 0
}

// Cached reports whether a request's prompt should be cached. Writing to the cache costs money, and
// a request that is made only once never reads it.
func (r Request) Cached() bool {
	switch r.Purpose {
	case PurposeTitle, PurposeRewrite, PurposeCompletion, PurposeSampling:
		return false
	}
	return true
}

// MarkBackwards calls mark with the indexes of n messages, the last one first, until mark has returned
// true for count messages. With two marks, this request reads the cache up to the first mark, to which
// the previous request wrote, and the next request reads up to the second. One mark is not enough,
// because the provider looks back only some blocks from a mark, and one step may add more blocks.
func MarkBackwards(n, count int, mark func(i int) bool) {
	for i := n - 1; i >= 0 && count > 0; i-- {
		if mark(i) {
			count--
		}
	}
}

// WithRetention returns a model whose requests have the retention r.
func WithRetention(m Model, r Retention) Model {
	if r == "" {
		return m
	}
	return &cacheRetentionModel{m, r}
}

type cacheRetentionModel struct {
	model     Model
	retention Retention
}

func (m *cacheRetentionModel) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	req.Retention = m.retention
	return m.model.Stream(ctx, req)
}
