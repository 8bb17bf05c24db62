// Package e2a implements the envelope for calls from any protocol and the frames that answer them:
// E2A 1.0 (docs/contracts/e2a.md).
//
// It owns the types, the compatible spellings and their precedence (DecodeEnvelope), the rules for
// a well-formed stream of frames (Stream), and the content blocks of prompts.
//
// E2A was first implemented by a program in Python, which comments call the first implementation. Some
// rules for reading envelopes exist only because that program has them.
//
// It does no input or output, has no state and does not use the engine: e2a/gateway does. Functions
// do not change their arguments.
package e2a

import "encoding/json"

// ProtocolVersion is written into every envelope and frame.
const ProtocolVersion = "1.0"

// Envelope is a request, with all fields that e2a.md 1.1 lists. Nil pointers are encoded as null,
// nil maps and lists as empty ones. It has more than 25 fields because the specification does.
type Envelope struct {
	ProtocolVersion string          `json:"protocol_version"`
	Provenance      Provenance      `json:"provenance"`
	RequestID       *string         `json:"request_id"`
	JSONRPCID       json.RawMessage `json:"jsonrpc_id"` // a string or a number
	CorrelationID   *string         `json:"correlation_id"`
	TaskID          *string         `json:"task_id"`
	ContextID       *string         `json:"context_id"`
	SessionID       *string         `json:"session_id"`
	MessageID       *string         `json:"message_id"`
	// Timestamp is the time of the message in RFC 3339, not that of the conversion.
	Timestamp      *string         `json:"timestamp"`
	IdentityOrigin IdentityOrigin  `json:"identity_origin"`
	Channel        *string         `json:"channel"`
	UserID         *string         `json:"user_id"`
	AgentRef       json.RawMessage `json:"agent_ref"` // an object
	ChatID         *string         `json:"chat_id"`
	SourceAgentID  *string         `json:"source_agent_id"`
	AgentID        *string         `json:"agent_id"`
	ServiceID      *string         `json:"service_id"`
	WorkspaceKey   *string         `json:"workspace_key"`
	// Method is an operation of eca, such as chat.send, or of the source protocol, such as
	// session/prompt; null is a heartbeat.
	Method              *string  `json:"method"`
	Params              Object   `json:"params"`
	ExtMethod           *string  `json:"ext_method"`
	SessionUpdateKind   *string  `json:"session_update_kind"`
	IsStream            bool     `json:"is_stream"`
	ExpectedOutputModes []string `json:"expected_output_modes"`
	Auth                *Auth    `json:"auth"`
	ChannelContext      Object   `json:"channel_context"`
	A2AMetadata         Object   `json:"a2a_metadata"`
	ACPMeta             Object   `json:"acp_meta"`
}

// Response is one frame of an answer, with all fields that e2a.md 1.2 lists. It has more than 25
// fields because the specification does.
type Response struct {
	ProtocolVersion string          `json:"protocol_version"`
	ResponseID      string          `json:"response_id"` // of this frame only
	RequestID       *string         `json:"request_id"`
	Sequence        int64           `json:"sequence"` // 0, 1, 2, ... for a request
	IsFinal         bool            `json:"is_final"` // the last frame, whether the request succeeded or failed
	Status          Status          `json:"status"`
	Kind            ResponseKind    `json:"response_kind"`
	Timestamp       *string         `json:"timestamp"`
	Provenance      Provenance      `json:"provenance"`
	Body            json.RawMessage `json:"body"` // an object
	JSONRPCID       json.RawMessage `json:"jsonrpc_id"`
	CorrelationID   *string         `json:"correlation_id"`
	TaskID          *string         `json:"task_id"`
	ContextID       *string         `json:"context_id"`
	SessionID       *string         `json:"session_id"`
	MessageID       *string         `json:"message_id"`
	IsStream        bool            `json:"is_stream"`
	IdentityOrigin  IdentityOrigin  `json:"identity_origin"`
	Channel         *string         `json:"channel"`
	UserID          *string         `json:"user_id"`
	AgentRef        json.RawMessage `json:"agent_ref"` // an object
	SourceAgentID   *string         `json:"source_agent_id"`
	Method          *string         `json:"method"`
	// Projections are forms of the body for other protocols. Everything in them is also in the body.
	Projections    Object `json:"projections"`
	ChannelContext Object `json:"channel_context"`
	Metadata       Object `json:"metadata"`
	A2AMetadata    Object `json:"a2a_metadata"`
	ACPMeta        Object `json:"acp_meta"`
}

// Provenance is the origin of an envelope or a frame (e2a.md 1.3).
type Provenance struct {
	SourceProtocol string  `json:"source_protocol"` // e2a, acp or a2a
	Converter      *string `json:"converter"`
	ConvertedAt    *string `json:"converted_at"`
	Details        Object  `json:"details"`
}

// Auth contains credentials or references to them.
type Auth struct {
	MethodID      *string           `json:"method_id"`
	BearerToken   *string           `json:"bearer_token"`
	APIKeyRef     *string           `json:"api_key_ref"`
	CredentialRef *string           `json:"credential_ref"`
	ExtraHeaders  map[string]string `json:"extra_headers"`
	Meta          Object            `json:"_meta"`
}

// IdentityOrigin is the kind of the sender.
type IdentityOrigin string

// The origins.
const (
	OriginSystem  IdentityOrigin = "system"
	OriginUser    IdentityOrigin = "user"
	OriginAgent   IdentityOrigin = "agent"
	OriginService IdentityOrigin = "service"
)

// Status is the status of the request in a frame.
type Status string

// The states.
const (
	Succeeded  Status = "succeeded"
	Failed     Status = "failed"
	InProgress Status = "in_progress"
)

// ResponseKind is the kind of a frame's body (e2a.md 2).
type ResponseKind string

// The kinds of responses, with the members of their bodies.
const (
	KindComplete             ResponseKind = "e2a.complete"           // result
	KindChunk                ResponseKind = "e2a.chunk"              // delta_kind, delta
	KindError                ResponseKind = "e2a.error"              // code, message, details
	KindACPUpdate            ResponseKind = "acp.session_update"     // an update of ACP
	KindACPPromptResult      ResponseKind = "acp.prompt_result"      // stop_reason
	KindACPError             ResponseKind = "acp.jsonrpc_error"      // code, message, data
	KindACPOutputRequest     ResponseKind = "acp.output_request"     // a call for the client
	KindA2ATask              ResponseKind = "a2a.task"               // a task
	KindA2AMessage           ResponseKind = "a2a.message"            // a message
	KindA2AStreamEvent       ResponseKind = "a2a.stream_event"       // branch, payload
	KindCron                 ResponseKind = "cron"                   // command_id, action, status
	KindPlanApprovalRequired ResponseKind = "plan.approval_required" // plan_content, plan_slug
	KindExt                  ResponseKind = "ext"                    // ext_method, params
)

// Source protocols.
const (
	ProtocolE2A = "e2a"
	ProtocolACP = "acp"
	ProtocolA2A = "a2a"
)

// DeltaKind is the kind of a chunk's delta.
type DeltaKind string

// Kinds of deltas.
const (
	DeltaText      DeltaKind = "text"
	DeltaReasoning DeltaKind = "reasoning"
	DeltaTool      DeltaKind = "tool"
	DeltaCustom    DeltaKind = "custom"
)

// MethodPrompt is ACP's method that sends a prompt.
const MethodPrompt = "session/prompt"
