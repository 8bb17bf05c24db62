package jsonrpc

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Message is a call, a notification or a response. Its parts stay unchanged.
type Message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"` // nil if missing
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// IsCall reports whether the message requires an answer. A null id counts: each protocol decides
// whether it makes a call.
func (m Message) IsCall() bool { return m.Method != "" && m.ID != nil }

// IsAnswer reports whether the message is a response.
func (m Message) IsAnswer() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// Respond makes the response to the call with an id; a nil id is sent as null.
func Respond(id json.RawMessage, result any, err error) Message {
	m := Message{JSONRPC: "2.0", ID: id}
	if id == nil {
		m.ID = null()
	}
	if err == nil {
		m.Result, err = marshal(result)
	}
	if err != nil {
		m.Result, m.Error = nil, asError(err)
	}
	return m
}

// Encode writes a message, with its members in the usual order. Its parts must be valid JSON.
func (m Message) Encode() []byte {
	out := make([]byte, 0, len(m.Params)+len(m.Result)+len(m.Method)+128)
	out = append(out, `{"jsonrpc":"2.0"`...)
	member := func(name string, value []byte) {
		if value != nil {
			out = append(append(append(out, name...), ':'), value...)
		}
	}
	member(`,"id"`, m.ID)
	if m.Method != "" {
		method, _ := marshal(m.Method) // a string never fails
		member(`,"method"`, method)
	}
	member(`,"params"`, m.Params)
	member(`,"result"`, m.Result)
	if m.Error != nil {
		failure, err := m.Error.MarshalJSON()
		if err != nil { // its members cannot be encoded, so only code and message are sent
			failure, _ = json.Marshal(&Error{Code: m.Error.Code, Message: m.Error.Message})
		}
		member(`,"error"`, failure)
	}
	return append(out, '}')
}

func null() json.RawMessage { return json.RawMessage("null") }

// IsNull reports whether a value is missing or null.
func IsNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// Check returns an error unless body is one JSON value in UTF-8 that could be a message or a batch.
func Check(body []byte) *Error {
	switch {
	case !utf8.Valid(body):
		return Errorf(CodeParse, "the message is not UTF-8")
	case !json.Valid(body):
		return Errorf(CodeParse, "the message is not JSON")
	}
	return nil
}

// Split returns the members of a batch, or a single message. An empty or invalid batch has no
// members.
func Split(body []byte) (list []json.RawMessage, batch bool) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		return []json.RawMessage{body}, false
	}
	if json.Unmarshal(body, &list) != nil {
		return nil, true
	}
	return list, true
}

// Decode reads one message that has passed Check. Names of members are compared exactly, and of two
// members with the same name, the last one counts. With an error, it also returns the readable part
// of the message, so that the error can be answered under its id.
func Decode(body []byte) (Message, *Error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return Message{}, Errorf(CodeInvalidRequest, "the message must be an object")
	}
	m := Message{ID: members["id"], Result: members["result"]}
	failure := members["error"]
	if !IsNull(failure) {
		m.Error = &Error{}
		if json.Unmarshal(failure, m.Error) != nil { // it reports a failure nevertheless
			m.Error = Errorf(CodeInternal, "%s", failure)
		}
	} else if failure != nil && m.Result == nil {
		m.Result = null()
	}
	badMethod := json.Unmarshal(members["method"], &m.Method) != nil || m.Method == ""
	if !IsNull(members["params"]) {
		m.Params = members["params"]
	}
	if len(m.ID) > 0 && bytes.IndexByte([]byte("{[tf"), m.ID[0]) >= 0 {
		m.ID = nil
		return m, Errorf(CodeInvalidRequest, "id must be a string, a number or null")
	}
	if err := json.Unmarshal(members["jsonrpc"], &m.JSONRPC); err != nil || m.JSONRPC != "2.0" {
		return m, Errorf(CodeInvalidRequest, `jsonrpc must be "2.0"`)
	}
	if badMethod && (members["method"] != nil || !m.IsAnswer()) {
		return m, Errorf(CodeInvalidRequest, "method must be a non-empty string")
	}
	return m, nil
}

// marshal encodes a part of a message; raw JSON stays unchanged.
func marshal(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok && raw != nil {
		return raw, nil
	}
	return Marshal(v)
}

// Marshal encodes v without HTML escaping, so that emoji and `<` stay as they are.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
