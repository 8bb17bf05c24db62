package e2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// FieldError is an envelope or a frame that can not be read.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// DecodeEnvelope reads an envelope from JSON. See EnvelopeFrom.
func DecodeEnvelope(doc []byte) (Envelope, error) {
	data, err := decodeObject(doc)
	if err != nil {
		return Envelope{}, err
	}
	return EnvelopeFrom(data)
}

// DecodeResponse reads a frame from JSON. See ResponseFrom.
func DecodeResponse(doc []byte) (Response, error) {
	data, err := decodeObject(doc)
	if err != nil {
		return Response{}, err
	}
	return ResponseFrom(data)
}

// decodeObject keeps numbers as they are written.
func decodeObject(doc []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var data map[string]any
	if err := dec.Decode(&data); err != nil {
		return nil, fmt.Errorf("invalid JSON object: %w", jsonrpc.Explain(doc, err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	if data == nil {
		return nil, errors.New("null is no JSON object")
	}
	return data, nil
}

// EnvelopeFrom reads an envelope, older spellings included, in the order of contract 3.2:
// binding, payload, metadata, app_id, channel_id, req_method, workspace_dir, and times as
// numbers. What it does not know is dropped. The error is a *FieldError. Numbers may be
// json.Number or float64.
func EnvelopeFrom(data map[string]any) (Envelope, error) {
	f := &fields{data: data}
	e := Envelope{
		ProtocolVersion:     f.textOr("protocol_version", ProtocolVersion),
		Provenance:          provenance(data["provenance"]),
		RequestID:           f.text("request_id"),
		JSONRPCID:           f.id("jsonrpc_id"),
		CorrelationID:       f.text("correlation_id"),
		TaskID:              f.text("task_id"),
		ContextID:           f.text("context_id"),
		SessionID:           f.text("session_id"),
		MessageID:           f.text("message_id"),
		Timestamp:           f.timestamp(),
		IdentityOrigin:      f.origin(OriginUser),
		Channel:             f.first("channel", "channel_id"),
		UserID:              f.text("user_id"),
		AgentRef:            f.agentRef(),
		ChatID:              f.text("chat_id"),
		SourceAgentID:       f.text("source_agent_id"),
		AgentID:             f.trimmed("agent_id", "source_agent_id"),
		ServiceID:           f.trimmed("service_id"),
		WorkspaceKey:        f.trimmed("workspace_key", "workspace_dir"),
		Method:              f.first("method", "req_method"),
		Params:              f.params(),
		ExtMethod:           f.text("ext_method"),
		SessionUpdateKind:   f.text("session_update_kind"),
		IsStream:            truthy(data["is_stream"]),
		ExpectedOutputModes: f.texts("expected_output_modes"),
		Auth:                f.auth(),
		ChannelContext:      f.channelContext(),
		A2AMetadata:         f.object("a2a_metadata"),
		ACPMeta:             f.object("acp_meta"),
	}
	e.Provenance.migrateBinding(data["binding"])
	return e, f.failed()
}

// ResponseFrom reads a frame (contract 3.3). A status of null is in_progress.
func ResponseFrom(data map[string]any) (Response, error) {
	f := &fields{data: data}
	r := Response{
		ProtocolVersion: f.textOr("protocol_version", ProtocolVersion),
		ResponseID:      f.textOr("response_id", ""),
		RequestID:       f.text("request_id"),
		Sequence:        f.sequence(),
		IsFinal:         truthy(data["is_final"]),
		Status:          Status(f.textOr("status", string(InProgress))),
		Kind:            ResponseKind(f.textOr("response_kind", "")),
		Timestamp:       f.timestamp(),
		Provenance:      provenance(data["provenance"]),
		Body:            f.object("body"),
		JSONRPCID:       f.id("jsonrpc_id"),
		CorrelationID:   f.text("correlation_id"),
		TaskID:          f.text("task_id"),
		ContextID:       f.text("context_id"),
		SessionID:       f.text("session_id"),
		MessageID:       f.text("message_id"),
		IsStream:        truthy(data["is_stream"]),
		IdentityOrigin:  f.origin(OriginAgent),
		Channel:         f.first("channel", "channel_id"),
		UserID:          f.text("user_id"),
		AgentRef:        f.agentRef(),
		SourceAgentID:   f.text("source_agent_id"),
		Method:          f.text("method"),
		Projections:     f.object("projections"),
		ChannelContext:  f.object("channel_context"),
		Metadata:        f.object("metadata"),
		A2AMetadata:     f.object("a2a_metadata"),
		ACPMeta:         f.object("acp_meta"),
	}
	return r, f.failed()
}

// provenance reads one; what is none is the default.
func provenance(v any) Provenance {
	data, ok := v.(map[string]any)
	p := Provenance{SourceProtocol: ProtocolE2A}
	if !ok {
		return p
	}
	if source, ok := data["source_protocol"]; ok {
		p.SourceProtocol = plain(source)
	}
	f := &fields{data: data}
	p.Converter, p.ConvertedAt = f.text("converter"), f.text("converted_at")
	details, _ := data["details"].(map[string]any)
	p.Details = maps.Clone(details)
	return p
}

// migrateBinding takes over what once said which protocol a call came from.
func (p *Provenance) migrateBinding(binding any) {
	if o, ok := binding.(map[string]any); ok {
		if value, ok := o["value"]; ok {
			binding = value
		}
	}
	if binding == nil || p.Details["migrated_from_binding"] != nil {
		return
	}
	if p.Details == nil {
		p.Details = map[string]any{}
	}
	name := plain(binding)
	p.Details["migrated_from_binding"] = name
	if p.SourceProtocol == ProtocolE2A && (name == ProtocolACP || name == ProtocolA2A) {
		p.SourceProtocol = name
	}
}
