package google

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// parameters turns a tool's JSON Schema into what the API takes: a small dialect of
// OpenAPI's without references, several types or most keywords; anything else in it
// refuses the whole request. The losses only make the schema wider. It returns nil
// for a tool without parameters.
func parameters(raw json.RawMessage) (map[string]any, error) {
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	d := dialect{root: root, budget: maxNodes}
	out := d.schema(root)
	if props, _ := out["properties"].(map[string]any); len(props) == 0 {
		return nil, nil
	}
	return out, nil
}

// maxNodes bounds a translated schema: references can make a small one endless.
const maxNodes = 5000

// dialect translates one schema.
type dialect struct {
	root   map[string]any
	within []string // references that are being followed
	budget int      // nodes that may still be written
}

// schema translates a node; what says nothing becomes a string, since a type is needed.
func (d *dialect) schema(v any) map[string]any {
	in, _ := v.(map[string]any)
	if d.budget--; d.budget < 0 {
		return map[string]any{"type": "object"}
	}
	if ref, ok := in["$ref"].(string); ok {
		return d.reference(ref, in)
	}
	in = d.merged(in)
	out := map[string]any{}
	if s, _ := in["description"].(string); s != "" {
		out["description"] = s
	}
	if in["nullable"] == true {
		out["nullable"] = true
	}
	d.typed(in, out)
	return out
}

// reference translates what a local reference names; a recursive one ends there.
func (d *dialect) reference(ref string, in map[string]any) map[string]any {
	out := map[string]any{"type": "object"}
	if target, ok := d.resolve(ref); ok && !slices.Contains(d.within, ref) {
		d.within = append(d.within, ref)
		out = d.schema(target)
		d.within = d.within[:len(d.within)-1]
	}
	if s, _ := in["description"].(string); s != "" {
		out["description"] = s
	}
	return out
}

// resolve follows a JSON pointer within the schema.
func (d *dialect) resolve(ref string) (any, bool) {
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

// merged returns a node with the members of its allOf put into it.
func (d *dialect) merged(in map[string]any) map[string]any {
	all, _ := in["allOf"].([]any)
	if len(all) == 0 {
		return in
	}
	out := map[string]any{}
	props, required := map[string]any{}, []any{}
	for _, v := range append([]any{in}, all...) {
		m, _ := v.(map[string]any)
		if ref, ok := m["$ref"].(string); ok && !slices.Contains(d.within, ref) {
			target, _ := d.resolve(ref)
			m, _ = target.(map[string]any)
		}
		for k, v := range m {
			if _, have := out[k]; !have && k != "allOf" {
				out[k] = v
			}
		}
		p, _ := m["properties"].(map[string]any)
		for k, v := range p {
			props[k] = v
		}
		r, _ := m["required"].([]any)
		required = append(required, r...)
	}
	if len(props) > 0 {
		out["properties"], out["required"] = props, required
	}
	return out
}

// typed writes the type with what belongs to it.
func (d *dialect) typed(in, out map[string]any) {
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
		typ = implied(in)
	}
	out["type"] = typ
	switch typ {
	case "string":
		enum(in, out)
		keep(in, out, "format", "date-time")
	case "integer", "number":
		values(in, out)
		keep(in, out, "format", "int32", "int64", "float", "double")
		numbers(in, out, "minimum", "maximum")
	case "array":
		out["items"] = d.schema(in["items"])
		numbers(in, out, "minItems", "maxItems")
	case "object":
		d.object(in, out)
	case "boolean":
	default: // null, or something that is not a type
		out["type"] = "string"
	}
}

// options lists the alternatives of a node: those it names, or its several types. Null
// among them is not an alternative but a property of the node.
func (d *dialect) options(in, out map[string]any) []map[string]any {
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

func (d *dialect) object(in, out map[string]any) {
	props, _ := in["properties"].(map[string]any)
	if len(props) == 0 {
		return
	}
	translated := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(props)) { // in order: the budget may end
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

// implied guesses the type of a node that names none.
func implied(in map[string]any) string {
	switch {
	case in["properties"] != nil:
		return "object"
	case in["items"] != nil:
		return "array"
	}
	for _, v := range allowed(in) {
		switch v.(type) {
		case float64:
			return "number"
		case bool:
			return "boolean"
		}
	}
	return "string"
}

// allowed lists the values a node is restricted to.
func allowed(in map[string]any) []any {
	if c, ok := in["const"]; ok {
		return []any{c}
	}
	list, _ := in["enum"].([]any)
	return list
}

// enum keeps the allowed strings; an empty one is refused.
func enum(in, out map[string]any) {
	var list []any
	for _, v := range allowed(in) {
		if s, _ := v.(string); s != "" {
			list = append(list, s)
		}
	}
	if len(list) > 0 {
		out["enum"] = list
	}
}

// values says in words which numbers are allowed: only strings can be listed.
func values(in, out map[string]any) {
	var list []string
	for _, v := range allowed(in) {
		list = append(list, fmt.Sprint(v))
	}
	if len(list) > 0 {
		description, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(description + " One of: " + strings.Join(list, ", "))
	}
}

// keep copies a keyword if its value is one of those the API knows.
func keep(in, out map[string]any, key string, known ...string) {
	if s, _ := in[key].(string); slices.Contains(known, s) {
		out[key] = s
	}
}

func numbers(in, out map[string]any, keys ...string) {
	for _, key := range keys {
		if n, ok := in[key].(float64); ok {
			out[key] = n
		}
	}
}
