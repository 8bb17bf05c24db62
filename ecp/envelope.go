package ecp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Codes of errors (1.3).
const (
	CodeParse          = -32700 // no JSON
	CodeInvalidRequest = -32600 // no object, or not JSON-RPC 2.0
	CodeNoMethod       = -32601 // a method that the agent does not have
	CodeInvalidParams  = -32602 // params that are no object, or values that cannot be
	CodeFailed         = -32000 // the agent could not do it

	CodeVersionUnsupported = -32001 // agent/initialize: the agent does not speak the runtime's version
)

// version of JSON-RPC that both sides speak.
const version = "2.0"

// Error is a JSON-RPC error, in either direction.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Errorf makes an error with a code.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Request is a call, or a notification if ID is nil. An id of null is a call too (1.3).
type Request struct {
	ID     json.RawMessage // the raw token, to be echoed as it came
	Method string
	Params json.RawMessage // an object; {} if none were sent

	// Answer is set if the message is no request but the answer to one: agents call
	// nothing, so it is ignored.
	Answer bool
}

// MarshalJSON writes the envelope with its keys in the order of the contract's examples.
func (r Request) MarshalJSON() ([]byte, error) {
	params := r.Params
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	return plain(struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		ID      json.RawMessage `json:"id,omitempty"`
	}{version, r.Method, params, r.ID})
}

// ParseRequest reads what a runtime sent. Together with an error comes as much of the
// request as could be read: its id is that of the answer (null if there is none), and an
// error about the params of a notification is not answered at all.
func ParseRequest(raw []byte) (Request, *Error) {
	if !utf8.Valid(raw) {
		return Request{}, Errorf(CodeParse, "Parse error: the message is not UTF-8")
	}
	if !json.Valid(raw) {
		return Request{}, Errorf(CodeParse, "Parse error: the message is not JSON")
	}
	fields, err := object(raw)
	if err != nil {
		return Request{}, Errorf(CodeInvalidRequest, "Invalid Request: the message %v", err)
	}
	req := Request{Params: json.RawMessage(`{}`)}
	if id, ok := fields["id"]; ok {
		switch kind(id) {
		case '{', '[', 't', 'f':
			return Request{}, Errorf(CodeInvalidRequest, "Invalid Request: id must be a string, a number or null")
		}
		req.ID = id
	}
	if string(fields["jsonrpc"]) != `"2.0"` {
		return req, Errorf(CodeInvalidRequest, `Invalid Request: jsonrpc must be "2.0"`)
	}
	if err := json.Unmarshal(fields["method"], &req.Method); err != nil || req.Method == "" {
		_, result := fields["result"]
		_, failure := fields["error"]
		if req.Answer = fields["method"] == nil && (result || failure); req.Answer {
			return req, nil
		}
		return req, Errorf(CodeInvalidRequest, "Invalid Request: method must be a non-empty string")
	}
	if params := fields["params"]; !null(params) {
		if kind(params) != '{' {
			return req, Errorf(CodeInvalidParams, "Invalid params: params must be an object")
		}
		req.Params = params
	}
	return req, nil
}

// Response is the answer to a call: a result or an error.
type Response struct {
	ID     json.RawMessage
	Result json.RawMessage
	Err    *Error
}

// MarshalJSON writes exactly one of result and error. No id is written as null.
func (r Response) MarshalJSON() ([]byte, error) {
	id := r.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	if r.Err != nil {
		return plain(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   *Error          `json:"error"`
		}{version, id, r.Err})
	}
	if r.Result == nil {
		return nil, errors.New("a response needs a result or an error")
	}
	return plain(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
	}{version, id, r.Result})
}

// ParseResponse reads what an agent answered: an object with jsonrpc, an id, and exactly
// one of result and error, where a key counts also if its value is null (1.3). Whose
// answer it is, the caller sees with Answers.
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

// parseError reads the error of a response. One without a message comes with the error
// about that: its code may be all that the caller needs.
func parseError(raw json.RawMessage) (*Error, error) {
	fields, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("error of the response %w", err)
	}
	e := &Error{Data: fields["data"]}
	if err := json.Unmarshal(fields["code"], &e.Code); err != nil || null(fields["code"]) {
		return nil, errors.New("code of the response's error must be a whole number")
	}
	if err := json.Unmarshal(fields["message"], &e.Message); err != nil || null(fields["message"]) {
		return e, errors.New("message of the response's error must be a string")
	}
	return e, nil
}

// Answers says whether the response answers the call with this id: the same value of the
// same type, so that neither "1" nor 1.0 answers 1.
func (r Response) Answers(id json.RawMessage) bool {
	return r.ID != nil && bytes.Equal(bytes.TrimSpace(r.ID), bytes.TrimSpace(id))
}

// IsResponse says whether an object that a peer sent is meant as a response, whatever is
// wrong with it: neither a notification nor the line of a log.
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
