// Package e2a is the envelope that calls come in, whatever protocol they came over, and
// the frames that answer them: E2A 1.0 as contract e2a.md has it. Sections of the contract
// are named where they apply.
//
// It owns the types, what is read for compatibility and in which precedence
// (EnvelopeFrom, ResponseFrom), what a well-formed stream of frames is (Stream enforces
// it, Check finds what breaks it), the adapters from and to the wire shapes of ACP and
// A2A, and what of it all may be logged.
//
// It reads nothing from anywhere, keeps nothing and knows no engine: that is e2a/gateway.
// What functions are given they do not change.
package e2a

// ProtocolVersion is written into every envelope and frame.
const ProtocolVersion = "1.0"

// Envelope is a request (contract 1.1). Pointers are null when nil; maps and lists are
// written as empty ones when nil.
type Envelope struct {
	ProtocolVersion string     `json:"protocol_version"`
	Provenance      Provenance `json:"provenance"`
	RequestID       *string    `json:"request_id"`
	JSONRPCID       any        `json:"jsonrpc_id"` // string, json.Number or nil
	CorrelationID   *string    `json:"correlation_id"`
	TaskID          *string    `json:"task_id"`
	ContextID       *string    `json:"context_id"`
	SessionID       *string    `json:"session_id"`
	MessageID       *string    `json:"message_id"`
	// Timestamp is when it was said, in RFC 3339; not when it was converted.
	Timestamp      *string        `json:"timestamp"`
	IdentityOrigin IdentityOrigin `json:"identity_origin"`
	Channel        *string        `json:"channel"`
	UserID         *string        `json:"user_id"`
	AgentRef       map[string]any `json:"agent_ref"` // null when nil
	ChatID         *string        `json:"chat_id"`
	SourceAgentID  *string        `json:"source_agent_id"`
	AgentID        *string        `json:"agent_id"`
	ServiceID      *string        `json:"service_id"`
	WorkspaceKey   *string        `json:"workspace_key"`
	// Method is an operation of ours, as chat.send, or one of the source protocol, as
	// session/prompt; null is a heartbeat.
	Method              *string        `json:"method"`
	Params              map[string]any `json:"params"`
	ExtMethod           *string        `json:"ext_method"`
	SessionUpdateKind   *string        `json:"session_update_kind"`
	IsStream            bool           `json:"is_stream"`
	ExpectedOutputModes []string       `json:"expected_output_modes"`
	Auth                *Auth          `json:"auth"`
	ChannelContext      map[string]any `json:"channel_context"`
	A2AMetadata         map[string]any `json:"a2a_metadata"`
	ACPMeta             map[string]any `json:"acp_meta"`
}

// Response is one frame of an answer (contract 1.2).
type Response struct {
	ProtocolVersion string         `json:"protocol_version"`
	ResponseID      string         `json:"response_id"` // of this frame alone
	RequestID       *string        `json:"request_id"`
	Sequence        int64          `json:"sequence"` // 0, 1, 2, ... for a request
	IsFinal         bool           `json:"is_final"` // nothing follows; not success
	Status          Status         `json:"status"`
	Kind            ResponseKind   `json:"response_kind"`
	Timestamp       *string        `json:"timestamp"`
	Provenance      Provenance     `json:"provenance"`
	Body            map[string]any `json:"body"`
	JSONRPCID       any            `json:"jsonrpc_id"`
	CorrelationID   *string        `json:"correlation_id"`
	TaskID          *string        `json:"task_id"`
	ContextID       *string        `json:"context_id"`
	SessionID       *string        `json:"session_id"`
	MessageID       *string        `json:"message_id"`
	IsStream        bool           `json:"is_stream"`
	IdentityOrigin  IdentityOrigin `json:"identity_origin"`
	Channel         *string        `json:"channel"`
	UserID          *string        `json:"user_id"`
	AgentRef        map[string]any `json:"agent_ref"`
	SourceAgentID   *string        `json:"source_agent_id"`
	Method          *string        `json:"method"`
	// Projections are wire shapes made in advance; hints, never the only source.
	Projections    map[string]any `json:"projections"`
	ChannelContext map[string]any `json:"channel_context"`
	Metadata       map[string]any `json:"metadata"`
	A2AMetadata    map[string]any `json:"a2a_metadata"`
	ACPMeta        map[string]any `json:"acp_meta"`
}

// Provenance says where an envelope or a frame was made (contract 1.3).
type Provenance struct {
	SourceProtocol string         `json:"source_protocol"` // e2a, acp or a2a
	Converter      *string        `json:"converter"`
	ConvertedAt    *string        `json:"converted_at"`
	Details        map[string]any `json:"details"`
}

// FileRef is the recommended shape of what params.files and params.attachments list.
type FileRef struct {
	URI      string         `json:"uri"`
	Name     *string        `json:"name"`
	MIMEType *string        `json:"mime_type"`
	Size     *int64         `json:"size"` // in bytes
	Meta     map[string]any `json:"_meta"`
}

// Auth refers to credentials, or holds them: see Redacted.
type Auth struct {
	MethodID      *string           `json:"method_id"`
	BearerToken   *string           `json:"bearer_token"`
	APIKeyRef     *string           `json:"api_key_ref"`
	CredentialRef *string           `json:"credential_ref"`
	ExtraHeaders  map[string]string `json:"extra_headers"`
	Meta          map[string]any    `json:"_meta"`
}

// IdentityOrigin says who speaks.
type IdentityOrigin string

// Origins.
const (
	OriginSystem  IdentityOrigin = "system"
	OriginUser    IdentityOrigin = "user"
	OriginAgent   IdentityOrigin = "agent"
	OriginService IdentityOrigin = "service"
)

// Status of a frame.
type Status string

// States.
const (
	Succeeded  Status = "succeeded"
	Failed     Status = "failed"
	InProgress Status = "in_progress"
)

// ResponseKind says what a frame's body is (contract 2).
type ResponseKind string

// Kinds of responses. Bodies are described in contract 6.
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

// DeltaKind says what a chunk's delta is.
type DeltaKind string

// Kinds of deltas.
const (
	DeltaText      DeltaKind = "text"
	DeltaReasoning DeltaKind = "reasoning"
	DeltaTool      DeltaKind = "tool"
	DeltaCustom    DeltaKind = "custom"
)

// MethodPrompt is ACP's method that sends a prompt; MethodExt stands for ext_method.
const (
	MethodPrompt = "session/prompt"
	MethodExt    = "ext"
)
