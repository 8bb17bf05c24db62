package llm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// untilReset reads how long a rate limit still holds from the headers that say when it
// is reset, of all kinds that providers send (eca-features 8): for requests, tokens or
// everything, as a time, a duration or a number of seconds. Limits of which something
// remains are not what the request failed at. or 0.
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

// resetIn reads one such header.
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
