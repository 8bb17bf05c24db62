package jsonrpc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Explain turns the error of decoding doc into one that a peer can act on: it names the
// member by its path and the JSON type that is expected, not the types of Go.
func Explain(doc []byte, err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("%s must be %s, not %s", cmp.Or(memberPath(doc, wrong.Field), "the value"), describeExpected(wrong.Type), describeFound(wrong.Value))
	case errors.As(err, &syntax):
		return fmt.Errorf("invalid JSON at byte %d", syntax.Offset)
	}
	return err
}

// memberPath is the path of a member in the document, without the names of embedded structs.
func memberPath(doc []byte, field string) string {
	var at any
	if json.Unmarshal(doc, &at) != nil {
		return field
	}
	var path []string
	for name := range strings.SplitSeq(field, ".") {
		if list, ok := at.([]any); ok {
			at = firstWithMember(list, name)
		}
		object, _ := at.(map[string]any)
		for key, value := range object {
			if strings.EqualFold(key, name) {
				path, at = append(path, key), value
				break
			}
		}
	}
	return strings.Join(path, ".")
}

// firstWithMember returns the first object of a list that has a member.
func firstWithMember(list []any, name string) any {
	for _, item := range list {
		if object, ok := item.(map[string]any); ok && object[name] != nil {
			return object
		}
	}
	return nil
}

func describeExpected(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return "another type"
	case t == reflect.TypeFor[json.Number]():
		return "a number"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer in range"
	}
	return "another type"
}

// describeFound describes what encoding/json calls string, number, number 1.5, bool, array or object.
func describeFound(value string) string {
	switch {
	case value == "bool":
		return "a boolean"
	case value == "array", value == "object":
		return "an " + value
	case strings.HasPrefix(value, "number "):
		return strings.TrimPrefix(value, "number ")
	}
	return "a " + value
}
