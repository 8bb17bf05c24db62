package providers

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
)

// retryPolicy returns how a provider's requests are retried: the configuration merged over the
// defaults.
func (m *Models) retryPolicy(p config.Provider) llm.RetryPolicy {
	r := llm.DefaultRetry()
	for dst, src := range map[*int]*int{
		&r.MaxRetries: p.Retry.MaxRetries, &r.MaxPremature: p.Retry.PrematureStopMaxRetries, &r.MaxContinues: p.Retry.MaxAutoContinues,
	} {
		if src != nil {
			*dst = *src
		}
	}
	for dst, src := range map[*time.Duration]*int{&r.BaseDelay: p.Retry.BaseDelayMs, &r.MaxDelay: p.Retry.MaxDelayMs} {
		if src != nil {
			*dst = time.Duration(*src) * time.Millisecond
		}
	}
	if v := p.Retry.BackoffMultiplier; v != nil {
		r.Multiplier = *v
	}
	if v := p.RateLimit; v != nil {
		r.MaxWait = time.Duration(*v * float64(time.Second))
	}
	for _, rule := range p.RetryRules {
		// Invalid rules were reported when the configuration was loaded.
		if r1, err := llm.NewRetryRule(rule.Status, rule.ErrorPattern, rule.Label); err == nil {
			r.Rules = append(r.Rules, r1)
		}
	}
	if p.Retry.MaxRetries == nil {
		r.Total = m.opts.RetryTotal
	}
	r.Now, r.Jitter = m.opts.Now, m.opts.Random
	return r
}

// BadRetryRules returns problems for the retryRules that cannot be used.
func BadRetryRules(cfg *config.Loaded) []config.Problem {
	var out []config.Problem
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		for i, rule := range cfg.Providers[name].RetryRules {
			if _, err := llm.NewRetryRule(rule.Status, rule.ErrorPattern, rule.Label); err != nil {
				path := []string{"providers", name, "retryRules"}
				out = append(out, cfg.Problem(append(path, strconv.Itoa(i)), "%s: rule %d is left out: %v", config.KeyPath(cfg.SpelledPath(path...)), i+1, err))
			}
		}
	}
	return out
}
