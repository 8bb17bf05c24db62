package turn

import (
	"context"
	"errors"
	"fmt"
)

// Error is an error with a code for callers. The codes are those of E2A, also over ACP and A2A.
type Error struct {
	Code    Code
	Message string
}

// Code is the kind of an error (e2a.md 6, 9).
type Code string

// The codes of errors.
const (
	BadParams    Code = "E2A.INVALID_PARAMS"
	NotFound     Code = "E2A.NOT_FOUND"
	Disconnected Code = "E2A.DISCONNECTED" // eca or the session ended before the turn did
	Failed       Code = "E2A.AGENT_ERROR"  // the turn failed
)

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf creates an error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// ErrShutdown means that eca is shutting down.
var ErrShutdown = errors.New("eca is shutting down")

// Explain converts an error to the form for callers, with a code and without secrets. ctx is the
// context of the failed operation.
func (s *Service) Explain(ctx context.Context, err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
	case s.ctx.Err() != nil, errors.Is(context.Cause(ctx), ErrShutdown):
		known = Errorf(Disconnected, "%v", ErrShutdown)
	default:
		known = Errorf(Failed, "%v", err)
	}
	return &Error{known.Code, s.host.Clean(known.Message)}
}
