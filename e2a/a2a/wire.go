package a2a

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// state is the state of a task in the notation of A2A 1.0.
type state string

const (
	submitted     state = "TASK_STATE_SUBMITTED"
	working       state = "TASK_STATE_WORKING"
	inputRequired state = "TASK_STATE_INPUT_REQUIRED"
	authRequired  state = "TASK_STATE_AUTH_REQUIRED"
	completed     state = "TASK_STATE_COMPLETED"
	failed        state = "TASK_STATE_FAILED"
	canceled      state = "TASK_STATE_CANCELED"
	rejected      state = "TASK_STATE_REJECTED"
)

func states() []state {
	return []state{submitted, working, inputRequired, authRequired, completed, failed, canceled, rejected}
}

// ended reports whether the state is final.
func (s state) ended() bool {
	return s == completed || s == failed || s == canceled || s == rejected
}

const (
	roleUser  = "ROLE_USER"
	roleAgent = "ROLE_AGENT"
)

type message struct {
	Kind             string          `json:"kind,omitempty"` // 0.3
	MessageID        string          `json:"messageId"`
	ContextID        string          `json:"contextId,omitempty"`
	TaskID           string          `json:"taskId,omitempty"`
	Role             string          `json:"role"`
	Parts            []part          `json:"parts"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
	Extensions       []string        `json:"extensions,omitempty"`
	ReferenceTaskIDs []string        `json:"referenceTaskIds,omitempty"`
}

type status struct {
	State     state    `json:"state"`
	Message   *message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp"`
}

type artifact struct {
	ArtifactID string `json:"artifactId"`
	Name       string `json:"name,omitempty"`
	Parts      []part `json:"parts"`
}

type task struct {
	Kind      string          `json:"kind,omitempty"` // 0.3
	ID        string          `json:"id"`
	ContextID string          `json:"contextId"`
	Status    status          `json:"status"`
	Artifacts []artifact      `json:"artifacts,omitzero"`
	History   []message       `json:"history,omitzero"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

type statusUpdate struct {
	TaskID    string          `json:"taskId"`
	ContextID string          `json:"contextId"`
	Status    status          `json:"status"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

type artifactUpdate struct {
	TaskID    string   `json:"taskId"`
	ContextID string   `json:"contextId"`
	Artifact  artifact `json:"artifact"`
	Append    bool     `json:"append,omitempty"`
	LastChunk bool     `json:"lastChunk,omitempty"`
}

// event is an event of a stream: exactly one member is set.
type event struct {
	Task     *task           `json:"task,omitempty"`
	Status   *statusUpdate   `json:"statusUpdate,omitempty"`
	Artifact *artifactUpdate `json:"artifactUpdate,omitempty"`
}

// formatTime formats a time as A2A requires: UTC, with milliseconds.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// errorInfo gives the reason of an error in machine-readable form (google.rpc.ErrorInfo).
type errorInfo struct {
	Type   string `json:"@type"`
	Domain string `json:"domain"`
	Reason string `json:"reason"`
}

// The codes of JSON-RPC and of A2A.
const (
	codeParse         = jsonrpc.CodeParse
	codeRequest       = jsonrpc.CodeInvalidRequest
	codeMethod        = jsonrpc.CodeMethodNotFound
	codeParams        = jsonrpc.CodeInvalidParams
	codeInternal      = jsonrpc.CodeInternal
	codeNotFound      = -32001
	codeNotCancelable = -32002
	codeNoPush        = -32003
	codeUnsupported   = -32004
	codeContentType   = -32005
	codeVersion       = -32009
)

// failure returns an error for the caller. It adds a machine-readable reason to the codes that A2A
// defines.
func failure(code int, format string, args ...any) *jsonrpc.Error {
	e := jsonrpc.Errorf(code, format, args...)
	reasons := map[int]string{
		codeNotFound: "TASK_NOT_FOUND", codeNotCancelable: "TASK_NOT_CANCELABLE", codeNoPush: "PUSH_NOTIFICATION_NOT_SUPPORTED",
		codeUnsupported: "UNSUPPORTED_OPERATION", codeContentType: "CONTENT_TYPE_NOT_SUPPORTED", codeVersion: "VERSION_NOT_SUPPORTED",
	}
	if reason, ok := reasons[code]; ok {
		e.Data = encode([]errorInfo{{"type.googleapis.com/google.rpc.ErrorInfo", "a2a-protocol.org", reason}})
	}
	return e
}

// asError converts an error to one for the caller.
func asError(err error) *jsonrpc.Error {
	var known *jsonrpc.Error
	if errors.As(err, &known) {
		return known
	}
	return failure(codeInternal, "%v", err)
}

// sendParams are the parameters of SendMessage and SendStreamingMessage.
type sendParams struct {
	Message       *message        `json:"message"`
	Configuration configuration   `json:"configuration"`
	Metadata      messageSettings `json:"metadata"`
}

// messageSettings are the members of the metadata of a message that eca reads.
type messageSettings struct {
	Model   e2a.Optional[string]  `json:"model"`
	Agent   e2a.Optional[string]  `json:"agent"`
	Variant e2a.Optional[*string] `json:"variant"`
}

type configuration struct {
	AcceptedOutputModes []string `json:"acceptedOutputModes"`
	ReturnImmediately   bool     `json:"returnImmediately"`
	HistoryLength       *int     `json:"historyLength"`

	Push *pushConfig `json:"taskPushNotificationConfig"`

	Blocking   *bool       `json:"blocking"`               // 0.3; missing means true
	LegacyPush *pushConfig `json:"pushNotificationConfig"` // 0.3
}

// encode encodes a value whose encoding cannot fail.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// decode decodes params. The error for a wrong type names the member.
func decode(raw json.RawMessage, into any) error {
	if jsonrpc.IsNull(raw) {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return failure(codeParams, "params: %v", jsonrpc.Explain(raw, err))
	}
	return nil
}
