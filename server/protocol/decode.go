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

// List is a list that some clients send as {} when it is empty (eca-protocol.md 2.1). Elements that
// cannot be decoded are left out: one odd context must not fail a prompt.
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
// params may be missing or [] for methods without parameters. Of a repeated member, the last one
// counts; repeated is the path of the first such member.
func Decode(params json.RawMessage, v any) (repeated string, err error) {
	params = bytes.TrimSpace(params)
	if len(params) == 0 || string(params) == "null" || string(params) == "[]" {
		return "", nil
	}
	if params[0] != '{' {
		return "", errors.New("params must be an object")
	}
	var n normalizer
	norm, err := n.normalize(params, "", false, 0)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(norm, v); err != nil {
		return n.repeated, jsonrpc.Explain(norm, err)
	}
	return n.repeated, nil
}

// freeForm reports whether the keys of an object belong to the user, not to the protocol
// (eca-protocol.md 2.2).
func freeForm(key string) bool {
	switch key {
	case "initializationOptions", "env", "headers", "data":
		return true
	}
	return false
}

// maxDepth limits the nesting of params; protocol messages stay far below it.
const maxDepth = 64

// normalizer rewrites params.
type normalizer struct {
	repeated string // path of the first repeated member
}

// normalize rewrites protocol keys to camelCase and drops nulls; free is set inside a free-form
// object, which stays as it is. path leads to the value.
func (n *normalizer) normalize(raw json.RawMessage, path string, free bool, depth int) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || raw[0] != '{' && raw[0] != '[', free && depth > maxDepth:
		return raw, nil
	case depth > maxDepth:
		return nil, errors.New("params are nested too deeply")
	case raw[0] == '{':
		return n.object(raw, path, free, depth)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for i := range list {
		var err error
		if list[i], err = n.normalize(list[i], path+"["+strconv.Itoa(i)+"]", free, depth+1); err != nil {
			return nil, err
		}
	}
	if free {
		return raw, nil
	}
	return json.Marshal(list)
}

// object is normalize for objects.
func (n *normalizer) object(raw json.RawMessage, path string, free bool, depth int) (json.RawMessage, error) {
	members, err := n.members(raw, path)
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(members))
	for key, v := range members {
		camel := key
		if !free {
			if camel = camelCase(key); string(v) == "null" {
				continue
			}
		}
		if _, taken := out[camel]; taken && camel != key {
			continue // the exact spelling wins
		}
		if out[camel], err = n.normalize(v, memberPath(path, key), free || freeForm(camel), depth+1); err != nil {
			return nil, err
		}
	}
	if free {
		return raw, nil
	}
	return json.Marshal(out)
}

// members reads an object. Of a repeated member, it keeps the last one.
func (n *normalizer) members(raw json.RawMessage, path string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	if n.repeated == "" {
		if name := repeatedMember(raw); name != "" {
			n.repeated = memberPath(path, name)
		}
	}
	return members, nil
}

// repeatedMember returns the name of the first member of a valid object that is repeated.
func repeatedMember(raw []byte) (name string) {
	seen, last, depth := map[string]bool{}, []byte(nil), 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ':':
			if depth > 1 {
				continue
			}
			if _ = json.Unmarshal(last, &name); seen[name] {
				return name
			}
			seen[name] = true
		case '"':
			start := i
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			last = raw[start : i+1]
		}
	}
	return ""
}

func memberPath(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

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
