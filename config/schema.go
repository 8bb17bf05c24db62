package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Schema returns the JSON Schema of configuration files. It contains every key; those of earlier
// versions are marked.
func Schema() ([]byte, error) {
	s := newSchema(withLegacyKeys(newKeys()), defaultValues(), false)
	s.Schema = "http://json-schema.org/draft-07/schema#"
	s.Title = "Configuration of eca"
	s.Description = "~/.config/eca/config.json and .eca/config.json in a workspace folder. null removes the value of a lower layer."
	s.Type = "object"
	raw, err := encodeIndented(s)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(raw, '\n'), nil
}

func defaultValues() map[string]any { return builtinDefaults(newKeys()).content }

// schema is a JSON Schema, limited to the keywords in use.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Type        any                `json:"type,omitempty"` // one, or a list of them
	Properties  map[string]*schema `json:"properties,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Description string             `json:"description,omitempty"`
	Default     any                `json:"default,omitempty"`
	Deprecated  bool               `json:"deprecated,omitempty"`
	Enum        []any              `json:"enum,omitempty"`
	Minimum     *float64           `json:"minimum,omitempty"`
	Maximum     *float64           `json:"maximum,omitempty"`
	Additional  any                `json:"additionalProperties,omitempty"` // false, or a *schema
}

// newSchema describes a key. def is its default. pending means that a key above this one is accepted
// but has no effect (the tag pending).
func newSchema(k *key, def any, pending bool) *schema {
	pending = pending || k.tag.Get("pending") != ""
	s := &schema{Description: k.doc(), Deprecated: k.deprecated, Minimum: k.limit("min"), Maximum: k.limit("max")}
	if pending {
		s.Description += " (Accepted, but without effect in this version.)"
	}
	if len(k.types) > 0 {
		s.Type = append(slices.Clone(k.types), "null")
	}
	for _, word := range k.enum() {
		s.Enum = append(s.Enum, word)
	}
	if s.Enum != nil {
		s.Enum = append(s.Enum, nil)
	}
	values, isObject := def.(map[string]any)
	if !isObject {
		s.Default = def
	}
	for name, field := range k.fields() {
		if s.Properties == nil {
			s.Properties, s.Additional = map[string]*schema{}, false
		}
		s.Properties[name] = newSchema(field, values[name], pending)
	}
	switch {
	case k.elem() == nil:
	case k.elementName() == "[]":
		s.Items = newSchema(k.elem(), nil, pending)
		if len(k.elem().types) == 1 { // null is not a useful list element
			s.Items.Type, s.Items.Enum = k.elem().types[0], slices.DeleteFunc(s.Items.Enum, func(v any) bool { return v == nil })
		}
	default:
		s.Additional = newSchema(k.elem(), nil, pending)
	}
	return s
}

// withLegacyKeys adds the keys of earlier versions (renamedKeys) and second names of keys (keyAliases).
func withLegacyKeys(root *key) *key {
	add := func(old, now string, like *key) *key {
		path := strings.Split(old, ".")
		object := root.lookup(path[:len(path)-1])
		if object == nil || object.fields() == nil {
			return &key{} // users choose the names of these keys
		}
		k := *like
		k.deprecated, k.docs = true, []string{"Earlier name of " + now + "."}
		object.fields()[path[len(path)-1]] = &k
		return &k
	}
	for _, a := range keyAliases() {
		k := add(a[0], a[1], root.lookup(strings.Split(a[1], ".")))
		k.deprecated, k.docs = false, []string{"The same as " + a[1] + "."}
	}
	for _, nested := range []bool{true, false} { // a section's earlier name has the earlier keys of the section, too
		for _, r := range renamedKeys() {
			switch target := root.lookup(strings.Split(r[1], ".")); {
			case strings.Contains(r[0], ".") != nested:
			case strings.HasSuffix(r[0], "File"):
				add(r[0], r[1], newKey(reflect.TypeFor[string](), "", nil))
			case target != nil:
				add(r[0], r[1], target)
			}
		}
	}
	add("toolCall.manualApproval", "toolCall.approval", newKey(reflect.TypeFor[[]string](), `types:"boolean array"`, nil))
	return root
}
