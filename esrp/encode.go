package esrp

import "strconv"

// Value returns the record as the reference encodes it (contract 4, "typed"): with defaults, without
// missing optional members, and with UUIDs and times in canonical form.
func (r Request) Value() Value {
	o := object{}
	o.string("esrp_version", r.Version)
	o.string("request_id", r.ID.String())
	o.optional("idempotency_key", r.IdempotencyKey)
	o.string("timestamp", r.Timestamp.String())
	o.uuid("scope_id", r.ScopeID)
	o.uuid("causation_id", r.CausationID)
	o.optional("payload_hash", r.PayloadHash)
	o.add("caller", r.Caller.value())
	o.add("target", r.Target.value())
	o.add("mode", ObjectValue(Member{"type", StringValue(string(r.Mode.Type))}, Member{"timeout_ms", uintValue(r.Mode.TimeoutMS)}))
	if c := r.Context; c != nil {
		var t object
		t.string("trace_id", c.TraceID.String())
		t.string("span_id", c.SpanID.String())
		t.uuid("parent_span_id", c.ParentSpanID)
		t.add("tags", c.Tags)
		o.add("context", t.value())
	}
	o.add("inputs", listValue(r.Inputs))
	o.add("params", r.Params)
	o.optional("params_schema_ref", r.ParamsSchemaRef)
	return o.value()
}

func (c Caller) value() Value {
	var o object
	o.string("system", c.System)
	o.optional("agent_id", c.AgentID)
	o.optional("run_id", c.RunID)
	return o.value()
}

func (t Target) value() Value {
	var o object
	o.string("service", t.Service)
	o.string("operation", t.Operation)
	o.optional("variant", t.Variant)
	return o.value()
}

// Value returns a body in the form that requests contain.
func (b Body) Value() Value { return b.value() }

// value returns the members in canonical order, so that they need not be sorted later: a request may
// have one body for each message of a long conversation.
func (b Body) value() Value {
	return ObjectValue(
		Member{"content_type", StringValue(b.ContentType)},
		Member{"data", StringValue(b.Data)},
		Member{"encoding", StringValue(string(b.Encoding))},
		Member{"metadata", b.Metadata},
		Member{"name", StringValue(b.Name)},
	)
}

// Value returns the record as the reference encodes it; see Request.Value.
func (r Response) Value() Value {
	var o object
	o.string("esrp_version", r.Version)
	o.string("request_id", r.RequestID.String())
	o.string("status", string(r.Status))
	if r.Timing != nil {
		o.add("timing", r.Timing.value())
	}
	if len(r.Outputs) > 0 {
		o.add("outputs", listValue(r.Outputs))
	}
	if len(r.Artifacts) > 0 {
		o.add("artifacts", listValue(r.Artifacts))
	}
	if r.Job != nil {
		o.add("job", ObjectValue(Member{"job_id", StringValue(r.Job.ID.String())}, Member{"state", StringValue(string(r.Job.State))}))
	}
	if r.Error != nil {
		o.add("error", r.Error.value())
	}
	return o.value()
}

func (t Timing) value() Value {
	var o object
	o.instant("accepted_at", t.AcceptedAt)
	o.instant("started_at", t.StartedAt)
	o.instant("finished_at", t.FinishedAt)
	if t.Duration != "" {
		literal := t.Duration
		if !t.ours && isInteger(literal) {
			literal += ".0" // a floating-point number, which the reference refuses to hash
		}
		o.add("duration_ms", Value{Kind: Number, Text: literal})
	}
	return o.value()
}

func (a Artifact) value() Value {
	var o object
	o.string("artifact_id", a.ID.String())
	o.string("kind", string(a.Kind))
	o.string("uri", a.URI)
	o.string("sha256", a.SHA256)
	o.add("size_bytes", uintValue(a.SizeBytes))
	o.string("retention", string(a.Retention))
	return o.value()
}

func (e Error) value() Value {
	var o object
	o.string("code", string(e.Code))
	o.string("message", e.Message)
	o.add("retryable", BoolValue(e.Retryable))
	if e.RetryAfterMS != nil {
		o.add("retry_after_ms", uintValue(*e.RetryAfterMS))
	}
	if e.RetryStrategy != nil {
		o.string("retry_strategy", string(*e.RetryStrategy))
	}
	if e.MaxRetries != nil {
		o.add("max_retries", uintValue(uint64(*e.MaxRetries)))
	}
	o.add("details", e.Details)
	return o.value()
}

// Value returns the event in the form for listeners (contract 1.3).
func (e JobEvent) Value() Value {
	var o object
	o.string("event_type", string(e.Type))
	o.string("job_id", e.JobID.String())
	o.string("timestamp", e.Timestamp.String())
	o.add("data", e.Data)
	return o.value()
}

// HashPayload returns the hash of a request's target, inputs and parameters, which identifies the
// request (contract 5). The caller, the time and the reason are not part of it. The error wraps
// ErrFloat if the parameters contain a number that cannot be hashed.
func (r Request) HashPayload() (string, error) { return r.hashPayload(listValue(r.Inputs)) }

func (r Request) hashPayload(inputs Value) (string, error) {
	variant := Value{}
	if r.Target.Variant != nil {
		variant = StringValue(*r.Target.Variant)
	}
	return ObjectValue(
		Member{"inputs", inputs},
		Member{"params", r.Params},
		Member{"target", ObjectValue(Member{"operation", StringValue(r.Target.Operation)}, Member{"service", StringValue(r.Target.Service)}, Member{"variant", variant})},
	).Hash()
}

// Sealed returns Value with the hash of the payload. Its error is that of HashPayload.
func (r Request) Sealed() (Value, error) { return r.SealedWith(listValue(r.Inputs)) }

// SealedWith is Sealed with other inputs: an array of bodies, which may be Canonicalized.
func (r Request) SealedWith(inputs Value) (Value, error) {
	r.PayloadHash, r.Inputs = nil, nil
	v := r.Value()
	for i := range v.Members {
		if v.Members[i].Key == "inputs" {
			v.Members[i].Value = inputs
		}
	}
	hash, err := r.hashPayload(inputs)
	if err != nil {
		return v, err
	}
	v.Members = append(v.Members, Member{"payload_hash", StringValue(hash)})
	return v, nil
}

// object collects members.
type object struct{ members []Member }

func (o *object) value() Value            { return ObjectValue(o.members...) }
func (o *object) add(key string, v Value) { o.members = append(o.members, Member{key, v}) }
func (o *object) string(key, v string)    { o.add(key, StringValue(v)) }
func (o *object) optional(key string, v *string) {
	if v != nil {
		o.string(key, *v)
	}
}

func (o *object) uuid(key string, v *UUID) {
	if v != nil {
		o.string(key, v.String())
	}
}

func (o *object) instant(key string, v *Instant) {
	if v != nil {
		o.string(key, v.String())
	}
}

func uintValue(n uint64) Value { return Value{Kind: Number, Text: strconv.FormatUint(n, 10)} }

func listValue[T interface{ value() Value }](records []T) Value {
	v := Value{Kind: Array, Items: make([]Value, len(records))}
	for i, r := range records {
		v.Items[i] = r.value()
	}
	return v
}
