package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CheckSchema returns an error that names the first key of a user's JSON Schema, by its path, whose value
// cannot be used. It finds errors that the package jsonschema accepts, or reports in terms of Go types. It
// does not check the limits of values.
func CheckSchema(schema any) error {
	object, ok := schema.(map[string]any)
	if _, always := schema.(bool); !ok && !always {
		return fmt.Errorf("it must be an object: { ... }")
	}
	return checkSchemaObject("", object)
}

// schemaTypes are the values of the key type.
func schemaTypes() []string {
	return []string{"object", "array", "string", "number", "integer", "boolean", "null"}
}

func checkSchemaObject(prefix string, object map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		path, v := prefix+key, object[key]
		var err error
		switch key {
		case "type":
			err = checkSchemaType(path, v)
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			err = checkMembers(path, v)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			err = checkElements(path, v)
		case "items":
			if _, list := v.([]any); list {
				err = checkElements(path, v)
				break
			}
			err = checkSubschema(path, v)
		case "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "additionalItems":
			err = checkSubschema(path, v)
		case "required":
			err = checkStrings(path, v)
		case "enum":
			if _, ok := v.([]any); !ok {
				err = wrongKind(path, "a list", v)
			}
		case "title", "description", "pattern", "format", "$ref", "$id", "$schema", "$comment":
			if _, ok := v.(string); !ok {
				err = wrongKind(path, "a string", v)
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
			if _, ok := v.(float64); !ok {
				err = wrongKind(path, "a number", v)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkSchemaType(path string, v any) error {
	types, ok := v.([]any)
	if name, one := v.(string); one {
		types, ok = []any{name}, true
	}
	if !ok {
		return wrongKind(path, "a string or a list of strings", v)
	}
	for _, t := range types {
		if name, ok := t.(string); !ok {
			return wrongKind(path, "a string or a list of strings", t)
		} else if !slices.Contains(schemaTypes(), name) {
			return fmt.Errorf("%s: there is no type %q; use one of %s", path, name, strings.Join(schemaTypes(), ", "))
		}
	}
	return nil
}

func checkMembers(path string, v any) error {
	members, ok := v.(map[string]any)
	if !ok {
		return wrongKind(path, "an object", v)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := checkSubschema(path+"."+name, members[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkElements(path string, v any) error {
	list, ok := v.([]any)
	if !ok {
		return wrongKind(path, "a list", v)
	}
	for i, sub := range list {
		if err := checkSubschema(fmt.Sprintf("%s.%d", path, i), sub); err != nil {
			return err
		}
	}
	return nil
}

func checkSubschema(path string, v any) error {
	switch v := v.(type) {
	case bool:
		return nil
	case map[string]any:
		return checkSchemaObject(path+".", v)
	}
	return wrongKind(path, "an object", v)
}

func checkStrings(path string, v any) error {
	list, ok := v.([]any)
	if !ok {
		return wrongKind(path, "a list of strings", v)
	}
	for _, e := range list {
		if _, ok := e.(string); !ok {
			return wrongKind(path, "a list of strings", e)
		}
	}
	return nil
}

func wrongKind(path, want string, v any) error {
	found := "an object"
	switch v := v.(type) {
	case nil:
		found = "null"
	case bool:
		found = fmt.Sprint(v)
	case string:
		found = fmt.Sprintf("%q", v)
	case float64:
		found = fmt.Sprintf("the number %v", v)
	case []any:
		found = "a list"
	}
	return fmt.Errorf("%s must be %s, not %s", path, want, found)
}
