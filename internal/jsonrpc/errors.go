package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.lsp.dev/jsonrpc2"
)

// Error codes on the wire (eca-protocol section 12).
const (
	codeParse            = -32700
	codeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeNotInitialized   = -32002
	CodeRequestCancelled = -32800
	CodeRequestFailed    = -32803 // a valid request that could not be served
)

// Error is a JSON-RPC error object. Handlers return it to choose the code; any
// other error becomes CodeInternal with the error's text.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage

	// Members are added to the error object, beside the others. They are for clients
	// that look for something there; they are not sent in a batch, and not received.
	Members map[string]any
}

func (e *Error) Error() string { return e.Message }

// Errorf builds an Error.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// MethodNotFound is the answer to a request nobody handles.
func MethodNotFound(method string) *Error {
	data, _ := json.Marshal(map[string]string{"method": method})
	return &Error{Code: CodeMethodNotFound, Message: "Method not found", Data: data}
}

// wireError maps a handler's error to the module's error object.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return &jsonrpc2.Error{Code: jsonrpc2.Code(e.Code), Message: e.Message, Data: jsonrpc2.RawMessage(e.Data)}
	case errors.Is(err, context.Canceled):
		return &jsonrpc2.Error{Code: CodeRequestCancelled, Message: "Request cancelled"}
	default:
		return &jsonrpc2.Error{Code: CodeInternal, Message: err.Error()}
	}
}

// localError maps the module's error object back for callers of Conn.Call.
func localError(err error) error {
	var e *jsonrpc2.Error
	if errors.As(err, &e) {
		return &Error{Code: int(e.Code), Message: e.Message, Data: json.RawMessage(e.Data)}
	}
	return err
}
