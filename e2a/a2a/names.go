package a2a

import (
	"encoding/json"
	"strings"
)

// protoNames has params written in A2A's own names: writers of Protocol Buffers may use
// those of the schema too (task_id for taskId). What callers name themselves, such as
// metadata and data, is left as it is.
func protoNames(params json.RawMessage) json.RawMessage {
	if !strings.Contains(string(params), "_") {
		return params
	}
	return renamed(params, map[string]bool{"message": true, "configuration": true, "taskPushNotificationConfig": true, "authentication": true, "parts": true})
}

// renamed renames the keys of an object, of the objects of a list, and within the members
// that are named.
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

// encoded is JSON of a value, or what it was before.
func encoded(v any, before json.RawMessage) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		return before
	}
	return body
}

// camelName writes a key as A2A does: input_tokens is inputTokens.
func camelName(key string) string {
	words := strings.Split(key, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}
