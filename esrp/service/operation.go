package service

import (
	"context"
	"strings"

	"github.com/seed-dec29ce4/eca/esrp"
)

// Operation is an operation that requests can call, as /v1/capabilities lists it.
type Operation struct {
	Service, Name string
	Description   string
	Repeatable    bool // repeating it does no harm: see Operations.Repeatable
}

// Operations are the operations of a service and its workers. The server and each worker have their
// own value; the values should agree on the operations.
type Operations interface {
	// List lists the operations.
	List() []Operation
	// Check checks, before a request is accepted, that its operation exists and its inputs are valid.
	// The error is a *Failure.
	Check(r esrp.Request) error
	// Repeatable reports whether repeating a request does no harm. A request that is not repeatable
	// gets its payload's hash as its key, unless the caller sets one (contract 8).
	Repeatable(r esrp.Request) bool
	// Run carries a request out, until ctx ends. Errors that are not *Failure are reported as UNKNOWN.
	Run(ctx context.Context, c Call) (Result, error)
}

// Call is a running request.
type Call struct {
	Job     string // its UUID: the same in each attempt
	Attempt int    // from 1
	Request esrp.Request

	// Progress reports the progress to listeners. It does not wait. Reports in quick succession may be
	// dropped.
	Progress func(Progress)
}

// Progress is the progress of a job. Current and Total are left out when they are zero.
type Progress struct {
	Message        string
	Current, Total int64
}

// Result is what a call produced.
type Result struct{ Outputs []Output }

// Output is one output. Large or binary data becomes an artifact.
type Output struct {
	Name, ContentType string
	Data              []byte
}

// Failure is an error with its code (contract 7).
type Failure struct {
	Code    esrp.Code
	Message string
	// Final means that a retry does not help, even if the code is retryable.
	Final   bool
	Details esrp.Value
}

func (f *Failure) Error() string { return f.Message }

// record returns a failure in the form of responses.
func (f *Failure) record() *esrp.Error {
	// Messages quote the input of callers and the output of programs.
	e := &esrp.Error{Code: f.Code, Message: strings.ToValidUTF8(f.Message, "\uFFFD"), Retryable: f.Code.Retryable() && !f.Final, Details: f.Details}
	if e.Retryable {
		after, strategy := uint64(retryAfter.Milliseconds()), esrp.Exponential
		e.RetryAfterMS, e.RetryStrategy = &after, &strategy
	}
	return e
}
