package ecp

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// Usage counts tokens, as the agent sent it: unknown keys survive, and no number is rounded. The
// Tokens constants are the keys with a meaning.
type Usage map[string]json.RawMessage

// Keys of Usage. Protocol 1.0 has the first three; the others are eca's own.
const (
	TokensInput      = "input_tokens"
	TokensOutput     = "output_tokens"
	TokensTotal      = "total_tokens"
	TokensCacheRead  = "cache_read_tokens"
	TokensCacheWrite = "cache_write_tokens"
	TokensReasoning  = "reasoning_tokens" // part of the output
)

// Tokens returns a count; ok is false if the agent did not report it. Counts above the int64 range
// become the largest int64, counts below zero become zero.
func (u Usage) Tokens(key string) (n int64, ok bool) {
	raw := string(u[key])
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return max(n, 0), true
	}
	if !isCount(raw) {
		return 0, false
	}
	return math.MaxInt64, true
}

// Count returns a count, or zero if the agent did not report it.
func (u Usage) Count(key string) int64 {
	n, _ := u.Tokens(key)
	return n
}

// isCount reports whether a JSON number is written as a whole number of at least zero.
func isCount(raw string) bool {
	return raw == "-0" || raw != "" && strings.Trim(raw, "0123456789") == ""
}

// parseUsage reads the usage of a step result. The protocol's three keys must be written as whole
// numbers; other keys may have any value.
func parseUsage(raw json.RawMessage) (Usage, error) {
	if jsonrpc.IsNull(raw) {
		return nil, nil
	}
	fields, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("usage %w or null", err)
	}
	for _, key := range []string{TokensInput, TokensOutput, TokensTotal} {
		if count := fields[key]; !jsonrpc.IsNull(count) && !isCount(string(count)) {
			return nil, fmt.Errorf("usage.%s must be a whole number of at least 0, not %.40s", key, count)
		}
	}
	return fields, nil
}

// NewUsage makes a Usage from counts.
func NewUsage(counts map[string]int64) Usage {
	u := make(Usage, len(counts))
	for key, n := range counts {
		u[key] = strconv.AppendInt(nil, n, 10)
	}
	return u
}

// AddTokens adds counts of at least zero; a sum above the int64 range becomes the largest int64.
func AddTokens(counts ...int64) (sum int64) {
	for _, n := range counts {
		if sum += n; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}
