// Package esrp implements the records of calls in ESRP 1.0: requests, responses and job events as
// Go values. It decodes, validates, hashes and canonicalizes them, parses workspace URIs, and
// defines the legal transitions of jobs. docs/contracts/esrp.md describes ESRP.
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

// DefaultTimeout is the time limit of requests that set none (esrp.md 1.1).
const DefaultTimeout = 10 * time.Minute

// Request is a request to a service (esrp.md 1.1). A nil pointer to a string means that the string
// is missing, which differs from an empty one. The tags of this type and the following ones are
// described in record.go.
type Request struct {
	Version         string   `esrp:"esrp_version"` // major.minor
	ID              UUID     `esrp:"request_id"`
	IdempotencyKey  *string  `esrp:"idempotency_key"`
	Timestamp       Instant  `esrp:"timestamp"`
	ScopeID         *UUID    `esrp:"scope_id"`     // groups related requests: a project, a task, a chat
	CausationID     *UUID    `esrp:"causation_id"` // the request that caused this one
	PayloadHash     *string  `esrp:"payload_hash"`
	Caller          Caller   `esrp:"caller"`
	Target          Target   `esrp:"target"`
	Mode            Mode     `esrp:"mode,omissible"`
	Context         *Context `esrp:"context"`
	Inputs          []Body   `esrp:"inputs"`
	Params          Value    `esrp:"params,omissible"` // null if missing
	ParamsSchemaRef *string  `esrp:"params_schema_ref"`
}

// Caller is the origin of a request.
type Caller struct {
	System  string  `esrp:"system"`
	AgentID *string `esrp:"agent_id"`
	RunID   *string `esrp:"run_id"`
}

// Target is the service and operation that a request is for.
type Target struct {
	Service   string  `esrp:"service"`
	Operation string  `esrp:"operation"`
	Variant   *string `esrp:"variant"`
}

// Mode determines whether the caller waits.
type Mode struct {
	Type      ModeType `esrp:"type"`
	TimeoutMS uint64   `esrp:"timeout_ms,omissible"`
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
	TraceID      UUID  `esrp:"trace_id"`
	SpanID       UUID  `esrp:"span_id"`
	ParentSpanID *UUID `esrp:"parent_span_id"`
	Tags         Value `esrp:"tags,omissible"`
}

// Body is an input of a request or an output of a response. Data is text; Encoding is its encoding.
type Body struct {
	Name        string   `esrp:"name"`
	ContentType string   `esrp:"content_type"`
	Data        string   `esrp:"data"`
	Encoding    Encoding `esrp:"encoding"`
	Metadata    Value    `esrp:"metadata,omissible"`
}

// Encoding determines how to read a body's data.
type Encoding string

// The encodings.
const (
	UTF8   Encoding = "utf-8"
	Base64 Encoding = "base64"
	Path   Encoding = "path" // a workspace URI, or a file's path
)

// Response answers a request (esrp.md 1.2).
type Response struct {
	Version   string     `esrp:"esrp_version"`
	RequestID UUID       `esrp:"request_id"`
	Status    Status     `esrp:"status"`
	Outputs   []Body     `esrp:"outputs,omissible"`
	Artifacts []Artifact `esrp:"artifacts,omissible"`
	Timing    *Timing    `esrp:"timing"`
	Job       *Job       `esrp:"job"`
	Error     *Error     `esrp:"error"`
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
	AcceptedAt *Instant `esrp:"accepted_at"`
	StartedAt  *Instant `esrp:"started_at"`
	FinishedAt *Instant `esrp:"finished_at"`
	// Duration is set with Millis. A decoded response with a duration has no typed canonical form,
	// even if it is an integer (esrp.md 4, rule 6), because the reference stores it as a
	// floating-point number.
	Duration *millis `esrp:"duration_ms"`
}

// millis is a number of milliseconds.
type millis struct {
	literal string
	ours    bool // set with Timing.Millis
}

// Millis sets the duration in whole milliseconds.
func (t *Timing) Millis(d time.Duration) {
	t.Duration = &millis{IntValue(d.Milliseconds()).Text, true}
}

// Artifact is a file that a call created.
type Artifact struct {
	ID        UUID         `esrp:"artifact_id"`
	Kind      ArtifactKind `esrp:"kind"`
	URI       string       `esrp:"uri"`
	SHA256    string       `esrp:"sha256"`
	SizeBytes uint64       `esrp:"size_bytes"`
	Retention Retention    `esrp:"retention"`
}

// ArtifactKind is file or blob.
type ArtifactKind string

// The kinds of artifacts.
const (
	File ArtifactKind = "file"
	Blob ArtifactKind = "blob"
)

// Retention is how long an artifact is kept (esrp.md 6).
type Retention string

// The retentions.
const (
	Ephemeral Retention = "ephemeral" // until the response is sent
	Run       Retention = "run"       // until its run ends
	Pinned    Retention = "pinned"    // until it is removed explicitly
)

// Job is the state of asynchronous work.
type Job struct {
	ID    UUID     `esrp:"job_id"`
	State JobState `esrp:"state"`
}

// Error is the reason why a call failed (esrp.md 7).
type Error struct {
	Code          Code           `esrp:"code"`
	Message       string         `esrp:"message"`
	Details       Value          `esrp:"details,omissible"`
	Retryable     bool           `esrp:"retryable,omissible"`
	RetryAfterMS  *uint64        `esrp:"retry_after_ms"`
	RetryStrategy *RetryStrategy `esrp:"retry_strategy"`
	MaxRetries    *uint32        `esrp:"max_retries"`
}

// RetryStrategy is how to wait between retries.
type RetryStrategy string

// The strategies.
const (
	Exponential RetryStrategy = "exponential"
	Linear      RetryStrategy = "linear"
	Immediate   RetryStrategy = "immediate"
)

// JobEvent is a step of a job (esrp.md 1.3).
type JobEvent struct {
	Type      JobEventType `esrp:"event_type"`
	JobID     UUID         `esrp:"job_id"`
	Timestamp Instant      `esrp:"timestamp"`
	Data      Value        `esrp:"data"`
}

// JobEventType is the type of a job event.
type JobEventType string

// The events of a job (esrp.md 9).
const (
	JobQueuedEvent    JobEventType = "job_queued"
	JobStartedEvent   JobEventType = "job_started"
	JobProgressEvent  JobEventType = "job_progress"
	ArtifactCreated   JobEventType = "artifact_created"
	JobCompletedEvent JobEventType = "job_completed"
	JobFailedEvent    JobEventType = "job_failed"
	JobCancelledEvent JobEventType = "job_cancelled"
)
