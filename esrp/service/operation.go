package service

import (
	"context"
	"strings"

	"github.com/seed-dec29ce4/eca/esrp"
)

// Operation is something that requests can ask for, as /v1/capabilities shows it.
type Operation struct {
	Service, Name string
	Description   string
	Repeatable    bool // doing it twice does no harm: see Operations.Repeatable
}

// Operations are what a service and its workers can do. The server and each worker has a
// value of its own; they should agree on what there is.
type Operations interface {
	// List says what there is.
	List() []Operation
	// Check says whether a request can be run, before it is accepted: that there is such an
	// operation, and that the inputs are what it takes. The error is a *Failure.
	Check(r esrp.Request) error
	// Repeatable says whether doing the same twice does no harm. What is not repeatable has
	// its payload's hash as its key, unless the caller gives one (contract 8).
	Repeatable(r esrp.Request) bool
	// Run does what a request asks for, until ctx ends. Errors that are no *Failure are
	// reported as UNKNOWN.
	Run(ctx context.Context, c Call) (Result, error)
}

// Call is a request that runs.
type Call struct {
	Job     string // its UUID: the same in each try
	Attempt int    // from 1
	Request esrp.Request

	// Progress tells who listens how far it is. It does not wait. What is told too fast may
	// be left out.
	Progress func(Progress)
}

// Progress is how far a job is. Current and Total are left out when they are zero.
type Progress struct {
	Message        string
	Current, Total int64
}

// Result is what a call produced.
type Result struct{ Outputs []Output }

// Output is one output. Data that is large, or no text, becomes an artifact.
type Output struct {
	Name, ContentType string
	Data              []byte
}

// Failure is an error with its code (contract 7).
type Failure struct {
	Code    esrp.Code
	Message string
	// Final says that asking again does not help, although the code says it may.
	Final   bool
	Details esrp.Value
}

func (f *Failure) Error() string { return f.Message }

// record writes a failure as responses have it.
func (f *Failure) record() *esrp.Error {
	// Messages quote what callers sent and what programs wrote.
	e := &esrp.Error{Code: f.Code, Message: strings.ToValidUTF8(f.Message, "\uFFFD"), Retryable: f.Code.Retryable() && !f.Final, Details: f.Details}
	if e.Retryable {
		after, strategy := uint64(retryAfter.Milliseconds()), esrp.Exponential
		e.RetryAfterMS, e.RetryStrategy = &after, &strategy
	}
	return e
}
