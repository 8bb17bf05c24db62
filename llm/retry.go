package llm

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// RetryPolicy bounds how often and how long a failed request is repeated. It is
// the only place in eca that repeats a failed model request.
type RetryPolicy struct {
	MaxRetries int           // further attempts after the first
	BaseDelay  time.Duration // before the first repetition
	Multiplier float64
	MaxDelay   time.Duration
	MaxWait    time.Duration // longest Retry-After that is obeyed; beyond it, give up

	Jitter func() float64 // in [0,1); nil: random
}

// DefaultRetry is the reference's policy (eca-features, Appendix B).
func DefaultRetry() RetryPolicy {
	return RetryPolicy{
		MaxRetries: 10, BaseDelay: 2 * time.Second, Multiplier: 2,
		MaxDelay: 60 * time.Second, MaxWait: 60 * time.Second,
	}
}

// RetryInfo describes a coming repetition, for the user.
type RetryInfo struct {
	Attempt, Max int
	Delay        time.Duration
}

// WithRetry repeats failed requests of m. A request is repeated only while nothing
// of its answer has been delivered; each repetition is announced by a RetryDelta.
func WithRetry(m Model, p RetryPolicy) Model { return &retrying{m, p} }

type retrying struct {
	model  Model
	policy RetryPolicy
}

func (r *retrying) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for attempt := 1; ; attempt++ {
			delivered, stopped, err := r.once(ctx, req, yield)
			if stopped || err == nil {
				return
			}
			e := AsError(err)
			delay, again := r.policy.next(attempt, e)
			if delivered || !again || ctx.Err() != nil {
				yield(Delta{}, err)
				return
			}
			info := RetryInfo{Attempt: attempt, Max: r.policy.MaxRetries, Delay: delay}
			if !yield(Delta{Kind: RetryDelta, Err: e, Retry: info}, nil) {
				return
			}
			if err := Sleep(ctx, delay); err != nil {
				yield(Delta{}, err)
				return
			}
		}
	}
}

// once runs one attempt and passes its deltas on.
func (r *retrying) once(ctx context.Context, req Request, yield func(Delta, error) bool) (delivered, stopped bool, err error) {
	for d, err := range r.model.Stream(ctx, req) {
		if err != nil {
			return delivered, false, err
		}
		delivered = true
		if !yield(d, nil) {
			return true, true, nil
		}
	}
	return delivered, false, nil
}

// next says whether, and after which delay, to try again after a failed attempt.
func (p RetryPolicy) next(attempt int, e *Error) (time.Duration, bool) {
	if !e.Retryable() || attempt > p.MaxRetries {
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, e.RetryAfter <= p.MaxWait
	}
	delay := float64(p.BaseDelay)
	for range attempt - 1 {
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
