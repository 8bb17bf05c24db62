package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// MergeExtra merges extra into a JSON object: objects are merged recursively, other values replace
// fields, null removes them (eca-features.md 6.3). A json.RawMessage in extra replaces a field and is
// copied unchanged. Fields that are not in extra are not parsed, because a body may contain
// megabytes of conversation.
func MergeExtra(body []byte, extra map[string]any) ([]byte, error) {
	if len(extra) == 0 {
		return body, nil
	}
	fields, err := fieldsOf(body)
	if err != nil {
		return nil, err
	}
	size := len(body)
	for key, over := range extra {
		raw, err := mergeField(fields[key], over)
		if err != nil {
			return nil, err
		}
		if raw == nil {
			delete(fields, key)
			continue
		}
		fields[key] = raw
		size += len(raw) + len(key) + 4
	}
	out := append(make([]byte, 0, size), '{')
	for i, key := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		out = append(append(out, name...), ':')
		out = append(out, fields[key]...)
	}
	return append(out, '}'), nil
}

// mergeField merges a value into a field. It returns nil if the field is removed.
func mergeField(base json.RawMessage, over any) (json.RawMessage, error) {
	switch over := over.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return over, nil
	case map[string]any:
		var old map[string]any
		if len(base) > 0 && base[0] == '{' {
			dec := json.NewDecoder(bytes.NewReader(base))
			dec.UseNumber()
			if err := dec.Decode(&old); err != nil {
				return nil, err
			}
		}
		if old == nil {
			old = map[string]any{}
		}
		return json.Marshal(DeepMerge(old, over))
	}
	return json.Marshal(over)
}

// fieldsOf splits a JSON object into its fields without decoding them. Output of json.Marshal is
// scanned in one pass that only finds the end of each value; other JSON is parsed by encoding/json.
func fieldsOf(body []byte) (map[string]json.RawMessage, error) {
	if fields, ok := scanFields(body); ok {
		return fields, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	return fields, nil
}

// scanFields splits an object without white space. It returns false for other texts, but does not check
// the values.
func scanFields(body []byte) (map[string]json.RawMessage, bool) {
	if len(body) < 2 || body[0] != '{' || body[len(body)-1] != '}' {
		return nil, false
	}
	fields := map[string]json.RawMessage{}
	for at := 1; ; at++ { // after { or ,
		if at == len(body)-1 {
			return fields, len(fields) == 0
		}
		end := skipString(body, at)
		if end < 0 || end >= len(body) || body[end] != ':' || bytes.IndexByte(body[at:end], '\\') >= 0 {
			return nil, false
		}
		key := string(body[at+1 : end-1])
		from := end + 1
		if at = skipValue(body, from); at < 0 || at == from {
			return nil, false
		}
		fields[key] = body[from:at:at]
		if at == len(body)-1 {
			return fields, true
		}
		if body[at] != ',' {
			return nil, false
		}
	}
}

// skipString returns the index after the string that begins with body[at], or -1.
func skipString(body []byte, at int) int {
	if at >= len(body) || body[at] != '"' {
		return -1
	}
	for at++; ; {
		i := bytes.IndexByte(body[at:], '"')
		if i < 0 {
			return -1
		}
		slashes := 0
		for at+i-1-slashes >= at && body[at+i-1-slashes] == '\\' {
			slashes++
		}
		at += i + 1
		if slashes%2 == 0 {
			return at
		}
	}
}

// skipValue returns the index after the value that begins with body[at]: the index of a comma, or of the
// end of the enclosing object. It returns -1 for invalid JSON, and for JSON with white space.
func skipValue(body []byte, at int) int {
	for depth := 0; at < len(body); {
		switch body[at] {
		case '"':
			if at = skipString(body, at); at < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		case ',':
			if depth == 0 {
				return at
			}
		case ' ', '\t', '\n', '\r':
			return -1
		}
		at++
	}
	return -1
}

// DeepMerge returns base with over merged into it, as in MergeExtra.
func DeepMerge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for k, v := range over {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			b, ok := out[k].(map[string]any)
			if !ok {
				b = map[string]any{}
			}
			out[k] = DeepMerge(b, v)
		default:
			out[k] = v
		}
	}
	return out
}

// MergePayloads returns base with over merged into it, as an argument for MergeExtra. It keeps
// null, so that MergeExtra removes the field.
func MergePayloads(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range over {
		o, isMap := v.(map[string]any)
		if b, ok := out[k].(map[string]any); ok && isMap {
			v = MergePayloads(b, o)
		}
		out[k] = v
	}
	return out
}
