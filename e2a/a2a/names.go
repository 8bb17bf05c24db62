package a2a

import (
	"encoding/json"
	"strings"
)

// camelCaseParams renames the keys of params from snake case (task_id) to A2A's camel case (taskId),
// because encoders of Protocol Buffers may use either. Keys that callers choose, such as those in
// metadata and data, stay the same.
func camelCaseParams(params json.RawMessage) json.RawMessage {
	if !strings.Contains(string(params), "_") {
		return params
	}
	return camelCaseKeys(params, map[string]bool{"message": true, "configuration": true, "taskPushNotificationConfig": true, "authentication": true, "parts": true})
}

// camelCaseKeys renames the keys of an object, or of the objects in a list, and recursively those of
// the members named in within.
func camelCaseKeys(raw json.RawMessage, within map[string]bool) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && list != nil {
		for i := range list {
			list[i] = camelCaseKeys(list[i], within)
		}
		return encodeOr(list, raw)
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
			value = camelCaseKeys(value, within)
		}
		out[name] = value
	}
	return encodeOr(out, raw)
}

// encodeOr returns the JSON of a value, or fallback if encoding fails.
func encodeOr(v any, fallback json.RawMessage) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		return fallback
	}
	return body
}

// camelName converts a key to camel case: input_tokens becomes inputTokens.
func camelName(key string) string {
	words := strings.Split(key, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}
