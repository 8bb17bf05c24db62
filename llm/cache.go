package llm

import (
	"context"
	"iter"
)

// Retention is how long a provider is asked to keep a prompt in its cache (eca-features
// 4.1, cacheRetention). Without one each API does what costs least by default.
type Retention string

// Retentions, where an API lets its clients choose: five minutes or an hour for Claude's
// models; minutes or a day for OpenAI's.
const (
	RetainShort Retention = "short"
	RetainLong  Retention = "long"
)

// TTL is a retention as Claude's APIs spell it; empty for the five minutes that need no
// word.
func (r Retention) TTL() string {
	if r == RetainLong {
		return "1h"
	}
	return ""
}

// CacheControl marks, in Claude's formats, the end of a prefix that is worth caching.
type CacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

// Mark returns the mark for a retention.
func (r Retention) Mark() *CacheControl { return &CacheControl{Type: "ephemeral", TTL: r.TTL()} }

// LongWrites says how many of the tokens that were written to a cache stay there for an
// hour, which costs more. reported is what the provider says; nil if it does not, and
// then all of them do if they were asked to.
func (r Retention) LongWrites(written int64, reported *int64) int64 {
	switch {
	case reported != nil:
		return min(*reported, written)
	case r == RetainLong:
		return written
	}
	return 0
}

// Cached says whether a request's prompt is worth a cache: writing one costs, and a
// request that is made once never reads it.
func (r Request) Cached() bool {
	switch r.Purpose {
	case PurposeTitle, PurposeRewrite, PurposeCompletion, PurposeSampling:
		return false
	}
	return true
}

// MarkBackwards calls mark with the indexes of n things, last first, until it said left
// times that it set a mark. Of two marks in the messages the last is what the next request
// finds again, and the one before it what the request before this left: caches are looked
// up only some blocks back, and one step may add more than that.
func MarkBackwards(n, left int, mark func(i int) bool) {
	for i := n - 1; i >= 0 && left > 0; i-- {
		if mark(i) {
			left--
		}
	}
}

// WithRetention returns a model whose prompts are kept as long as r says.
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
