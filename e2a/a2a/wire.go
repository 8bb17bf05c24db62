package a2a

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// state of a task, as A2A 1.0 writes it.
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

// ended says whether nothing follows.
func (s state) ended() bool {
	return s == completed || s == failed || s == canceled || s == rejected
}

const (
	roleUser  = "ROLE_USER"
	roleAgent = "ROLE_AGENT"
)

// part is one of text, raw, url and data, with filename, mediaType and metadata.
type part = map[string]any

type message struct {
	MessageID        string         `json:"messageId"`
	ContextID        string         `json:"contextId,omitempty"`
	TaskID           string         `json:"taskId,omitempty"`
	Role             string         `json:"role"`
	Parts            []part         `json:"parts"`
	Metadata         map[string]any `json:"metadata,omitempty"`
	Extensions       []string       `json:"extensions,omitempty"`
	ReferenceTaskIDs []string       `json:"referenceTaskIds,omitempty"`
}

type status struct {
	State     state    `json:"state"`
	Message   *message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp"`
}

type artifact struct {
	ArtifactID string         `json:"artifactId"`
	Name       string         `json:"name,omitempty"`
	Parts      []part         `json:"parts"`
	Metadata   map[string]any `json:"metadata,omitempty"`
}

type task struct {
	ID        string         `json:"id"`
	ContextID string         `json:"contextId"`
	Status    status         `json:"status"`
	Artifacts []artifact     `json:"artifacts,omitempty"`
	History   []message      `json:"history,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

type statusUpdate struct {
	TaskID    string         `json:"taskId"`
	ContextID string         `json:"contextId"`
	Status    status         `json:"status"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

type artifactUpdate struct {
	TaskID    string   `json:"taskId"`
	ContextID string   `json:"contextId"`
	Artifact  artifact `json:"artifact"`
	Append    bool     `json:"append,omitempty"`
	LastChunk bool     `json:"lastChunk,omitempty"`
}

// event is one of a stream's: exactly one is set.
type event struct {
	Task     *task           `json:"task,omitempty"`
	Status   *statusUpdate   `json:"statusUpdate,omitempty"`
	Artifact *artifactUpdate `json:"artifactUpdate,omitempty"`
}

// stamp writes a time as A2A has it: UTC, with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// rpcError is an error on the wire.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    []any  `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

// Codes of JSON-RPC, and of A2A.
const (
	codeParse         = -32700
	codeRequest       = -32600
	codeMethod        = -32601
	codeParams        = -32602
	codeInternal      = -32603
	codeNotFound      = -32001
	codeNotCancelable = -32002
	codeNoPush        = -32003
	codeUnsupported   = -32004
	codeContentType   = -32005
	codeVersion       = -32009
)

// failure makes an error. Those of A2A name their reason for machines.
func failure(code int, format string, args ...any) *rpcError {
	e := &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
	reasons := map[int]string{
		codeNotFound: "TASK_NOT_FOUND", codeNotCancelable: "TASK_NOT_CANCELABLE", codeNoPush: "PUSH_NOTIFICATION_NOT_SUPPORTED",
		codeUnsupported: "UNSUPPORTED_OPERATION", codeContentType: "CONTENT_TYPE_NOT_SUPPORTED", codeVersion: "VERSION_NOT_SUPPORTED",
	}
	if reason, ok := reasons[code]; ok {
		e.Data = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}}
	}
	return e
}

// sendParams are those of SendMessage and SendStreamingMessage.
type sendParams struct {
	Message       *message       `json:"message"`
	Configuration configuration  `json:"configuration"`
	Metadata      map[string]any `json:"metadata"`
}

type configuration struct {
	AcceptedOutputModes []string `json:"acceptedOutputModes"`
	ReturnImmediately   bool     `json:"returnImmediately"`
	HistoryLength       *int     `json:"historyLength"`

	Push *pushConfig `json:"taskPushNotificationConfig"`

	Blocking   *bool       `json:"blocking"`               // 0.3's; nothing said is true
	LegacyPush *pushConfig `json:"pushNotificationConfig"` // 0.3's
}

// decode reads params. What is of the wrong type is an error that says where.
func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return failure(codeParams, "params: %v", jsonrpc.Explain(raw, err))
	}
	return nil
}
