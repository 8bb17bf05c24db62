package esrp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// DecodeError is the error for JSON that is not a valid record.
type DecodeError struct {
	Field  string // path of the invalid field, such as inputs[0].name; empty for the record itself
	Reason string
}

func (e *DecodeError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// DecodeRequest decodes a request (contract 1.1) without validating it; see Request.Validate. The
// error is a *SyntaxError or a *DecodeError.
func DecodeRequest(doc []byte) (Request, error) {
	v, err := Parse(doc)
	if err != nil {
		return Request{}, err
	}
	return RequestOf(v)
}

// RequestOf converts a value to a request.
func RequestOf(v Value) (Request, error) {
	d := &decoder{}
	r := request(d.record(v, ""))
	return r, d.failed()
}

// DecodeResponse decodes a response (contract 1.2) without validating it; see Response.Validate. The
// error is a *SyntaxError or a *DecodeError.
func DecodeResponse(doc []byte) (Response, error) {
	v, err := Parse(doc)
	if err != nil {
		return Response{}, err
	}
	return ResponseOf(v)
}

// ResponseOf converts a value to a response.
func ResponseOf(v Value) (Response, error) {
	d := &decoder{}
	r := response(d.record(v, ""))
	return r, d.failed()
}

// DecodeJobEvent decodes an event of a job (contract 1.3).
func DecodeJobEvent(doc []byte) (JobEvent, error) {
	v, err := Parse(doc)
	if err != nil {
		return JobEvent{}, err
	}
	d := &decoder{}
	f := d.record(v, "")
	e := JobEvent{
		Type:  choice(f, "event_type", jobEventTypes...),
		JobID: f.uuid("job_id"), Timestamp: f.instant("timestamp"), Data: f.any("data", true),
	}
	return e, d.failed()
}

var jobEventTypes = []JobEventType{
	JobQueuedEvent, JobStartedEvent, JobProgressEvent, ArtifactCreated, JobCompletedEvent, JobFailedEvent, JobCancelledEvent,
}

func request(f fields) Request {
	return Request{
		Version:         f.string("esrp_version"),
		ID:              f.uuid("request_id"),
		IdempotencyKey:  f.optional("idempotency_key"),
		Timestamp:       f.instant("timestamp"),
		ScopeID:         f.optionalUUID("scope_id"),
		CausationID:     f.optionalUUID("causation_id"),
		PayloadHash:     f.optional("payload_hash"),
		Caller:          caller(f.child("caller")),
		Target:          target(f.child("target")),
		Mode:            mode(f),
		Context:         tracing(f),
		Inputs:          list(f, "inputs", true, body),
		Params:          f.any("params", false),
		ParamsSchemaRef: f.optional("params_schema_ref"),
	}
}

func caller(f fields) Caller {
	return Caller{System: f.string("system"), AgentID: f.optional("agent_id"), RunID: f.optional("run_id")}
}

func target(f fields) Target {
	return Target{Service: f.string("service"), Operation: f.string("operation"), Variant: f.optional("variant")}
}

func mode(f fields) Mode {
	if !f.has("mode") {
		return Mode{Sync, uint64(DefaultTimeout.Milliseconds())}
	}
	f = f.child("mode")
	m := Mode{Type: choice(f, "type", Sync, Async), TimeoutMS: uint64(DefaultTimeout.Milliseconds())}
	if f.has("timeout_ms") {
		m.TimeoutMS = f.uint("timeout_ms", math.MaxUint64)
	}
	return m
}

func tracing(f fields) *Context {
	if f.absent("context") {
		return nil
	}
	f = f.child("context")
	return &Context{TraceID: f.uuid("trace_id"), SpanID: f.uuid("span_id"), ParentSpanID: f.optionalUUID("parent_span_id"), Tags: f.any("tags", false)}
}

func body(f fields) Body {
	return Body{
		Name: f.string("name"), ContentType: f.string("content_type"), Data: f.string("data"),
		Encoding: choice(f, "encoding", UTF8, Base64, Path), Metadata: f.any("metadata", false),
	}
}

func response(f fields) Response {
	r := Response{
		Version:   f.string("esrp_version"),
		RequestID: f.uuid("request_id"),
		Status:    choice(f, "status", Succeeded, Failed, Accepted),
		Outputs:   list(f, "outputs", false, body),
		Artifacts: list(f, "artifacts", false, artifact),
	}
	if !f.absent("timing") {
		t := f.child("timing")
		r.Timing = &Timing{AcceptedAt: t.optionalInstant("accepted_at"), StartedAt: t.optionalInstant("started_at"), FinishedAt: t.optionalInstant("finished_at")}
		if v, ok := t.optionalKind("duration_ms", Number); ok {
			r.Timing.Duration = v.Text
		}
	}
	if !f.absent("job") {
		j := f.child("job")
		r.Job = &Job{ID: j.uuid("job_id"), State: choice(j, "state", jobStates...)}
	}
	if !f.absent("error") {
		r.Error = callError(f.child("error"))
	}
	return r
}

func artifact(f fields) Artifact {
	return Artifact{
		ID: f.uuid("artifact_id"), Kind: choice(f, "kind", File, Blob), URI: f.string("uri"), SHA256: f.string("sha256"),
		SizeBytes: f.uint("size_bytes", math.MaxUint64), Retention: choice(f, "retention", Ephemeral, Run, Pinned),
	}
}

func callError(f fields) *Error {
	e := &Error{Code: choice(f, "code", codes...), Message: f.string("message"), Details: f.any("details", false)}
	if f.has("retryable") {
		e.Retryable = f.kind("retryable", Bool).Bool
	}
	if !f.absent("retry_after_ms") {
		n := f.uint("retry_after_ms", math.MaxUint64)
		e.RetryAfterMS = &n
	}
	if !f.absent("retry_strategy") {
		s := choice(f, "retry_strategy", Exponential, Linear, Immediate)
		e.RetryStrategy = &s
	}
	if !f.absent("max_retries") {
		n := uint32(f.uint("max_retries", math.MaxUint32))
		e.MaxRetries = &n
	}
	return e
}

// decoder remembers the first error. Values that are decoded after an error are meaningless.
type decoder struct{ err *DecodeError }

func (d *decoder) failed() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

func (d *decoder) fail(field, format string, args ...any) {
	if d.err == nil {
		d.err = &DecodeError{field, fmt.Sprintf(format, args...)}
	}
}

// fields are the members of a record.
type fields struct {
	d    *decoder
	at   string
	from Value
}

func (d *decoder) record(v Value, at string) fields {
	if v.Kind != Object {
		d.fail(at, "expected an object, not %s", v.Kind)
		return fields{d, at, Value{Kind: Object}}
	}
	return fields{d, at, v}
}

// get returns a member, which must not be repeated. Unknown members are ignored, repeated or not.
func (f fields) get(key string) (Value, bool) {
	n := 0
	for _, m := range f.from.Members {
		if m.Key == key {
			n++
		}
	}
	if n > 1 {
		f.d.fail(f.path(key), "duplicate field")
	}
	return f.from.Get(key)
}

func (f fields) path(key string) string {
	if f.at == "" {
		return key
	}
	return f.at + "." + key
}

// has reports whether a member exists, even if it is null.
func (f fields) has(key string) bool {
	_, ok := f.get(key)
	return ok
}

// absent reports whether a member is missing or null.
func (f fields) absent(key string) bool {
	v, _ := f.get(key)
	return v.Kind == Null
}

func (f fields) kind(key string, want Kind) Value {
	v, ok := f.get(key)
	switch {
	case !ok:
		f.d.fail(f.path(key), "missing field")
	case v.Kind != want:
		f.d.fail(f.path(key), "expected %s, not %s", want, v.Kind)
		return Value{Kind: want}
	}
	return v
}

func (f fields) optionalKind(key string, want Kind) (Value, bool) {
	if f.absent(key) {
		return Value{}, false
	}
	return f.kind(key, want), true
}

func (f fields) child(key string) fields { return f.d.record(f.kind(key, Object), f.path(key)) }

func (f fields) string(key string) string { return f.kind(key, String).Text }

func (f fields) optional(key string) *string {
	if v, ok := f.optionalKind(key, String); ok {
		return &v.Text
	}
	return nil
}

// any returns a member of any kind, or null if it is missing.
func (f fields) any(key string, required bool) Value {
	v, ok := f.get(key)
	if !ok && required {
		f.d.fail(f.path(key), "missing field")
	}
	return v
}

func (f fields) uuid(key string) UUID {
	id, err := ParseUUID(f.string(key))
	if err != nil {
		f.d.fail(f.path(key), "%v", err)
	}
	return id
}

func (f fields) optionalUUID(key string) *UUID {
	if f.absent(key) {
		return nil
	}
	id := f.uuid(key)
	return &id
}

func (f fields) instant(key string) Instant {
	at, err := ParseInstant(f.string(key))
	if err != nil {
		f.d.fail(f.path(key), "%v", err)
	}
	return at
}

func (f fields) optionalInstant(key string) *Instant {
	if f.absent(key) {
		return nil
	}
	at := f.instant(key)
	return &at
}

func (f fields) uint(key string, limit uint64) uint64 {
	literal := f.kind(key, Number).Text
	n, err := strconv.ParseUint(literal, 10, 64)
	if err != nil || n > limit {
		f.d.fail(f.path(key), "%s is not a whole number from 0 to %d", literal, limit)
		return 0
	}
	return n
}

// choice reads a string, which must be one of several.
func choice[T ~string](f fields, key string, of ...T) T {
	v := T(f.string(key))
	if !slices.Contains(of, v) {
		words := make([]string, len(of))
		for i, w := range of {
			words[i] = string(w)
		}
		f.d.fail(f.path(key), "%q is none of %s", string(v), strings.Join(words, ", "))
	}
	return v
}

// list reads an array of records. A missing array is empty unless it is required; null is never
// valid.
func list[T any](f fields, key string, required bool, read func(fields) T) []T {
	if !required && !f.has(key) {
		return nil
	}
	items := f.kind(key, Array).Items
	out := make([]T, len(items))
	for i, item := range items {
		out[i] = read(f.d.record(item, fmt.Sprintf("%s[%d]", f.path(key), i)))
	}
	return out
}
