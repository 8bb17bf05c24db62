package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema of configuration files: made from the types and from
// docs. Every key is in it, also those of earlier versions, which are marked.
func Schema() ([]byte, error) {
	s, err := newSchema()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// newSchema builds the schema.
func newSchema() (*jsonschema.Schema, error) {
	text := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
	source, err := jsonschema.For[PluginSource](nil)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	client, err := jsonschema.For[struct {
		Version string `json:"version"`
	}](nil)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	client.Type, client.Types = "", []string{"object", "string"}
	s, err := jsonschema.For[Config](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Strings]():        {Types: []string{"string", "array"}, Items: text()},
		reflect.TypeFor[HTTPClient]():     client,
		reflect.TypeFor[SandboxNetwork](): {Types: []string{"boolean", "object"}, Properties: map[string]*jsonschema.Schema{"allow": {Type: "array", Items: text()}}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}},
		reflect.TypeFor[Plugins](): {
			Type: "object", AdditionalProperties: source,
			Properties: map[string]*jsonschema.Schema{"install": {Type: "array", Items: text()}},
		},
	}})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s.Properties["$schema"] = text()
	s.Properties["hooks"].AdditionalProperties.Properties["matcher"].Types = []string{"string", "object"}
	b := &schemaBuilder{docs: docs(), pending: pending()}
	l := Load(Inputs{Getenv: func(string) string { return "" }})
	b.defaults = l.layers[0].content
	b.describe(s, nil)
	b.earlier(s)
	s.Schema = "http://json-schema.org/draft-07/schema#"
	s.Title = "Configuration of eca"
	s.Description = "~/.config/eca/config.json and .eca/config.json in a workspace folder. null takes back what a lower layer says."
	return s, nil
}

// schemaBuilder completes what the types say.
type schemaBuilder struct {
	docs     map[string]keyDoc
	pending  []string
	defaults map[string]any
}

// describe adds descriptions, rules and defaults to what stands below a path.
func (b *schemaBuilder) describe(s *jsonschema.Schema, path []string) {
	s.Required, s.PropertyOrder = nil, nil
	for key, sub := range s.Properties {
		b.key(sub, append(slices.Clone(path), key))
	}
	if more := s.AdditionalProperties; more != nil && more.Not == nil {
		b.key(more, append(slices.Clone(path), "*"))
	}
	if s.Items != nil {
		b.key(s.Items, append(slices.Clone(path), "[]"))
		s.Items.Types = slices.DeleteFunc(s.Items.Types, func(t string) bool { return t == "null" })
		if len(s.Items.Types) == 1 {
			s.Items.Type, s.Items.Types = s.Items.Types[0], nil
		}
	}
}

// key completes the schema of one key.
func (b *schemaBuilder) key(s *jsonschema.Schema, path []string) {
	d, _ := docOf(b.docs, path)
	s.Description = d.text
	if slices.Contains(b.pending, path[0]) {
		s.Description += " (Accepted, but without effect in this version.)"
	}
	if v, ok := valueAt(b.defaults, path); ok && !slices.Contains(path, "*") {
		if _, isObject := v.(map[string]any); !isObject {
			s.Default, _ = encode(v) // it was decoded from JSON
		}
	}
	types := append(slices.Clone(s.Types), s.Type)
	types = slices.DeleteFunc(types, func(t string) bool { return t == "" || t == "null" })
	if len(types) > 0 {
		s.Type, s.Types = "", append(types, "null")
	}
	if len(d.rule.words) > 0 {
		words := make([]any, 0, len(d.rule.words)+1)
		for _, w := range d.rule.words {
			words = append(words, w)
		}
		if s.Items != nil {
			s.Items.Enum = words
		} else {
			s.Enum = append(words, nil)
		}
	}
	s.Minimum, s.Maximum = d.rule.min, d.rule.max
	b.describe(s, path)
}

func valueAt(m map[string]any, path []string) (any, bool) {
	var v any = m
	for _, key := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// earlier adds the keys of earlier versions.
func (b *schemaBuilder) earlier(s *jsonschema.Schema) {
	add := func(old, now string, like *jsonschema.Schema) {
		path := strings.Split(old, ".")
		object := schemaAt(s, path[:len(path)-1])
		if object == nil || object.Properties == nil {
			return // the key is one that users choose
		}
		if strings.HasSuffix(old, "File") {
			like = &jsonschema.Schema{Types: []string{"string", "null"}}
		}
		like = like.CloneSchemas()
		like.Deprecated, like.Default = true, nil
		like.Description = "Earlier name of " + now + "."
		object.Properties[path[len(path)-1]] = like
	}
	for _, r := range renamed() {
		if target := schemaAt(s, strings.Split(r[1], ".")); target != nil {
			add(r[0], r[1], target)
		}
	}
	add("toolCall.manualApproval", "toolCall.approval", &jsonschema.Schema{
		Types: []string{"boolean", "array", "null"}, Items: &jsonschema.Schema{Type: "string"},
	})
}

// schemaAt follows a path.
func schemaAt(s *jsonschema.Schema, path []string) *jsonschema.Schema {
	for _, key := range path {
		switch {
		case key == "[]":
			s = s.Items
		case s.Properties[key] != nil:
			s = s.Properties[key]
		case s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil:
			s = s.AdditionalProperties
		default:
			return nil
		}
		if s == nil {
			return nil
		}
	}
	return s
}

// schemaKeys lists all paths of a schema, sorted.
func schemaKeys(s *jsonschema.Schema, path []string) []string {
	var out []string
	add := func(key string, sub *jsonschema.Schema) {
		at := append(slices.Clone(path), key)
		out = append(append(out, strings.Join(at, ".")), schemaKeys(sub, at)...)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		if !s.Properties[key].Deprecated {
			add(key, s.Properties[key])
		}
	}
	if more := s.AdditionalProperties; more != nil && more.Not == nil {
		add("*", more)
	}
	if s.Items != nil {
		add("[]", s.Items)
	}
	return out
}
