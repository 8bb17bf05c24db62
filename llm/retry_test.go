package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// flaky fails a number of times, then answers.
type flaky struct {
	errs  []error
	after Delta // delivered before each error, if set
	calls int
}

func (f *flaky) Stream(context.Context, Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		f.calls++
		if f.calls <= len(f.errs) {
			if f.after.Kind != 0 && !yield(f.after, nil) {
				return
			}
			yield(Delta{}, f.errs[f.calls-1])
			return
		}
		if yield(Delta{Kind: TextDelta, Text: "ok"}, nil) {
			yield(Delta{Kind: StopDelta, Stop: StopEnd}, nil)
		}
	}
}

func drain(ctx context.Context, m Model) (text string, delays []time.Duration, err error) {
	for d, e := range m.Stream(ctx, Request{}) {
		if e != nil {
			return text, delays, e
		}
		switch d.Kind {
		case TextDelta:
			text += d.Text
		case RetryDelta:
			delays = append(delays, d.Retry.Delay)
		}
	}
	return text, delays, nil
}

func TestRetry(t *testing.T) {
	overloaded, cut, silent := &Error{Kind: ErrOverloaded}, &Error{Kind: ErrPrematureStop}, &Error{Kind: ErrTimeout}
	policy := RetryPolicy{MaxRetries: 3, MaxPremature: 1, BaseDelay: time.Second, Multiplier: 2, MaxDelay: 3 * time.Second, MaxWait: time.Minute, Jitter: func() float64 { return 0.5 }}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		text, delays, err := drain(t.Context(), WithRetry(&flaky{errs: []error{overloaded, overloaded, overloaded}}, policy))
		if err != nil || text != "ok" || len(delays) != 3 || time.Since(start) != (1+2+3)*time.Second {
			t.Errorf("%q %v %v after %s", text, delays, err, time.Since(start))
		}
	})
	for name, c := range map[string]struct {
		model *flaky
		calls int
	}{
		"too often":         {&flaky{errs: []error{overloaded, overloaded, overloaded, overloaded}}, 4},
		"cut too often":     {&flaky{errs: []error{cut, cut}}, 2},
		"silent too often":  {&flaky{errs: []error{silent, cut}}, 2},
		"cut among others":  {&flaky{errs: []error{overloaded, cut, overloaded, overloaded}}, 4},
		"took too long":     {&flaky{errs: []error{&Error{Kind: ErrDeadline}}}, 1},
		"not retryable":     {&flaky{errs: []error{&Error{Kind: ErrAuth}}}, 1},
		"something arrived": {&flaky{errs: []error{overloaded}, after: Delta{Kind: TextDelta}}, 1},
		"asks for too long": {&flaky{errs: []error{&Error{Kind: ErrRateLimited, RetryAfter: time.Hour}}}, 1},
		"untyped":           {&flaky{errs: []error{errors.New("x")}}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			if _, _, err := drain(t.Context(), WithRetry(c.model, policy)); err == nil || c.model.calls != c.calls {
				t.Errorf("%s: %d calls, %v", name, c.model.calls, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, _, err := drain(ctx, WithRetry(&flaky{errs: []error{overloaded, overloaded}}, policy)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled while waiting: %v", err)
		}
	})
}

// A RetryDelta contains the limit that ends the retries first.
func TestRetryAnnounces(t *testing.T) {
	policy := RetryPolicy{MaxRetries: 3, MaxPremature: 1, Multiplier: 1}
	cut, lost := &Error{Kind: ErrPrematureStop}, &Error{Kind: ErrNetwork}
	for name, c := range map[string]struct {
		errs []error
		want string
	}{
		"cut":           {[]error{cut}, "1/1"},
		"lost":          {[]error{lost, lost, lost}, "1/3 2/3 3/3"},
		"lost, cut":     {[]error{lost, cut}, "1/3 1/1"},
		"lost 2, cut":   {[]error{lost, lost, cut}, "1/3 2/3 3/3"},
		"cut, lost":     {[]error{cut, lost}, "1/1 2/3"},
		"nothing fails": {nil, ""},
	} {
		var got []string
		for d, err := range WithRetry(&flaky{errs: c.errs}, policy).Stream(t.Context(), Request{}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if d.Kind == RetryDelta {
				got = append(got, fmt.Sprintf("%d/%d", d.Retry.Attempt, d.Retry.Max))
			}
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: %s, want %s", name, g, c.want)
		}
	}
}

// An AttemptDelta announces each retry, after the delay before it.
func TestAttemptDelta(t *testing.T) {
	policy := RetryPolicy{MaxRetries: 1, BaseDelay: 7 * time.Second, MaxDelay: time.Minute, Multiplier: 1, Jitter: func() float64 { return 0.5 }}
	synctest.Test(t, func(t *testing.T) {
		start, got := time.Now(), map[DeltaKind]time.Duration{}
		for d, err := range WithRetry(&flaky{errs: []error{&Error{Kind: ErrOverloaded}}}, policy).Stream(t.Context(), Request{}) {
			if err != nil {
				t.Fatal(err)
			}
			got[d.Kind] = time.Since(start)
		}
		if again, ok := got[AttemptDelta]; !ok || again != 7*time.Second || got[RetryDelta] != 0 {
			t.Errorf("%v", got)
		}
	})
}

func TestContinue(t *testing.T) {
	policy := RetryPolicy{MaxContinues: 2, BaseDelay: time.Second, Multiplier: 2, MaxDelay: time.Minute, MaxWait: time.Minute, Jitter: func() float64 { return 0.5 }}
	for name, c := range map[string]struct {
		n    int
		err  *Error
		want RetryInfo
		ok   bool
	}{
		"first":            {1, &Error{Kind: ErrPrematureStop}, RetryInfo{1, 2, time.Second}, true},
		"second":           {2, &Error{Kind: ErrTimeout}, RetryInfo{2, 2, 2 * time.Second}, true},
		"third":            {3, &Error{Kind: ErrTimeout}, RetryInfo{Attempt: 3, Max: 2}, false},
		"asked to wait":    {1, &Error{Kind: ErrRateLimited, RetryAfter: 9 * time.Second}, RetryInfo{1, 2, 9 * time.Second}, true},
		"for too long":     {1, &Error{Kind: ErrRateLimited, RetryAfter: time.Hour}, RetryInfo{1, 2, time.Hour}, false},
		"nothing to mend":  {1, &Error{Kind: ErrBadRequest}, RetryInfo{Attempt: 1, Max: 2}, false},
		"the whole limit":  {1, &Error{Kind: ErrDeadline}, RetryInfo{Attempt: 1, Max: 2}, false},
		"the user's rules": {1, &Error{Kind: ErrCustom}, RetryInfo{1, 2, time.Second}, true},
	} {
		if got, ok := policy.Continue(c.n, c.err); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
	}
}

// The user's rules come before every other classification, and are shown by their name.
func TestRetryRules(t *testing.T) {
	rule := func(status int, pattern, label string) RetryRule {
		r, err := NewRetryRule(status, pattern, label)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	policy := RetryPolicy{MaxRetries: 1, Multiplier: 1, Rules: []RetryRule{
		rule(403, "", "Blocked"), rule(0, "(?i)come back (?!never)", "Busy"), rule(400, "token_bucket", ""),
	}}
	for name, c := range map[string]struct {
		err  *Error
		want string // label; - if it is not repeated
	}{
		"status":              {&Error{Kind: ErrAuth, Status: 403}, "Blocked"},
		"another status":      {&Error{Kind: ErrAuth, Status: 401}, "-"},
		"pattern":             {&Error{Kind: ErrUnknown, Message: "Please COME BACK later"}, "Busy"},
		"lookahead":           {&Error{Kind: ErrUnknown, Message: "come back never"}, "-"},
		"in the body":         {&Error{Kind: ErrBadRequest, Status: 400, Message: "no", Body: `{"type":"token_bucket"}`}, ""},
		"the status does not": {&Error{Kind: ErrBadRequest, Status: 404, Body: `{"type":"token_bucket"}`}, "-"},
	} {
		got := "-"
		for d, err := range WithRetry(&flaky{errs: []error{c.err, c.err}}, policy).Stream(t.Context(), Request{}) {
			if d.Kind == RetryDelta {
				got = d.Err.Label
			}
			if err != nil && (AsError(err).Kind == ErrCustom) != (c.want != "-") {
				t.Errorf("%s: ends with %+v", name, AsError(err))
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, bad := range []struct {
		status  int
		pattern string
		want    string
	}{{0, "", "neither"}, {500, "((", "is not a valid pattern"}} {
		if _, err := NewRetryRule(bad.status, bad.pattern, "l"); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestStreamError(t *testing.T) {
	for _, c := range []struct {
		code, message string
		want          ErrorKind
	}{
		{"rate_limit_exceeded", "slow down", ErrRateLimited},
		{"throttlingException", "", ErrRateLimited},
		{"429", "", ErrRateLimited},
		{"502", "bad gateway", ErrOverloaded},
		{"501", "Unsupported method ('POST')", ErrBadRequest},
		{"503", "Rate limit reached for all keys", ErrRateLimited},
		{"overloaded_error", "Overloaded", ErrOverloaded},
		{"InternalServerError", "oops", ErrOverloaded},
		{"401", "who are you", ErrAuth},
		{"invalid_api_key", "", ErrAuth},
		{"context_length_exceeded", "", ErrContextOverflow},
		{"invalid_request_error", "prompt is too long: 9 tokens", ErrContextOverflow},
		{"", "maximum context length is 9", ErrContextOverflow},
		{"invalid_image_format", "", ErrInvalidImage},
		{"invalid_request_error", "Could not process image", ErrInvalidImage},
		{"400", "Provided image is not valid.", ErrInvalidImage},
		{"invalid_prompt", "no", ErrBadRequest},
		{"insufficient_quota", "pay", ErrBadRequest},
		{"", "an image of doom", ErrUnknown},
		{"999", "", ErrUnknown},
	} {
		if e := StreamError("p", c.code, c.message); e.Kind != c.want {
			t.Errorf("%q %q: %s, want %s", c.code, c.message, e.Kind, c.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "soon": 0, "-3": 0,
	} {
		h := http.Header{}
		h.Set("Retry-After", in)
		if got := retryAfter(h, now); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// Without Retry-After, a rate limit says when it is reset.
func TestUntilReset(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		headers []string // names and values
		want    time.Duration
	}{
		"none":           {nil, 0},
		"time":           {[]string{"anthropic-ratelimit-tokens-reset", "2026-01-02T03:04:15Z"}, 11 * time.Second},
		"duration":       {[]string{"x-ratelimit-reset-requests", "6m0s", "x-ratelimit-remaining-requests", "0"}, 361 * time.Second},
		"seconds":        {[]string{"RateLimit-Reset", "30"}, 31 * time.Second},
		"since 1970":     {[]string{"anthropic-ratelimit-unified-reset", "1767323065"}, 21 * time.Second},
		"the last":       {[]string{"x-ratelimit-reset-tokens", "3s", "x-ratelimit-reset-requests", "9s"}, 10 * time.Second},
		"some remain":    {[]string{"x-ratelimit-reset-tokens", "3s", "x-ratelimit-reset-requests", "9s", "x-ratelimit-remaining-requests", "12"}, 4 * time.Second},
		"past":           {[]string{"anthropic-ratelimit-tokens-reset", "2026-01-02T03:04:00Z"}, 0},
		"unintelligible": {[]string{"x-ratelimit-reset", "soon"}, 0},
		"absurd":         {[]string{"x-ratelimit-reset", "1e300"}, 0},
	} {
		resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}}
		for i := 0; i < len(c.headers); i += 2 {
			resp.Header.Set(c.headers[i], c.headers[i+1])
		}
		if got := StatusError("p", resp, "", now).RetryAfter; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		resp.StatusCode = http.StatusInternalServerError
		if got := StatusError("p", resp, "", now).RetryAfter; got != 0 {
			t.Errorf("%s: another error waits %s", name, got)
		}
	}
}

// Each limit ends the request with a typed error; bytes postpone the idle limit only.
func TestWatchdog(t *testing.T) {
	limits := Limits{FirstByte: 5 * time.Second, Idle: time.Second, Total: 9950 * time.Millisecond}
	cause := func(t *testing.T, read func(dog *Watchdog)) (string, time.Duration) {
		start := time.Now()
		ctx, dog := Watch(t.Context(), limits)
		defer dog.Stop()
		read(dog)
		<-ctx.Done()
		var e *Error
		if !errors.As(context.Cause(ctx), &e) || (e.Kind == ErrDeadline) != (time.Since(start) == limits.Total) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		return e.Message, time.Since(start)
	}
	byteAt := func(dog *Watchdog) func() {
		body := dog.Body(strings.NewReader(strings.Repeat("x", 100)))
		return func() { _, _ = body.Read(make([]byte, 1)) }
	}
	synctest.Test(t, func(t *testing.T) {
		if msg, after := cause(t, func(*Watchdog) {}); after != limits.FirstByte {
			t.Errorf("first byte: %s after %s", msg, after)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		msg, after := cause(t, func(dog *Watchdog) {
			read := byteAt(dog)
			for range 3 {
				read()
				time.Sleep(900 * time.Millisecond)
			}
		})
		if after != 2*900*time.Millisecond+limits.Idle {
			t.Errorf("idle: %s after %s", msg, after)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		msg, after := cause(t, func(dog *Watchdog) {
			read := byteAt(dog)
			for range 11 {
				read()
				time.Sleep(900 * time.Millisecond)
			}
		})
		if after != limits.Total {
			t.Errorf("total: %s after %s", msg, after)
		}
	})
}

func TestRetriesEndWithTheirTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := DefaultRetry()
		policy.Total, policy.Jitter = 2*time.Minute, func() float64 { return 0.5 }
		start := time.Now()
		_, delays, err := drain(t.Context(), WithRetry(&flaky{errs: slices.Repeat([]error{&Error{Kind: ErrOverloaded}}, 20)}, policy))
		var failed *Error
		if took := time.Since(start); !errors.As(err, &failed) || failed.RetryLimit != policy.Total || took > policy.Total || took < time.Minute {
			t.Errorf("ended after %s: %v %v", took, delays, err)
		}
	})
}

// The time of attempts without an answer counts toward the total limit of the retries.
func TestRetryTotalCountsSilentAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := modelFunc(func(ctx context.Context, _ Request) iter.Seq2[Delta, error] {
			return func(yield func(Delta, error) bool) {
				_ = Sleep(ctx, 50*time.Second)
				yield(Delta{}, &Error{Kind: ErrTimeout})
			}
		})
		begin := time.Now()
		policy := DefaultRetry()
		policy.Total, policy.Now = 2*time.Minute, time.Now
		if _, _, err := drain(t.Context(), WithRetry(silent, policy)); err == nil || time.Since(begin) > 3*time.Minute {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

type modelFunc func(context.Context, Request) iter.Seq2[Delta, error]

func (f modelFunc) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return f(ctx, req)
}
