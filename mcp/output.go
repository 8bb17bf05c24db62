package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// outputSchema is the schema that a tool declares for its structured content. It is compiled when
// the first result is checked. Nil means that the tool declares none.
type outputSchema struct {
	raw  json.RawMessage
	once sync.Once

	compiled *jsonschema.Resolved // nil if results cannot be checked
	root     any
}

// newOutputSchema returns the output schema that a tool lists.
func newOutputSchema(raw json.RawMessage) *outputSchema {
	if len(raw) == 0 || string(raw) == "null" || len(raw) > maxSchema {
		return nil
	}
	return &outputSchema{raw: raw}
}

// check returns an error if the structured content of a result does not match the schema. It returns
// nil if the content is valid or cannot be checked.
func (o *outputSchema) check(structured json.RawMessage) error {
	if o == nil {
		return nil
	}
	o.once.Do(func() {
		var s jsonschema.Schema
		if json.Unmarshal(o.raw, &s) != nil || json.Unmarshal(o.raw, &o.root) != nil {
			return
		}
		if resolved, err := s.Resolve(nil); err == nil {
			o.compiled = resolved
		}
	})
	if o.compiled == nil {
		return nil
	}
	if len(structured) == 0 || string(structured) == "null" {
		return errors.New("the tool declares an output schema but sent no structured content")
	}
	var value any
	if err := json.Unmarshal(structured, &value); err != nil {
		return fmt.Errorf("the structured content is invalid JSON: %w", err)
	}
	if w := (workload{root: o.root}); !w.bounded(o.root, value, 0) {
		return nil
	}
	if err := o.compiled.Validate(value); err != nil {
		const step = "validating " // the last occurrence names the failing part
		text := err.Error()
		return errors.New("the result does not match the output schema that the tool declares: " + shorten.Bytes(text[max(strings.LastIndex(text, step), 0):], 500))
	}
	return nil
}

// workload counts the steps of checking a value against a schema. Both come from a server and may
// be recursive.
type workload struct {
	root  any
	steps int
}

const (
	maxSteps = 100_000
	maxDepth = 500
)

// bounded reports whether the check of value ends within the limit of steps. It follows the same
// references as the validator.
func (w *workload) bounded(schema, value any, depth int) bool {
	if w.steps++; w.steps > maxSteps || depth > maxDepth {
		return false
	}
	s, ok := schema.(map[string]any)
	if !ok {
		return true // a schema may be true or false
	}
	for keyword, member := range s {
		switch keyword {
		case "$ref":
			target, ok := w.resolveRef(member)
			if !ok || !w.bounded(target, value, depth+1) {
				return false
			}
		case "$dynamicRef", "$recursiveRef":
			return false
		case "not", "if", "then", "else":
			if !w.bounded(member, value, depth+1) {
				return false
			}
		case "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies":
			if !w.allBounded(childValues(member), []any{value}, depth) {
				return false
			}
		case "properties":
			byName, _ := member.(map[string]any)
			object, _ := value.(map[string]any)
			for name, one := range byName {
				if child, has := object[name]; has && !w.bounded(one, child, depth+1) {
					return false
				}
			}
		case "patternProperties", "prefixItems":
			if !w.allBounded(childValues(member), childValues(value), depth) {
				return false
			}
		case "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "additionalItems", "unevaluatedItems", "contains":
			list := []any{member}
			if several, ok := member.([]any); ok {
				list = several
			}
			if !w.allBounded(list, childValues(value), depth) {
				return false
			}
		}
	}
	return true
}

// resolveRef resolves a reference within the schema.
func (w *workload) resolveRef(ref any) (any, bool) {
	text, ok := ref.(string)
	pointer, local := strings.CutPrefix(text, "#")
	if !ok || !local || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	at := w.root
	for _, part := range strings.Split(pointer, "/")[min(1, len(pointer)):] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := at.(type) {
		case map[string]any:
			at, ok = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(v); ok {
				at = v[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return at, true
}

// allBounded reports whether bounded holds for each combination of the schemas and values.
func (w *workload) allBounded(schemas, values []any, depth int) bool {
	for _, schema := range schemas {
		for _, value := range values {
			if !w.bounded(schema, value, depth+1) {
				return false
			}
		}
	}
	return true
}

// childValues returns the members of an object or a list.
func childValues(value any) []any {
	switch v := value.(type) {
	case []any:
		return v
	case map[string]any:
		return slices.Collect(maps.Values(v))
	}
	return nil
}
