package llm

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"
)

// RetryPolicy limits how often and how long a failed request is retried, and how often a model is
// asked to continue an answer that was cut off (eca-features.md 8). All retries in eca happen in this
// package. The engine requests continuations, because only it has the conversation.
type RetryPolicy struct {
	MaxRetries   int // retries of one request
	MaxPremature int // how many of these retries may follow an answer that ended, or timed out, before any content
	MaxContinues int // how often in a row an answer that was cut off is continued
	BaseDelay    time.Duration
	Multiplier   float64
	MaxDelay     time.Duration
	MaxWait      time.Duration // longest Retry-After to wait for; the request fails if it is longer
	Total        time.Duration // limit for all delays and failed attempts (measured with Now) of one request; 0: no limit
	Rules        []RetryRule   // the user's rules, which take precedence over other classifications

	Jitter func() float64   // in [0,1); nil: random
	Now    func() time.Time // nil: attempts take no time
}

// DefaultRetry returns the policy of the reference server (eca-features.md, Appendix B).
func DefaultRetry() RetryPolicy {
	return RetryPolicy{
		MaxRetries: 10, MaxPremature: 3, MaxContinues: 3, BaseDelay: 2 * time.Second, Multiplier: 2,
		MaxDelay: 60 * time.Second, MaxWait: 60 * time.Second,
	}
}

// RetryInfo describes the next retry or continuation, for the user.
type RetryInfo struct {
	Attempt, Max int
	Delay        time.Duration
}

// WithRetry returns a model that retries failed requests to m. It retries a request only if no part of
// its answer has been delivered. A RetryDelta announces each retry, and an AttemptDelta is the first delta
// of each new attempt.
func WithRetry(m Model, p RetryPolicy) Model { return &retryingModel{m, p} }

type retryingModel struct {
	model  Model
	policy RetryPolicy
}

func (r *retryingModel) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		policy := r.policy.withLimit(req.Patience)
		for failures := (failedAttempts{}); ; {
			begin := policy.now()
			delivered, stopped, err := r.attempt(ctx, req, yield)
			if stopped || err == nil {
				return
			}
			e := AsError(err)
			failures.waited += policy.now().Sub(begin)
			info, retry := policy.next(&failures, e)
			if delivered || !retry || ctx.Err() != nil {
				if e.Retryable() && policy.exhausted(&failures) {
					failed := *e
					failed.RetryLimit, err = policy.Total, &failed
				}
				yield(Delta{}, err)
				return
			}
			if !yield(Delta{Kind: RetryDelta, Err: e, Retry: info}, nil) {
				return
			}
			if err := Sleep(ctx, info.Delay); err != nil {
				yield(Delta{}, err)
				return
			}
			if !yield(Delta{Kind: AttemptDelta}, nil) {
				return
			}
		}
	}
}

// attempt makes one attempt and passes on its deltas.
func (r *retryingModel) attempt(ctx context.Context, req Request, yield func(Delta, error) bool) (delivered, stopped bool, err error) {
	for d, err := range r.model.Stream(ctx, req) {
		if err != nil {
			return delivered, false, r.policy.classify(err)
		}
		delivered = true
		if !yield(d, nil) {
			return true, true, nil
		}
	}
	return delivered, false, nil
}

// classify returns a copy of an error with the kind ErrCustom if one of the user's rules applies to it,
// otherwise the error itself.
func (p RetryPolicy) classify(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	for _, rule := range p.Rules {
		if rule.applies(e) {
			custom := *e
			custom.Kind, custom.Label = ErrCustom, rule.Label
			return &custom
		}
	}
	return err
}

// withLimit returns the policy with an upper limit for Total.
func (p RetryPolicy) withLimit(total time.Duration) RetryPolicy {
	if total > 0 && (p.Total == 0 || total < p.Total) {
		p.Total = total
	}
	return p
}

func (p RetryPolicy) now() time.Time {
	if p.Now == nil {
		return time.Time{}
	}
	return p.Now()
}

// failedAttempts counts the failed attempts of one request.
type failedAttempts struct {
	total, premature int
	waited           time.Duration
}

// next counts another failed attempt. It returns whether to retry the request, and after which
// delay.
func (p RetryPolicy) next(n *failedAttempts, e *Error) (RetryInfo, bool) {
	info := RetryInfo{Max: p.MaxRetries}
	n.total++
	info.Attempt = n.total
	if e.Kind == ErrPrematureStop || e.Kind == ErrMalformed || e.Kind == ErrTimeout {
		n.premature++
		if n.premature > p.MaxPremature {
			return info, false
		}
		// RetryInfo contains the limit that will be reached first.
		if p.MaxPremature-n.premature < p.MaxRetries-n.total {
			info.Attempt, info.Max = n.premature, p.MaxPremature
		}
	}
	if !e.Retryable() || n.total > p.MaxRetries {
		return info, false
	}
	var ok bool
	info.Delay, ok = p.delay(n.total, e)
	n.waited += info.Delay
	return info, ok && !p.exhausted(n)
}

// exhausted reports whether the failed attempts and the next delay take longer than Total.
func (p RetryPolicy) exhausted(n *failedAttempts) bool { return p.Total > 0 && n.waited > p.Total }

// Continue returns whether, and after which delay, to ask a model to continue an answer that failed
// after it had begun. n is how often in a row that has happened, from 1.
func (p RetryPolicy) Continue(n int, e *Error) (RetryInfo, bool) {
	info := RetryInfo{Attempt: n, Max: p.MaxContinues}
	if !e.Retryable() || n > p.MaxContinues {
		return info, false
	}
	var ok bool
	info.Delay, ok = p.delay(n, e)
	return info, ok
}

// delay returns how long to wait before the nth retry: the time that the provider asks for, or a
// delay that grows. ok is false if the provider asks for more than MaxWait.
func (p RetryPolicy) delay(n int, e *Error) (d time.Duration, ok bool) {
	if e.RetryAfter > 0 {
		return e.RetryAfter, e.RetryAfter <= p.MaxWait
	}
	delay := float64(p.BaseDelay)
	for range n - 1 {
		delay *= p.Multiplier
		if delay >= float64(p.MaxDelay) {
			delay = float64(p.MaxDelay)
			break
		}
	}
	jitter := rand.Float64
	if p.Jitter != nil {
		jitter = p.Jitter
	}
	return time.Duration(delay * (0.5 + jitter())), true
}

// Sleep waits, or returns ctx's error when it ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
