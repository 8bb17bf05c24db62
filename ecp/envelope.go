package ecp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// Codes of errors (docs/contracts/ecp.md 1.3).
const (
	CodeParse          = jsonrpc.CodeParse          // invalid JSON
	CodeInvalidRequest = jsonrpc.CodeInvalidRequest // not an object, or not JSON-RPC 2.0
	CodeNoMethod       = jsonrpc.CodeMethodNotFound // a method that the agent does not have
	CodeInvalidParams  = jsonrpc.CodeInvalidParams  // params that are not an object, or have invalid values
	CodeFailed         = -32000                     // the agent failed

	CodeVersionUnsupported = -32001 // agent/initialize: the agent does not support the runtime's version
)

// version of JSON-RPC that both sides speak.
const version = "2.0"

// Error is a JSON-RPC error, in either direction.
type Error = jsonrpc.Error

// Errorf makes an error with a code.
func Errorf(code int, format string, args ...any) *Error {
	return jsonrpc.Errorf(code, format, args...)
}

// Request is a call, or a notification if ID is nil. A message with a null id is a call too
// (docs/contracts/ecp.md 1.3).
type Request struct {
	ID     json.RawMessage // the raw token, echoed unchanged
	Method string
	Params json.RawMessage // an object; {} if none were sent

	// IsAnswer is set if the message is a response. Agents send no calls, so they ignore it.
	IsAnswer bool
}

// MarshalJSON writes the envelope with its keys in the order of the specification's examples.
func (r Request) MarshalJSON() ([]byte, error) {
	params := r.Params
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	return jsonrpc.Marshal(struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		ID      json.RawMessage `json:"id,omitempty"`
	}{version, r.Method, params, r.ID})
}

// ParseRequest reads a message from a runtime. With an error, it also returns what it could read of
// the request, because the answer needs the request's id (null if it has none). A notification with
// invalid params gets no answer.
func ParseRequest(raw []byte) (Request, *Error) {
	if bad := jsonrpc.Check(raw); bad != nil {
		return Request{}, Errorf(bad.Code, "Parse error: %s", bad.Message)
	}
	m, bad := jsonrpc.Decode(raw)
	if bad != nil {
		return Request{ID: m.ID}, Errorf(bad.Code, "Invalid Request: %s", bad.Message)
	}
	req := Request{ID: m.ID, Method: m.Method, Params: json.RawMessage(`{}`), IsAnswer: m.IsAnswer()}
	if m.Params != nil {
		if kind(m.Params) != '{' {
			return req, Errorf(CodeInvalidParams, "Invalid params: params must be an object")
		}
		req.Params = m.Params
	}
	return req, nil
}

// Response is the answer to a call: a result or an error.
type Response struct {
	ID     json.RawMessage
	Result json.RawMessage
	Err    *Error
}

// MarshalJSON writes exactly one of result and error. A missing id is written as null.
func (r Response) MarshalJSON() ([]byte, error) {
	var callErr error
	switch {
	case r.Err != nil:
		callErr = r.Err
	case r.Result == nil:
		return nil, errors.New("a response needs a result or an error")
	}
	return jsonrpc.Respond(r.ID, r.Result, callErr).Encode(), nil
}

// ParseResponse reads an answer of an agent: an object with jsonrpc, an id, and exactly one of
// result and error. A key is present even if its value is null (docs/contracts/ecp.md 1.3). Answers
// tells the caller which call it belongs to.
func ParseResponse(raw []byte) (Response, error) {
	fields, err := object(raw)
	if err != nil {
		return Response{}, fmt.Errorf("the response %w", err)
	}
	r := Response{ID: fields["id"]}
	result, hasResult := fields["result"]
	failure, hasError := fields["error"]
	switch {
	case string(fields["jsonrpc"]) != `"2.0"`:
		return r, errors.New(`jsonrpc of the response must be "2.0"`)
	case r.ID == nil:
		return r, errors.New("the response has no id")
	case hasResult == hasError:
		return r, errors.New("the response must have exactly one of result and error")
	case hasResult:
		r.Result = result
		return r, nil
	}
	r.Err, err = parseError(failure)
	return r, err
}

// parseError reads the error of a response. If it has no message, parseError returns it with an
// error about that: the caller may only need its code.
func parseError(raw json.RawMessage) (*Error, error) {
	fields, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("error of the response %w", err)
	}
	e := &Error{Data: fields["data"]}
	if err := json.Unmarshal(fields["code"], &e.Code); err != nil || jsonrpc.IsNull(fields["code"]) {
		return nil, errors.New("code of the response's error must be a whole number")
	}
	if err := json.Unmarshal(fields["message"], &e.Message); err != nil || jsonrpc.IsNull(fields["message"]) {
		return e, errors.New("message of the response's error must be a string")
	}
	return e, nil
}

// Answers reports whether the response answers the call with this id. The values and types must be
// equal: neither "1" nor 1.0 answers 1.
func (r Response) Answers(id json.RawMessage) bool {
	return r.ID != nil && bytes.Equal(bytes.TrimSpace(r.ID), bytes.TrimSpace(id))
}

// IsResponse reports whether an object that a peer sent is meant as a response, even an invalid
// one, and not as a notification or a line of a log.
func IsResponse(raw json.RawMessage) bool {
	fields, err := object(raw)
	if err != nil {
		return false
	}
	_, result := fields["result"]
	_, failure := fields["error"]
	_, call := fields["method"]
	_, envelope := fields["jsonrpc"]
	_, id := fields["id"]
	return !call && (envelope && (result || failure) || id && result)
}
