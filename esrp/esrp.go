// Package esrp implements the records of calls in ESRP 1.0: requests, responses and job events as
// Go values. It decodes, validates, hashes and canonicalizes them, parses workspace URIs, and
// defines the legal transitions of jobs. The contract is esrp.md; comments cite its sections.
//
// Guarantees: Canonical encodes records byte for byte as the reference does (testdata/vectors.json
// checks that). A hash is always that of canonical bytes. A URI that ParseURI accepts names a path
// inside its namespace, whatever escapes it contains.
//
// The package does no input or output and has no state. esrp/artifact stores files by their hash;
// the journal and the service are separate packages.
package esrp

import "time"

// Version is the version of the records that eca writes.
const Version = "1.0"

// DefaultTimeout is the time limit of requests that set none (contract 1.1).
const DefaultTimeout = 10 * time.Minute

// Request is a request to a service (contract 1.1). A nil pointer to a string means that the string is
// missing, which differs from an empty one.
type Request struct {
	Version         string // major.minor
	ID              UUID
	IdempotencyKey  *string
	Timestamp       Instant
	ScopeID         *UUID // groups related requests: a project, a task, a chat
	CausationID     *UUID // the request that caused this one
	PayloadHash     *string
	Caller          Caller
	Target          Target
	Mode            Mode
	Context         *Context
	Inputs          []Body
	Params          Value // null if missing
	ParamsSchemaRef *string
}

// Caller is the origin of a request.
type Caller struct {
	System         string
	AgentID, RunID *string
}

// Target is the service and operation that a request is for.
type Target struct {
	Service, Operation string
	Variant            *string
}

// Mode determines whether the caller waits.
type Mode struct {
	Type      ModeType
	TimeoutMS uint64
}

// ModeType is sync or async.
type ModeType string

// The modes of a call.
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

// Body is an input of a request or an output of a response. Data is text; Encoding is its encoding.
type Body struct {
	Name, ContentType, Data string
	Encoding                Encoding
	Metadata                Value
}

// Encoding determines how to read a body's data.
type Encoding string

// The encodings.
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

// The states of a response.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Accepted  Status = "accepted"
)

// Timing contains the times of a call.
type Timing struct {
	AcceptedAt, StartedAt, FinishedAt *Instant
	// Duration is the literal of a number in milliseconds, or empty. A decoded response with a duration
	// has no typed canonical form, even if it is an integer (contract 4, rule 6), because the reference
	// stores it as a floating-point number. A duration set with Millis has one.
	Duration string
	ours     bool // Duration was set with Millis
}

// Millis sets the duration in whole milliseconds.
func (t *Timing) Millis(d time.Duration) {
	t.Duration, t.ours = IntValue(d.Milliseconds()).Text, true
}

// Artifact is a file that a call created.
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

// The kinds of artifacts.
const (
	File ArtifactKind = "file"
	Blob ArtifactKind = "blob"
)

// Retention is how long an artifact is kept (contract 6).
type Retention string

// The retentions.
const (
	Ephemeral Retention = "ephemeral" // until the response is sent
	Run       Retention = "run"       // until its run ends
	Pinned    Retention = "pinned"    // until it is removed explicitly
)

// Job is the state of asynchronous work.
type Job struct {
	ID    UUID
	State JobState
}

// Error is the reason why a call failed (contract 7).
type Error struct {
	Code          Code
	Message       string
	Retryable     bool
	RetryAfterMS  *uint64
	RetryStrategy *RetryStrategy
	MaxRetries    *uint32
	Details       Value
}

// RetryStrategy is how to wait between retries.
type RetryStrategy string

// The strategies.
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

// JobEventType is the type of a job event.
type JobEventType string

// The events of a job (contract 9).
const (
	JobQueuedEvent    JobEventType = "job_queued"
	JobStartedEvent   JobEventType = "job_started"
	JobProgressEvent  JobEventType = "job_progress"
	ArtifactCreated   JobEventType = "artifact_created"
	JobCompletedEvent JobEventType = "job_completed"
	JobFailedEvent    JobEventType = "job_failed"
	JobCancelledEvent JobEventType = "job_cancelled"
)
