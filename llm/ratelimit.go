package llm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// untilReset returns how long a rate limit still applies, or 0 if unknown. It reads the reset
// headers of all providers (eca-features 8): for requests, tokens or everything, as a time, a
// duration or a number of seconds. It ignores limits that are not used up, because the request did
// not fail for them.
func untilReset(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	for name, values := range h {
		name = strings.ToLower(name)
		if !strings.Contains(name, "ratelimit") || !strings.Contains(name, "reset") {
			continue
		}
		if left := h.Get(strings.Replace(name, "reset", "remaining", 1)); left != "" && left != "0" {
			continue
		}
		wait = max(wait, resetIn(values[0], now))
	}
	if wait > 0 {
		wait += time.Second // the headers are in whole seconds
	}
	return wait
}

// resetIn parses the value of a reset header.
func resetIn(value string, now time.Time) time.Duration {
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t.Sub(now)
	}
	if d, err := time.ParseDuration(value); err == nil {
		return d
	}
	const year2001, tooLong = 1e9, 1e10
	s, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || s > tooLong:
		return 0
	case s > year2001: // since 1970
		return time.Unix(int64(s), 0).Sub(now)
	}
	return time.Duration(s * float64(time.Second))
}
