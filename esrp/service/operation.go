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
	Repeatable    bool // see Operations.Repeatable
}

// Operations are the operations of a service or a worker. The services and workers on the same NATS
// should have the same operations.
type Operations interface {
	// List lists the operations.
	List() []Operation
	// Check returns an error, which is a *Failure, if the operation of a request does not exist or its
	// inputs are invalid. It is called before a request is accepted.
	Check(r esrp.Request) error
	// Repeatable reports whether a request can safely be repeated. If it cannot, its key is the
	// hash of its payload, unless the caller sets a key (esrp.md 8).
	Repeatable(r esrp.Request) bool
	// Run executes a request until ctx ends. Errors that are not *Failure are reported as UNKNOWN.
	Run(ctx context.Context, c Call) (Result, error)
}

// Call is a running request.
type Call struct {
	Job     string // UUID of the job, the same in each attempt
	Attempt int    // from 1
	Request esrp.Request

	// Progress reports progress to listeners, without blocking. Reports in quick succession may be
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

// Failure is an error with its code (esrp.md 7).
type Failure struct {
	Code    esrp.Code
	Message string
	// Final means that the request should not be retried, even if the code is retryable.
	Final   bool
	Details esrp.Value
}

func (f *Failure) Error() string { return f.Message }

// record returns a failure in the form of responses.
func (f *Failure) record() *esrp.Error {
	// A message may quote invalid UTF-8 from callers and programs.
	e := &esrp.Error{Code: f.Code, Message: strings.ToValidUTF8(f.Message, "\uFFFD"), Retryable: f.Code.Retryable() && !f.Final, Details: f.Details}
	if e.Retryable {
		after, strategy := uint64(retryAfter.Milliseconds()), esrp.Exponential
		e.RetryAfterMS, e.RetryStrategy = &after, &strategy
	}
	return e
}
