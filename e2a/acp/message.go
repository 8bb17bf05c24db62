package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// message is one of JSON-RPC 2.0: a request, a notification or an answer.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"` // nil: none
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`

	ctx context.Context // ends when the request is cancelled; set for requests
}

// request says whether an answer is wanted.
func (m message) request() bool { return m.Method != "" && m.ID != nil }

// answer says whether it answers a request of ours.
func (m message) answer() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// rpcError is an error as JSON-RPC tells it (acp-a2a.md A1).
type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Codes of errors.
const (
	codeParse     = -32700
	codeRequest   = -32600 // no request, or none that can come now
	codeMethod    = -32601
	codeParams    = -32602
	codeInternal  = -32603
	codeCancelled = -32800
	codeNotFound  = -32002
)

func failure(code int64, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// asError is what an error is told as.
func asError(err error) *rpcError {
	var known *rpcError
	if errors.As(err, &known) {
		return known
	}
	return failure(codeInternal, "%v", err)
}

// readMessage reads a line. What is no message is an error that its sender can be told,
// under the id if there is one.
func readMessage(line []byte) (message, *rpcError) {
	var m message
	if !json.Valid(line) {
		return m, failure(codeParse, "the line is no JSON")
	}
	if line[0] != '{' {
		return m, failure(codeRequest, "a message is one JSON object")
	}
	var id struct {
		ID json.RawMessage `json:"id"`
	}
	err := json.Unmarshal(line, &m)
	if err != nil {
		_ = json.Unmarshal(line, &id) // which has what the message is answered under
		err = jsonrpc.Explain(line, err)
	}
	if m.ID = bytes.TrimSpace(m.ID); len(m.ID) == 0 {
		m.ID = id.ID
	}
	switch {
	case len(m.ID) == 0:
		m.ID = nil
	case m.ID[0] == '{' || m.ID[0] == '[' || m.ID[0] == 't' || m.ID[0] == 'f':
		return message{}, failure(codeRequest, "an id is a string or a number")
	}
	switch {
	case err != nil:
		return message{ID: m.ID}, failure(codeRequest, "%v", err)
	case m.JSONRPC != "2.0":
		return message{ID: m.ID}, failure(codeRequest, "jsonrpc must be \"2.0\"")
	case m.Method == "" && !m.answer():
		return message{ID: m.ID}, failure(codeRequest, "there is no method")
	}
	return m, nil
}

// decode reads the parameters of a request. Optional ones that are malformed count as
// absent where their types say so.
func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 || isEmptyList(raw) {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return failure(codeParams, "params: %v", jsonrpc.Explain(raw, err))
	}
	return nil
}

// isEmptyList says whether a value is []: what clients in Lua write for an empty object.
func isEmptyList(raw json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && list != nil && len(list) == 0
}

// listOf is a list that a client in Lua may have written as {}, since it is empty there.
type listOf[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *listOf[T]) UnmarshalJSON(raw []byte) error {
	var none map[string]json.RawMessage
	if json.Unmarshal(raw, &none) == nil && len(none) == 0 {
		*l = nil
		return nil
	}
	return json.Unmarshal(raw, (*[]T)(l))
}

// lenient is an optional value: one that is malformed is as if it were not there (A1).
type lenient[T any] struct{ Value T }

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var v T
	if json.Unmarshal(raw, &v) == nil {
		l.Value = v
	}
	return nil
}
