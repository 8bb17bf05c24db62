// Package esrp is what eca knows about ESRP 1.0, the records of calls: requests,
// responses and job events as Go values, how they are read, checked, written in canonical
// form and hashed, what workspace URIs may say, and which way a job may go. The contract
// is esrp.md; its sections are named where they apply.
//
// Guarantees: what Decode accepted is written by Canonical byte for byte as the reference
// writes it (testdata/vectors.json holds that); a hash is one of canonical bytes; a URI that
// ParseURI accepted names something inside its namespace, however it was spelled.
//
// The package does no input or output and keeps nothing. Who stores files by their hash is
// esrp/artifact; the journal and the service are rooms of their own.
package esrp

import "time"

// Version is the version of records that we write.
const Version = "1.0"

// DefaultTimeout is a request's time limit when it says none (contract 1.1).
const DefaultTimeout = 10 * time.Minute

// Request asks a service for something (contract 1.1). Strings that are pointers may be
// absent, which is not the same as empty.
type Request struct {
	Version         string // major.minor
	ID              UUID
	IdempotencyKey  *string
	Timestamp       Instant
	ScopeID         *UUID // what belongs together: a project, a task, a chat
	CausationID     *UUID // the request that led to this one
	PayloadHash     *string
	Caller          Caller
	Target          Target
	Mode            Mode
	Context         *Context
	Inputs          []Body
	Params          Value // null when absent
	ParamsSchemaRef *string
}

// Caller is who asks.
type Caller struct {
	System         string
	AgentID, RunID *string
}

// Target is who is asked, and for what.
type Target struct {
	Service, Operation string
	Variant            *string
}

// Mode says whether the caller waits.
type Mode struct {
	Type      ModeType
	TimeoutMS uint64
}

// ModeType is sync or async.
type ModeType string

// Ways to call.
const (
	Sync  ModeType = "sync"
	Async ModeType = "async"
)

// Context is for tracing.
type Context struct {
	TraceID, SpanID UUID
	ParentSpanID    *UUID
	Tags            Value
}

// Body is an input of a request or an output of a response. Data is text; Encoding says of
// what.
type Body struct {
	Name, ContentType, Data string
	Encoding                Encoding
	Metadata                Value
}

// Encoding says how to read a body's data.
type Encoding string

// Encodings.
const (
	UTF8   Encoding = "utf-8"
	Base64 Encoding = "base64"
	Path   Encoding = "path" // a workspace URI, or a file's path
)

// Response answers a request (contract 1.2).
type Response struct {
	Version   string
	RequestID UUID
	Status    Status
	Timing    *Timing
	Outputs   []Body
	Artifacts []Artifact
	Job       *Job
	Error     *Error
}

// Status of a response.
type Status string

// States of a response.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Accepted  Status = "accepted"
)

// Timing says when things happened.
type Timing struct {
	AcceptedAt, StartedAt, FinishedAt *Instant
	// Duration is a number's literal, or empty. A response that was decoded with one has no
	// typed canonical form, whatever its digits are (contract 4, rule 6): the reference
	// holds it as a floating-point number. What we make ourselves with Millis has.
	Duration string
	ours     bool
}

// Millis sets the duration in whole milliseconds.
func (t *Timing) Millis(d time.Duration) {
	t.Duration, t.ours = IntValue(d.Milliseconds()).Text, true
}

// Artifact is a file that a call made.
type Artifact struct {
	ID        UUID
	Kind      ArtifactKind
	URI       string
	SHA256    string
	SizeBytes uint64
	Retention Retention
}

// ArtifactKind is file or blob.
type ArtifactKind string

// Kinds of artifacts.
const (
	File ArtifactKind = "file"
	Blob ArtifactKind = "blob"
)

// Retention says how long an artifact stays (contract 6).
type Retention string

// Retentions.
const (
	Ephemeral Retention = "ephemeral" // until the response is sent
	Run       Retention = "run"       // until its run ends
	Pinned    Retention = "pinned"    // until somebody removes it
)

// Job is where asynchronous work stands.
type Job struct {
	ID    UUID
	State JobState
}

// Error says why a call failed (contract 7).
type Error struct {
	Code          Code
	Message       string
	Retryable     bool
	RetryAfterMS  *uint64
	RetryStrategy *RetryStrategy
	MaxRetries    *uint32
	Details       Value
}

// RetryStrategy says how to wait between tries.
type RetryStrategy string

// Strategies.
const (
	Exponential RetryStrategy = "exponential"
	Linear      RetryStrategy = "linear"
	Immediate   RetryStrategy = "immediate"
)

// JobEvent is a step of a job (contract 1.3).
type JobEvent struct {
	Type      JobEventType
	JobID     UUID
	Timestamp Instant
	Data      Value
}

// JobEventType says what happened.
type JobEventType string

// Events of a job (contract 9).
const (
	JobQueuedEvent    JobEventType = "job_queued"
	JobStartedEvent   JobEventType = "job_started"
	JobProgressEvent  JobEventType = "job_progress"
	ArtifactCreated   JobEventType = "artifact_created"
	JobCompletedEvent JobEventType = "job_completed"
	JobFailedEvent    JobEventType = "job_failed"
	JobCancelledEvent JobEventType = "job_cancelled"
)
