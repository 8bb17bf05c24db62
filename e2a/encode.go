package e2a

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// docs/contracts/e2a.md 3.1 requires every declared field, including null and empty ones. The tags
// of the types ensure that, and the methods here encode nil values as empty objects and lists.

// Object is a JSON object of free form. Its members keep their original JSON text.
type Object map[string]json.RawMessage

// MarshalJSON encodes an object; nil becomes {}.
func (o Object) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("{}"), nil
	}
	return jsonrpc.Marshal(map[string]json.RawMessage(o))
}

// MarshalJSON encodes an envelope.
func (e Envelope) MarshalJSON() ([]byte, error) {
	type plain Envelope
	if e.ExpectedOutputModes == nil {
		e.ExpectedOutputModes = []string{}
	}
	return jsonrpc.Marshal(plain(e))
}

// MarshalJSON encodes credentials, without hiding them.
func (a Auth) MarshalJSON() ([]byte, error) {
	type plain Auth
	if a.ExtraHeaders == nil {
		a.ExtraHeaders = map[string]string{}
	}
	return jsonrpc.Marshal(plain(a))
}

// raw returns the JSON of a value whose encoding cannot fail.
func raw(v any) json.RawMessage {
	out, err := jsonrpc.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

// Line returns an envelope or a frame as one line of JSON, including its newline.
func Line(v any) ([]byte, error) {
	out, err := jsonrpc.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}
