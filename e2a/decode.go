package e2a

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// FieldError is the error for an invalid member of an envelope.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// decodeObject reads a JSON object.
func decodeObject(doc []byte) (Object, error) {
	var o Object
	if err := json.Unmarshal(doc, &o); err != nil {
		return nil, fmt.Errorf("invalid JSON object: %w", jsonrpc.Explain(doc, err))
	}
	if o == nil {
		return nil, errors.New("invalid JSON object: it is null")
	}
	return o, nil
}

// DecodeEnvelope decodes an envelope. It accepts older members (binding, payload, metadata, app_id,
// channel_id, req_method, workspace_dir) and times as numbers, with the precedence of
// e2a.md 3.2. It drops unknown members. The error for an invalid member is a *FieldError.
func DecodeEnvelope(doc []byte) (Envelope, error) {
	data, err := decodeObject(doc)
	if err != nil {
		return Envelope{}, err
	}
	f := &fields{data: data}
	e := Envelope{
		ProtocolVersion:     f.scalarOr("protocol_version", ProtocolVersion),
		Provenance:          provenance(data["provenance"]),
		RequestID:           f.scalar("request_id"),
		JSONRPCID:           f.id("jsonrpc_id"),
		CorrelationID:       f.scalar("correlation_id"),
		TaskID:              f.scalar("task_id"),
		ContextID:           f.scalar("context_id"),
		SessionID:           f.scalar("session_id"),
		MessageID:           f.scalar("message_id"),
		Timestamp:           f.timestamp(),
		IdentityOrigin:      f.origin(OriginUser),
		Channel:             f.firstScalar("channel", "channel_id"),
		UserID:              f.scalar("user_id"),
		AgentRef:            f.agentRef(),
		ChatID:              f.scalar("chat_id"),
		SourceAgentID:       f.scalar("source_agent_id"),
		AgentID:             f.firstTrimmed("agent_id", "source_agent_id"),
		ServiceID:           f.firstTrimmed("service_id"),
		WorkspaceKey:        f.firstTrimmed("workspace_key", "workspace_dir"),
		Method:              f.firstScalar("method", "req_method"),
		Params:              f.params(),
		ExtMethod:           f.scalar("ext_method"),
		SessionUpdateKind:   f.scalar("session_update_kind"),
		IsStream:            truthy(data["is_stream"]),
		ExpectedOutputModes: f.stringList("expected_output_modes"),
		Auth:                f.auth(),
		ChannelContext:      f.channelContext(),
		A2AMetadata:         f.object("a2a_metadata"),
		ACPMeta:             f.object("acp_meta"),
	}
	e.Provenance.migrateBinding(data["binding"])
	return e, f.asError()
}

// provenance decodes a provenance. It returns the default for an invalid one.
func provenance(v json.RawMessage) Provenance {
	data := asObject(v)
	p := Provenance{SourceProtocol: ProtocolE2A}
	if source, ok := data["source_protocol"]; ok {
		p.SourceProtocol = stringOrJSON(source)
	}
	f := &fields{data: data}
	p.Converter, p.ConvertedAt, p.Details = f.scalar("converter"), f.scalar("converted_at"), asObject(data["details"])
	return p
}

// migrateBinding takes the source protocol from the obsolete member "binding".
func (p *Provenance) migrateBinding(binding json.RawMessage) {
	if value, ok := asObject(binding)["value"]; ok {
		binding = value
	}
	if jsonrpc.IsNull(binding) || !jsonrpc.IsNull(p.Details["migrated_from_binding"]) {
		return
	}
	name := stringOrJSON(binding)
	p.Details = merge(p.Details, Object{"migrated_from_binding": raw(name)})
	if p.SourceProtocol == ProtocolE2A && (name == ProtocolACP || name == ProtocolA2A) {
		p.SourceProtocol = name
	}
}
