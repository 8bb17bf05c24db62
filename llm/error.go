package llm

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrorKind classifies a failed request by what can be done about it.
type ErrorKind string

// Kinds of errors.
const (
	ErrAuth            ErrorKind = "auth"             // 401, 403: the key is missing or wrong
	ErrRateLimited     ErrorKind = "rate_limited"     // 429; RetryAfter may say when
	ErrOverloaded      ErrorKind = "overloaded"       // 5xx
	ErrNetwork         ErrorKind = "network"          // no connection, connection lost
	ErrTimeout         ErrorKind = "timeout"          // one of the time limits
	ErrPrematureStop   ErrorKind = "premature_stop"   // the stream ended without its terminal event
	ErrContextOverflow ErrorKind = "context_overflow" // the conversation is too long for the model
	ErrBadRequest      ErrorKind = "bad_request"      // any other 4xx
	ErrProtocol        ErrorKind = "protocol"         // the provider sent something unintelligible
	ErrUnknown         ErrorKind = "unknown"
)

// Error is a failed model request. Message is fit for the user: it names the
// cause and never contains a key.
type Error struct {
	Kind       ErrorKind
	Status     int // HTTP status, 0 if none
	Message    string
	RetryAfter time.Duration // how long the provider asks to wait; 0 if it does not say
	Cause      error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Retryable says whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case ErrRateLimited, ErrOverloaded, ErrNetwork, ErrTimeout, ErrPrematureStop:
		return true
	}
	return false
}

// AsError returns err as *Error, wrapping what is none.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: ErrUnknown, Message: err.Error(), Cause: err}
}

// StatusError builds the error for a non-2xx answer. message is the provider's own
// text, without markup.
func StatusError(provider string, resp *http.Response, message string, now time.Time) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header, now)}
	message = strings.TrimSpace(message)
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.Kind = ErrAuth
	case s == http.StatusTooManyRequests:
		e.Kind = ErrRateLimited
		if e.RetryAfter == 0 {
			e.RetryAfter = untilReset(resp.Header, now)
		}
	case s == http.StatusRequestEntityTooLarge || s == http.StatusBadRequest && IsOverflow(message):
		e.Kind = ErrContextOverflow
	case s == http.StatusRequestTimeout || s >= 500:
		e.Kind = ErrOverloaded
	default:
		e.Kind = ErrBadRequest
	}
	if message == "" {
		message = "no further explanation"
	}
	// Some codes have no standard text.
	status := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	e.Message = fmt.Sprintf("%s answered %s: %s", provider, status, message)
	if e.RetryAfter > 0 {
		e.Message += fmt.Sprintf(" (try again in %s)", e.RetryAfter.Round(time.Second))
	}
	return e
}

// IsOverflow recognises the ways providers say that a conversation is too long.
func IsOverflow(message string) bool {
	m := strings.ToLower(message)
	for _, sign := range []string{"context length", "context_length", "context window", "context limit", "maximum context", "too many tokens", "prompt is too long"} {
		if strings.Contains(m, sign) {
			return true
		}
	}
	return false
}

// retryAfter reads Retry-After in both its forms, and the millisecond variant.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
