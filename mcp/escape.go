package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
)

// oneLine puts a name from a server on one line.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`).Replace(visible.Text(text))
}

// escapedSchema returns a schema whose descriptions and titles are safe to show.
func escapedSchema(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`\u`)) && visible.Text(string(raw)) == string(bytes.ReplaceAll(raw, []byte("\r"), nil)) {
		return raw
	}
	value, ok := parseJSON(string(raw))
	if !ok || !escapeHidden(value, false) {
		return raw
	}
	out, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return out
}

// escapeHidden escapes hidden characters in the descriptions and titles of a schema. names means that
// the keys of an object are names of properties, not keywords of JSON Schema.
func escapeHidden(value any, names bool) (changed bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			text, ok := member.(string)
			if ok && !names && (key == "description" || key == "title" || key == "$comment") {
				if now := visible.Text(text); now != text {
					v[key], changed = now, true
				}
				continue
			}
			changed = escapeHidden(member, !names && hasNames(key)) || changed
		}
	case []any:
		for _, one := range v {
			changed = escapeHidden(one, false) || changed
		}
	}
	return changed
}

// hasNames reports whether the keys below a keyword are names chosen by the schema's author.
func hasNames(keyword string) bool {
	return keyword == "properties" || keyword == "$defs" || keyword == "definitions" || keyword == "patternProperties"
}
