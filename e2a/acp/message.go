package acp

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// The codes of errors (acp-a2a.md A1).
const (
	codeRequest   = jsonrpc.CodeInvalidRequest // invalid, or not allowed now
	codeMethod    = jsonrpc.CodeMethodNotFound
	codeParams    = jsonrpc.CodeInvalidParams
	codeInternal  = jsonrpc.CodeInternal
	codeCancelled = jsonrpc.CodeRequestCancelled
	codeNotFound  = -32002
)

func failure(code int, format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(code, format, args...)
}

// callError converts an error of e2a/turn to JSON-RPC.
func callError(e *turn.Error) *jsonrpc.Error {
	out := failure(codeInternal, "%s", e.Message)
	out.Data, _ = json.Marshal(errorData{e.Code}) // cannot fail
	switch e.Code {
	case turn.BadParams:
		out.Code = codeParams
	case turn.NotFound:
		out.Code = codeNotFound
	default:
	}
	return out
}

type errorData struct {
	Code turn.Code `json:"e2a_code"`
}

// readMessage decodes a line.
func readMessage(line []byte) (jsonrpc.Message, *jsonrpc.Error) {
	if !json.Valid(line) {
		return jsonrpc.Message{}, failure(jsonrpc.CodeParse, "invalid JSON")
	}
	m, bad := jsonrpc.Decode(line)
	var types struct {
		JSONRPC string                    `json:"jsonrpc"`
		Method  string                    `json:"method"`
		Error   *struct{ Message string } `json:"error"`
	}
	if bad == nil && m.Method != "" {
		return m, nil
	}
	if err := json.Unmarshal(line, &types); err != nil && line[0] == '{' { // clients get an error for a malformed answer, too
		return jsonrpc.Message{ID: m.ID}, failure(codeRequest, "%v", jsonrpc.Explain(line, err))
	}
	return m, bad
}

// decode decodes the parameters of a request. Malformed members of type e2a.Optional count as
// missing.
func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 || isEmptyList(raw) {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return failure(codeParams, "params: %v", jsonrpc.Explain(raw, err))
	}
	return nil
}

// isEmptyList reports whether a value is [], which clients in Lua write for an empty object.
func isEmptyList(raw json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && list != nil && len(list) == 0
}

// listOf is a list that may be written as {} if it is empty, as clients in Lua do.
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
