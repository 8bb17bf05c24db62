package e2a

import (
	"bytes"
	"encoding/json"
)

// Every declared field is written, null and empty ones too (contract 3.1): the types'
// tags say so, and the methods here make empty objects and lists of what is nil.

// MarshalJSON writes an envelope.
func (e Envelope) MarshalJSON() ([]byte, error) {
	type plain Envelope
	e.Params, e.ChannelContext = filled(e.Params), filled(e.ChannelContext)
	e.A2AMetadata, e.ACPMeta = filled(e.A2AMetadata), filled(e.ACPMeta)
	if e.ExpectedOutputModes == nil {
		e.ExpectedOutputModes = []string{}
	}
	return encode(plain(e))
}

// MarshalJSON writes a frame.
func (r Response) MarshalJSON() ([]byte, error) {
	type plain Response
	r.Body, r.Projections, r.ChannelContext = filled(r.Body), filled(r.Projections), filled(r.ChannelContext)
	r.Metadata, r.A2AMetadata, r.ACPMeta = filled(r.Metadata), filled(r.A2AMetadata), filled(r.ACPMeta)
	return encode(plain(r))
}

// MarshalJSON writes a provenance.
func (p Provenance) MarshalJSON() ([]byte, error) {
	type plain Provenance
	if p.SourceProtocol == "" {
		p.SourceProtocol = ProtocolE2A
	}
	p.Details = filled(p.Details)
	return encode(plain(p))
}

// MarshalJSON writes credentials as they are; see Envelope.Redacted.
func (a Auth) MarshalJSON() ([]byte, error) {
	type plain Auth
	if a.ExtraHeaders == nil {
		a.ExtraHeaders = map[string]string{}
	}
	a.Meta = filled(a.Meta)
	return encode(plain(a))
}

// MarshalJSON writes a reference to a file.
func (r FileRef) MarshalJSON() ([]byte, error) {
	type plain FileRef
	r.Meta = filled(r.Meta)
	return encode(plain(r))
}

func filled(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// encode writes JSON in which characters of HTML stay what they are.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Line writes an envelope or a frame as one line of JSON, its newline included.
func Line(v any) ([]byte, error) {
	out, err := encode(v)
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// redacted takes the place of a secret.
const redacted = "[redacted]"

// Redacted returns the envelope without secrets, for logs: tokens and the values of extra
// headers. References to credentials stay; they are what makes a log worth reading.
func (e Envelope) Redacted() Envelope {
	if e.Auth == nil {
		return e
	}
	a := *e.Auth
	if a.BearerToken != nil {
		hidden := redacted
		a.BearerToken = &hidden
	}
	headers := map[string]string{}
	for name := range a.ExtraHeaders {
		headers[name] = redacted
	}
	a.ExtraHeaders, a.Meta = headers, nil
	e.Auth = &a
	return e
}

// LogLine is what is logged of a frame (contract 6): what it takes to sort and to replay,
// and not what it says.
func (r Response) LogLine() ([]byte, error) {
	return Line(struct {
		RequestID  *string      `json:"request_id"`
		ResponseID string       `json:"response_id"`
		Sequence   int64        `json:"sequence"`
		IsFinal    bool         `json:"is_final"`
		Status     Status       `json:"status"`
		Kind       ResponseKind `json:"response_kind"`
		Timestamp  *string      `json:"timestamp"`
	}{r.RequestID, r.ResponseID, r.Sequence, r.IsFinal, r.Status, r.Kind, r.Timestamp})
}
