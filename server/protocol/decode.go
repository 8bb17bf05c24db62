package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// ID is an id that some clients send as a number.
type ID string

// UnmarshalJSON accepts strings, numbers and null.
func (id *ID) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*id = ""
		return nil
	case len(raw) > 0 && raw[0] == '"':
		return json.Unmarshal(raw, (*string)(id))
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil {
		return errors.New("an id must be a string")
	}
	*id = ID(n.String())
	return nil
}

// Text is an optional string; a value of another type counts as absent.
type Text string

// UnmarshalJSON accepts anything.
func (t *Text) UnmarshalJSON(raw []byte) error {
	*t = ""
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(t))
	}
	return nil
}

// Number is an optional whole number, which may come as a string; 0 is absent.
type Number int

// UnmarshalJSON accepts anything.
func (n *Number) UnmarshalJSON(raw []byte) error {
	*n = 0
	if f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<31 {
		*n = Number(f)
	}
	return nil
}

// Flag is an optional boolean, which may come as a string.
type Flag struct{ Value *bool }

// UnmarshalJSON accepts anything.
func (f *Flag) UnmarshalJSON(raw []byte) error {
	f.Value = nil
	if b, err := strconv.ParseBool(strings.Trim(string(raw), `"`)); err == nil {
		f.Value = &b
	}
	return nil
}

// List is a list that some clients send as {} when it is empty (2.1). Elements that cannot be
// decoded are left out: one odd context must not fail a prompt.
type List[T any] []T

// UnmarshalJSON accepts lists; anything else is empty.
func (l *List[T]) UnmarshalJSON(raw []byte) error {
	*l = nil
	var elems []json.RawMessage
	if json.Unmarshal(raw, &elems) != nil {
		return nil //nolint:nilerr // anything else is empty
	}
	for _, e := range elems {
		var v T
		if json.Unmarshal(e, &v) == nil {
			*l = append(*l, v)
		}
	}
	return nil
}

// Decode reads params into v. Keys may be in kebab or snake case; null is absent;
// params may be missing or [] for methods without parameters.
func Decode(params json.RawMessage, v any) error {
	params = bytes.TrimSpace(params)
	if len(params) == 0 || string(params) == "null" || string(params) == "[]" {
		return nil
	}
	if params[0] != '{' {
		return errors.New("params must be an object")
	}
	norm, err := normalize(params, 0)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(norm, v); err != nil {
		return jsonrpc.Explain(norm, err)
	}
	return nil
}

// freeForm reports whether the keys of an object belong to the user, not to the protocol (2.2).
func freeForm(key string) bool {
	switch key {
	case "initializationOptions", "env", "headers", "data":
		return true
	}
	return false
}

// maxDepth limits the nesting of params; protocol messages stay far below it.
const maxDepth = 64

// normalize rewrites protocol keys to camelCase and drops nulls.
func normalize(raw json.RawMessage, depth int) (json.RawMessage, error) {
	if depth > maxDepth {
		return nil, errors.New("params are nested too deeply")
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return raw, nil
	}
	switch raw[0] {
	case '{':
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
		out := make(map[string]json.RawMessage, len(m))
		for key, v := range m {
			if string(v) == "null" {
				continue
			}
			camel := camelCase(key)
			if _, taken := out[camel]; taken && camel != key {
				continue // the exact spelling wins
			}
			if !freeForm(camel) {
				var err error
				if v, err = normalize(v, depth+1); err != nil {
					return nil, err
				}
			}
			out[camel] = v
		}
		return json.Marshal(out)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = normalize(list[i], depth+1); err != nil {
				return nil, err
			}
		}
		return json.Marshal(list)
	}
	return raw, nil
}

// camelCase turns doc-text and doc_text into docText.
func camelCase(key string) string {
	if !strings.ContainsAny(key, "-_") {
		return key
	}
	var b strings.Builder
	upper := false
	for _, r := range key {
		switch {
		case r == '-' || r == '_':
			upper = b.Len() > 0
		case upper:
			b.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
