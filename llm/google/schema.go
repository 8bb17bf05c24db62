package google

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// parameters converts a tool's JSON Schema to the small dialect of OpenAPI that the API accepts,
// without references, multiple types and most keywords. The API refuses a request with anything
// else. The conversion only makes a schema less strict. It returns nil for a tool without
// parameters.
func parameters(raw json.RawMessage) (map[string]any, error) {
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	d := schemaConverter{root: root, nodesLeft: maxNodes}
	out := d.schema(root)
	if props, _ := out["properties"].(map[string]any); len(props) == 0 {
		return nil, nil
	}
	return out, nil
}

// maxNodes limits the size of a converted schema, because references can expand a small one without
// end.
const maxNodes = 5000

// schemaConverter converts one schema.
type schemaConverter struct {
	root       map[string]any
	activeRefs []string // the references being followed
	nodesLeft  int      // how many more nodes may be written
}

// schema converts a node. A node without any information becomes a string, because a type is
// required.
func (d *schemaConverter) schema(v any) map[string]any {
	in, _ := v.(map[string]any)
	if d.nodesLeft--; d.nodesLeft < 0 {
		return map[string]any{"type": "object"}
	}
	if ref, ok := in["$ref"].(string); ok {
		return d.reference(ref, in)
	}
	in = d.mergeAllOf(in)
	out := map[string]any{}
	if s, _ := in["description"].(string); s != "" {
		out["description"] = s
	}
	if in["nullable"] == true {
		out["nullable"] = true
	}
	d.writeType(in, out)
	return out
}

// reference converts the target of a local reference. It does not follow a recursive reference.
func (d *schemaConverter) reference(ref string, in map[string]any) map[string]any {
	out := map[string]any{"type": "object"}
	if target, ok := d.resolve(ref); ok && !slices.Contains(d.activeRefs, ref) {
		d.activeRefs = append(d.activeRefs, ref)
		out = d.schema(target)
		d.activeRefs = d.activeRefs[:len(d.activeRefs)-1]
	}
	if s, _ := in["description"].(string); s != "" {
		out["description"] = s
	}
	return out
}

// resolve follows a JSON pointer within the schema.
func (d *schemaConverter) resolve(ref string) (any, bool) {
	path, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil, false
	}
	var at any = d.root
	for key := range strings.SplitSeq(path, "/") {
		m, _ := at.(map[string]any)
		next, ok := m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// mergeAllOf returns a node merged with the members of its allOf.
func (d *schemaConverter) mergeAllOf(in map[string]any) map[string]any {
	all, _ := in["allOf"].([]any)
	if len(all) == 0 {
		return in
	}
	out := map[string]any{}
	props, required := map[string]any{}, []any{}
	for _, v := range append([]any{in}, all...) {
		m, _ := v.(map[string]any)
		if ref, ok := m["$ref"].(string); ok && !slices.Contains(d.activeRefs, ref) {
			target, _ := d.resolve(ref)
			m, _ = target.(map[string]any)
		}
		for k, v := range m {
			if _, have := out[k]; !have && k != "allOf" {
				out[k] = v
			}
		}
		p, _ := m["properties"].(map[string]any)
		maps.Copy(props, p)
		r, _ := m["required"].([]any)
		required = append(required, r...)
	}
	if len(props) > 0 {
		out["properties"], out["required"] = props, required
	}
	return out
}

// writeType writes the type and the keywords that belong to it.
func (d *schemaConverter) writeType(in, out map[string]any) {
	if options := d.options(in, out); len(options) > 1 {
		out["anyOf"] = options
		return
	} else if len(options) == 1 {
		for k, v := range options[0] {
			if _, have := out[k]; !have {
				out[k] = v
			}
		}
		return
	}
	typ, _ := in["type"].(string)
	if typ == "" {
		typ = guessType(in)
	}
	out["type"] = typ
	switch typ {
	case "string":
		copyEnum(in, out)
		copyKnown(in, out, "format", "date-time")
	case "integer", "number":
		describeNumbers(in, out)
		copyKnown(in, out, "format", "int32", "int64", "float", "double")
		copyNumbers(in, out, "minimum", "maximum")
	case "array":
		out["items"] = d.schema(in["items"])
		copyNumbers(in, out, "minItems", "maxItems")
	case "object":
		d.object(in, out)
	case "boolean":
	default: // null, or something that is not a type
		out["type"] = "string"
	}
}

// options returns the alternatives of a node: those of anyOf and oneOf, and its types if there are
// several. Null among them makes the node nullable instead.
func (d *schemaConverter) options(in, out map[string]any) []map[string]any {
	var alternatives []any
	for _, key := range []string{"anyOf", "oneOf"} {
		list, _ := in[key].([]any)
		alternatives = append(alternatives, list...)
	}
	types, _ := in["type"].([]any)
	for _, t := range types {
		alternative := map[string]any{}
		for k, v := range in {
			if k != "description" && k != "nullable" {
				alternative[k] = v
			}
		}
		alternative["type"] = t
		alternatives = append(alternatives, alternative)
	}
	var list []map[string]any
	for _, a := range alternatives {
		if m, _ := a.(map[string]any); m["type"] == "null" {
			out["nullable"] = true
			continue
		}
		list = append(list, d.schema(a))
	}
	return list
}

func (d *schemaConverter) object(in, out map[string]any) {
	props, _ := in["properties"].(map[string]any)
	if len(props) == 0 {
		return
	}
	translated := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(props)) { // in a fixed order, because maxNodes may be reached
		translated[name] = d.schema(props[name])
	}
	out["properties"] = translated
	var required []any
	list, _ := in["required"].([]any)
	for _, name := range list {
		s, _ := name.(string)
		if _, ok := props[s]; ok && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
}

// guessType guesses the type of a node without one.
func guessType(in map[string]any) string {
	switch {
	case in["properties"] != nil:
		return "object"
	case in["items"] != nil:
		return "array"
	}
	for _, v := range allowedValues(in) {
		switch v.(type) {
		case float64:
			return "number"
		case bool:
			return "boolean"
		}
	}
	return "string"
}

// allowedValues returns the values to which a node is restricted.
func allowedValues(in map[string]any) []any {
	if c, ok := in["const"]; ok {
		return []any{c}
	}
	list, _ := in["enum"].([]any)
	return list
}

// copyEnum copies the allowed strings, except empty ones, which the API refuses.
func copyEnum(in, out map[string]any) {
	var list []any
	for _, v := range allowedValues(in) {
		if s, _ := v.(string); s != "" {
			list = append(list, s)
		}
	}
	if len(list) > 0 {
		out["enum"] = list
	}
}

// describeNumbers adds the allowed numbers to the description, because enum can contain only strings.
func describeNumbers(in, out map[string]any) {
	var list []string
	for _, v := range allowedValues(in) {
		list = append(list, fmt.Sprint(v))
	}
	if len(list) > 0 {
		description, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(description + " One of: " + strings.Join(list, ", "))
	}
}

// copyKnown copies a keyword if its value is one that the API knows.
func copyKnown(in, out map[string]any, key string, known ...string) {
	if s, _ := in[key].(string); slices.Contains(known, s) {
		out[key] = s
	}
}

func copyNumbers(in, out map[string]any, keys ...string) {
	for _, key := range keys {
		if n, ok := in[key].(float64); ok {
			out[key] = n
		}
	}
}
