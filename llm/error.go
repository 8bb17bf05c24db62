package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// ErrorKind classifies a failed request by how it can be handled.
type ErrorKind string

// Kinds of errors.
const (
	ErrAuth            ErrorKind = "auth"             // 401, 403: the key is missing or wrong
	ErrRateLimited     ErrorKind = "rate_limited"     // 429; RetryAfter may say when
	ErrOverloaded      ErrorKind = "overloaded"       // 5xx
	ErrNetwork         ErrorKind = "network"          // no connection, connection lost
	ErrUnreachable     ErrorKind = "unreachable"      // no connection until the user changes something: certificates, proxies, an unknown host, a local server that is not running
	ErrTimeout         ErrorKind = "timeout"          // no data for too long
	ErrDeadline        ErrorKind = "deadline"         // the request as a whole took too long
	ErrPrematureStop   ErrorKind = "premature_stop"   // the stream ended without its terminal event
	ErrMalformed       ErrorKind = "malformed"        // an event of the stream cannot be read
	ErrContextOverflow ErrorKind = "context_overflow" // the conversation is too long for the model
	ErrInvalidImage    ErrorKind = "invalid_image"    // the provider does not accept an image in the request
	ErrCustom          ErrorKind = "custom"           // matches one of the user's retryRules; see Label
	ErrBadRequest      ErrorKind = "bad_request"      // any other 4xx
	ErrProtocol        ErrorKind = "protocol"         // the provider sent something unintelligible
	ErrUnknown         ErrorKind = "unknown"
)

// Error is a failed model request. Message can be shown to the user: it names the cause and never
// contains a key.
type Error struct {
	Kind        ErrorKind
	Status      int    // HTTP status; 0 without one
	Address     string // URL that answered, without parts that may be secret; empty if unknown
	Page        bool   // the answer is a web page, so not from the provider's API
	NotStreamed bool   // the answer was a single document instead of a stream
	Message     string
	Body        string        // the provider's answer, without secrets; for patterns, not for the user
	Label       string        // label of the retry rule, for ErrCustom
	RetryAfter  time.Duration // how long the provider asks to wait; 0 if unknown
	RetryLimit  time.Duration // RetryPolicy.Total, if the request failed because its retries took longer; otherwise 0
	Cause       error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case ErrRateLimited, ErrOverloaded, ErrNetwork, ErrTimeout, ErrPrematureStop, ErrMalformed, ErrCustom:
		return true
	}
	return false
}

// Busy reports whether the provider said that it is overloaded or unavailable. Other errors of kind
// ErrOverloaded may be any server failure.
func (e *Error) Busy() bool {
	const overloaded = 529 // has no standard text
	text := strings.ToLower(e.Body + " " + e.Message)
	return e.Kind == ErrOverloaded && (e.Status == http.StatusServiceUnavailable || e.Status == overloaded ||
		Mentions(text, "overload", "unavailable", "capacity"))
}

// OutOfCredit reports whether the provider refuses because the account has no credit left.
func (e *Error) OutOfCredit() bool {
	text := strings.ToLower(e.Body)
	return e.Status == http.StatusPaymentRequired || !e.Page && Mentions(text, "insufficient_quota", "insufficient balance", "credit balance is too low", "billing_hard_limit")
}

// AsError returns err as *Error, wrapping any other error.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: ErrUnknown, Message: err.Error(), Cause: err}
}

// StatusError builds the error for a non-2xx answer. message is the provider's own
// text, without markup.
func StatusError(provider string, resp *http.Response, message string, now time.Time) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header, now)}
	message = strings.TrimSpace(message)
	e.Kind = kindOf(resp.StatusCode, message)
	if e.Kind == ErrRateLimited && e.RetryAfter == 0 {
		e.RetryAfter = untilReset(resp.Header, now)
	}
	if message == "" {
		message = "no further explanation"
	}
	// Some codes have no standard text.
	status := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	e.Message = fmt.Sprintf("%s answered %s: %s", provider, status, message)
	if wait := e.RetryAfter; wait > 0 {
		e.SetRetryAfter(wait)
	}
	return e
}

// SetRetryAfter records how long the provider asks to wait, and adds it to the message.
func (e *Error) SetRetryAfter(d time.Duration) {
	e.RetryAfter = d
	e.Message += fmt.Sprintf(" (try again in %s)", (d + time.Second - 1).Truncate(time.Second))
}

// kindOf classifies an error by its HTTP status and the provider's message (eca-features.md 8).
// Statuses that mean "not implemented" are not retryable.
func kindOf(status int, message string) ErrorKind {
	refused := status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusUnsupportedMediaType || status == http.StatusUnprocessableEntity
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return ErrAuth
	case status == http.StatusTooManyRequests:
		return ErrRateLimited
	case refused && isInvalidImage(message) && !IsOverflow(message):
		return ErrInvalidImage
	case status == http.StatusRequestEntityTooLarge || status == http.StatusBadRequest && IsOverflow(message):
		return ErrContextOverflow
	case status >= 500 && isRateLimit(message):
		return ErrRateLimited
	case status == http.StatusRequestTimeout || status >= 500 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported:
		return ErrOverloaded
	}
	return ErrBadRequest
}

