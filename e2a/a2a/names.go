package a2a

import (
	"encoding/json"
	"strings"
)

// protoNames renames params to A2A's own names: writers of Protocol Buffers may also use those of
// the schema (task_id for taskId). Names that callers choose, such as those in metadata and data,
// stay the same.
func protoNames(params json.RawMessage) json.RawMessage {
	if !strings.Contains(string(params), "_") {
		return params
	}
	return renamed(params, map[string]bool{"message": true, "configuration": true, "taskPushNotificationConfig": true, "authentication": true, "parts": true})
}

// renamed renames the keys of an object, of the objects in a list, and within the named members.
func renamed(raw json.RawMessage, within map[string]bool) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && list != nil {
		for i := range list {
			list[i] = renamed(list[i], within)
		}
		return encoded(list, raw)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return raw
	}
	out := make(map[string]json.RawMessage, len(object))
	for key, value := range object {
		name := camelName(key)
		if _, both := object[name]; both && name != key {
			continue
		}
		if within[name] {
			value = renamed(value, within)
		}
		out[name] = value
	}
	return encoded(out, raw)
}

// encoded returns the JSON of a value, or the previous JSON if encoding fails.
func encoded(v any, before json.RawMessage) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		return before
	}
	return body
}

// camelName converts a key to A2A's notation: input_tokens becomes inputTokens.
func camelName(key string) string {
	words := strings.Split(key, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}
