package ecp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// Encode writes a value as one line of compact JSON in pure ASCII, without the line end: runtimes
// read an agent's pipe in the encoding of their locale (docs/contracts/ecp.md 1.4).
func Encode(v any) ([]byte, error) {
	line, err := jsonrpc.Marshal(v)
	return ascii(line), err
}

// ascii escapes characters that are not ASCII. Valid JSON has them only inside strings.
func ascii(data []byte) []byte {
	first := bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf })
	if first < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+len(data)/4)
	out = append(out, data[:first]...)
	for rest := data[first:]; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// object reads a JSON object. Keys stay unchanged: encoding/json's own structs would accept
// "Status" for "status".
func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, errors.New("must be an object")
	}
	return fields, nil
}

// kind returns the first byte of a JSON value if that is one of { [ " n t f, and 0 otherwise, for
// example for a number. An empty value counts as null.
func kind(raw json.RawMessage) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return 'n'
	}
	if bytes.IndexByte([]byte(`{["ntf`), raw[0]) >= 0 {
		return raw[0]
	}
	return 0
}

// optionalString reads an optional string; it is nil if null or missing.
func optionalString(fields map[string]json.RawMessage, key string) (*string, error) {
	raw := fields[key]
	if jsonrpc.IsNull(raw) {
		return nil, nil //nolint:nilnil // nil means null or missing, which is not an error
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s must be a string or null", key)
	}
	return &s, nil
}
