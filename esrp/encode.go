package esrp

// Value returns the record as the reference encodes it (esrp.md 4, "typed"): with defaults, without
// missing optional members, and with UUIDs and times in canonical form.
func (r Request) Value() Value { return encodeRecord(r) }

// Value returns a body in the form that requests contain.
func (b Body) Value() Value { return encodeRecord(b) }

// Value returns the record as the reference encodes it; see Request.Value.
func (r Response) Value() Value { return encodeRecord(r) }

// Value returns the event in the form for listeners (esrp.md 1.3).
func (e JobEvent) Value() Value { return encodeRecord(e) }

// HashPayload returns the hash of a request's target, inputs and parameters, which identifies the
// request (esrp.md 5). The caller, the time and the reason are not part of it. The error wraps
// ErrFloat if the parameters contain a number that cannot be hashed.
func (r Request) HashPayload() (string, error) { return r.hashPayload(encodeRecord(r.Inputs)) }

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
func (r Request) Sealed() (Value, error) { return r.SealedWith(encodeRecord(r.Inputs)) }

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