// StreamError builds the error for an error event in a stream. code is the provider's error code,
// or a status; message is the provider's text. Both may be empty.
func StreamError(provider, code, message string) *Error {
	e := &Error{Kind: ErrUnknown, Message: provider + " failed: " + message, Body: code + " " + message}
	if message == "" {
		e.Message = provider + " failed without an error message"
	}
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
		e.Kind, e.Status = kindOf(status, message), status
		return e
	}
	code = strings.ToLower(code)
	for _, c := range []struct {
		kind  ErrorKind
		signs []string
	}{
		{ErrContextOverflow, []string{"context_length", "request_too_large"}},
		{ErrAuth, []string{"authentication", "permission", "invalid_api_key", "unauthorized"}},
		{ErrRateLimited, []string{"rate_limit", "too_many_requests", "throttl"}},
		{ErrOverloaded, []string{"overloaded", "server_error", "internal", "api_error", "timeout", "unavailable"}},
		{ErrInvalidImage, []string{"invalid_image", "image_parse", "unsupported_image", "invalid_base64_image"}},
		{ErrBadRequest, []string{"invalid_", "not_found", "billing", "quota"}},
	} {
		if Mentions(code, c.signs...) {
			e.Kind = c.kind
			break
		}
	}
	if e.Kind == ErrUnknown || e.Kind == ErrBadRequest {
		switch {
		case IsOverflow(message):
			e.Kind = ErrContextOverflow
		case isInvalidImage(message):
			e.Kind = ErrInvalidImage
		}
	}
	return e
}

// EventError returns the error in an event of a stream or in a complete answer, in the form
// {"error": {"code", "type", "message"}} or {"error": "text"}. It returns nil for other events.
// Compatible servers and proxies send such events in streams of any format. The code is a word or a
// status; if it is missing, the type is used instead.
func EventError(provider string, event []byte) *Error {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(event, &e) // invalid JSON has no error
	if len(e.Error) == 0 || string(e.Error) == "null" {
		return nil
	}
	var f struct {
		Code json.RawMessage `json:"code"`
		Type string          `json:"type"`
	}
	_ = json.Unmarshal(e.Error, &f) // an error of another type has only a message
	code := strings.Trim(string(f.Code), `"`)
	if code == "" || code == "null" {
		code = f.Type
	}
	return StreamError(provider, code, ErrorText(event))
}

// UnreadableEvent returns the error for an event of a stream that does not have the expected
// format.
func UnreadableEvent(provider string, event []byte, cause error) *Error {
	if failed := EventError(provider, event); failed != nil {
		return failed
	}
	const shown = 100
	return &Error{Kind: ErrMalformed, Message: fmt.Sprintf("%s sent something in its stream that is not of this API: %q", provider, shorten.Bytes(string(event), shown)), Cause: cause}
}

// isRateLimit reports whether a message means a rate limit, for statuses other than 429.
func isRateLimit(message string) bool {
	return Mentions(strings.ToLower(message), "rate limit", "rate_limit", "too many requests")
}

// isInvalidImage reports whether a message means that the provider does not accept an image. It
// does not look for whole sentences: the message must mention an image or its encoding, and a
// fault. Callers check that the request has images.
func isInvalidImage(message string) bool {
	m := strings.ToLower(message)
	about := func(signs ...string) bool { return Mentions(m, signs...) }
	switch {
	case about("image", "picture", "pixel"):
		return about(
			"process", "decod", "pars", "load", "read", "open", "download", "fetch", "identify", "recogni",
			"valid", "corrupt", "truncated", "malformed", "damaged", "broken", "empty",
			"support", "not allowed", "not accepted", "does not accept", "unknown format", "media type", "media_type", "mime", "image format", "image input", "image_parse",
			"too small", "too large", "too big", "too many", "exceed", "below", "above", "minimum", "maximum", "at least", "at most", "smaller than", "larger than", "greater than", "less than",
			"image size", "dimension", "resolution", "aspect ratio", "megapixel", "pixels",
		)
	case about("base64", "data uri", "data url", "media_type", "media type", "mime type"):
		return about("valid", "decod", "support", "malformed", "illegal", "incorrect", "padding", "pars")
	}
	return false
}

// IsOverflow reports whether a message means that a conversation is too long.
func IsOverflow(message string) bool {
	return Mentions(strings.ToLower(message), "context length", "context_length", "context window", "context limit", "maximum context", "too many tokens", "prompt is too long")
}

// Mentions reports whether a text contains any of the signs.
func Mentions(text string, signs ...string) bool {
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
}

// retryAfter reads Retry-After in both forms, and the millisecond variant.
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

// Replaceable reports whether another model may answer the failed request, because the model or its
// provider cannot be used at the moment. It is false for mistakes in the request or the key.
func (e *Error) Replaceable() bool {
	return e.Retryable() || e.Kind == ErrUnreachable || e.quotaExhausted() || e.unknownModel()
}

// quotaExhausted reports whether the account has no quota or credit left.
func (e *Error) quotaExhausted() bool {
	return e.Status == http.StatusPaymentRequired || e.mentions("quota", "billing", "credit balance", "insufficient credit", "insufficient balance", "insufficient funds")
}

// unknownModel reports whether the provider does not have the model, or not for this account.
func (e *Error) unknownModel() bool {
	switch {
	case e.Page || e.Kind != ErrBadRequest && e.Kind != ErrAuth && e.Kind != ErrUnknown:
		return false
	case e.Status == http.StatusNotFound || e.mentions("model_not_found"):
		return true
	}
	return e.mentions("model") && e.mentions("not found", "not exist", "unknown model", "no such model", "invalid model", "deprecated", "decommissioned", "not have access")
}

// mentions reports whether the provider's answer contains one of signs. Message is used only without a
// body, because it also contains eca's advice.
func (e *Error) mentions(signs ...string) bool {
	return Mentions(strings.ToLower(cmp.Or(e.Body, e.Message)), signs...)
}

// untilReset returns how long a rate limit still applies, or 0 if unknown. It reads the reset
// headers of all providers (eca-features.md 8): for requests, tokens or everything, as a time, a
// duration or a number of seconds. It ignores limits that are not used up, because they
// did not cause the failure.
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
