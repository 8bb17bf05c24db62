package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Error codes on the wire (eca-protocol.md section 12).
const (
	CodeParse            = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeNotInitialized   = -32002
	CodeRequestCancelled = -32800
	CodeRequestFailed    = -32803 // a valid request that failed
)

// Error is a JSON-RPC error object. Handlers return it to choose the code; any
// other error becomes CodeInternal with the error's text.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`

	// Members are additional members of the error object, for clients that expect them there. They
	// are not read from received errors.
	Members map[string]any `json:"-"`

	raw json.RawMessage // as received
}

func (e *Error) Error() string { return e.Message }

// Errorf builds an Error.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// MethodNotFound is the answer to a request without a handler.
func MethodNotFound(method string) *Error {
	data, _ := json.Marshal(map[string]string{"method": method})
	return &Error{Code: CodeMethodNotFound, Message: "Method not found", Data: data}
}

// asError maps an error to the one that the peer gets.
func asError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return Errorf(CodeRequestCancelled, "Request cancelled")
	}
	return Errorf(CodeInternal, "%v", err)
}

// UnmarshalJSON implements json.Unmarshaler. MarshalJSON writes the same bytes again.
func (e *Error) UnmarshalJSON(raw []byte) error {
	type members Error
	e.raw = bytes.Clone(raw)
	return json.Unmarshal(raw, (*members)(e))
}

// MarshalJSON implements json.Marshaler.
func (e *Error) MarshalJSON() ([]byte, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	type members Error
	out, err := marshal((*members)(e))
	if err != nil || len(e.Members) == 0 {
		return out, err
	}
	more, err := marshal(e.Members)
	return append(append(out[:len(out)-1], ','), more[1:]...), err
}
