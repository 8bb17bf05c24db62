package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Definition is a tool whose arguments are the Go type A. Its JSON Schema is
// inferred from A: fields without omitempty are required, `jsonschema` tags are
// descriptions.
type Definition[A any] struct {
	Name        string
	Description string
	Preparing   string
	Progress    string
	OwnChat     bool                                             // see Spec.OwnChat
	ReadOnly    bool                                             // see Spec.ReadOnly
	PrimaryOnly bool                                             // see Spec.PrimaryOnly
	For         func(agent string) (description string, ok bool) // see Spec.For
	Enums       map[string][]string                              // allowed values by argument
	Plan        func(ctx context.Context, call Call, args A) (Plan, error)
	Run         func(ctx context.Context, call Call, args A, out Sink) (Result, error)
}

// Build returns the tool. It panics if A has no schema, which is a programming error that shows at
// the first start.
func (d Definition[A]) Build() Tool {
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", d.Name, err))
	}
	for name, values := range d.Enums {
		for _, v := range values {
			schema.Properties[name].Enum = append(schema.Properties[name].Enum, v)
		}
	}
	relax(schema)
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", d.Name, err))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", d.Name, err))
	}
	return &defined[A]{
		def:    d,
		schema: resolved,
		spec: Spec{
			Server: Native, Name: d.Name, Origin: OriginNative,
			Description: strings.TrimSpace(d.Description), Schema: raw, Preparing: d.Preparing, Progress: d.Progress, OwnChat: d.OwnChat, ReadOnly: d.ReadOnly,
			PrimaryOnly: d.PrimaryOnly, For: d.For,
		},
	}
}

// relax allows properties that are not in the schema (models add a summary, for example, which is
// harmless), and removes null from the types of lists, since omitting them means the same.
func relax(s *jsonschema.Schema) {
	if additional := s.AdditionalProperties; additional != nil && additional.Not != nil {
		s.AdditionalProperties = nil
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	for _, p := range s.Properties {
		relax(p)
	}
	if s.Items != nil {
		relax(s.Items)
	}
}

type defined[A any] struct {
	def    Definition[A]
	schema *jsonschema.Resolved
	spec   Spec
}

func (t *defined[A]) Spec() Spec { return t.spec }

func (t *defined[A]) Plan(ctx context.Context, call Call) (Plan, error) {
	args, err := t.decode(call.Arguments)
	if err != nil {
		return Plan{}, err
	}
	return t.def.Plan(ctx, call, args)
}

func (t *defined[A]) Run(ctx context.Context, call Call, out Sink) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	args, err := t.decode(call.Arguments)
	if err != nil {
		return Result{}, err
	}
	return t.def.Run(ctx, call, args, out)
}

// decode validates arguments. Optional arguments that are null or "" count as absent, since models
// send such values.
func (t *defined[A]) decode(raw json.RawMessage) (A, error) {
	var args A
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&m); err != nil {
		return args, fmt.Errorf("INVALID_ARGS: the arguments of %s are not a JSON object: %w", t.spec.Name, err)
	}
	required := t.schema.Schema().Required
	for name, v := range m {
		if (v == nil || v == "") && !slices.Contains(required, name) {
			delete(m, name)
		}
	}
	var missing []string
	for _, name := range required {
		if v, ok := m[name]; !ok || v == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return args, fmt.Errorf("INVALID_ARGS: %s needs %s", t.spec.Name, strings.Join(missing, ", "))
	}
	if err := t.schema.Validate(m); err != nil {
		return args, fmt.Errorf("INVALID_ARGS: %s: %s", t.spec.Name, innermost(err))
	}
	clean, err := json.Marshal(m)
	if err != nil {
		return args, err
	}
	return args, json.Unmarshal(clean, &args)
}

// innermost drops the validator's schema paths, which are useless for a model.
func innermost(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}
