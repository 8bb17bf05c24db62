package config

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/bug"
)

// decode turns the merged map into a Config, dropping values of a wrong type.
func (b *builder) decode() *Config {
	b.prune(b.merged, reflect.TypeFor[Config](), nil)
	cfg := &Config{}
	raw, err := json.Marshal(b.merged)
	if err == nil {
		err = json.Unmarshal(raw, cfg)
	}
	if err != nil {
		bug.Reportf("configuration does not decode after pruning: %v", err)
	}
	return cfg
}

// prune removes from a value what does not fit a type. It reports whether the value
// itself fits.
func (b *builder) prune(v any, typ reflect.Type, path []string) bool {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if v == nil {
		return true
	}
	if _, isString := v.(string); isString && typ == reflect.TypeFor[Strings]() {
		return true
	}
	switch typ.Kind() {
	case reflect.Interface:
		return true
	case reflect.String:
		_, ok := v.(string)
		return ok
	case reflect.Bool:
		_, ok := v.(bool)
		return ok
	case reflect.Int, reflect.Int64:
		f, ok := v.(float64)
		return ok && f == math.Trunc(f) && math.Abs(f) < 1<<53
	case reflect.Float64:
		_, ok := v.(float64)
		return ok
	case reflect.Slice:
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(e any) bool { return !b.prune(e, typ.Elem(), path) })
	case reflect.Map, reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		fields, rest := jsonFields(typ)
		for key, sub := range m {
			elem, known := fields[strings.ToLower(key)]
			if !known && rest != nil {
				elem, known = rest, true
			}
			at := append(slices.Clone(path), key)
			if known && !b.prune(sub, elem, at) {
				delete(m, key)
				b.problemAt(at, "%s must be %s, not %s; it is ignored", strings.Join(at, "."), typeName(elem), valueName(sub))
			}
		}
		return true
	}
	bug.Reportf("configuration has a field of kind %s", typ.Kind())
	return false
}

// originOf returns the origin of a value, or of the object it is in.
func (b *builder) originOf(path []string) Origin {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if o, ok := b.origins[join(path)]; ok {
			return o
		}
	}
	return Origin{Source: "configuration"}
}

// jsonFields returns the types of a struct's fields by lower-cased JSON name, and the type
// of the values whose keys users choose, if there are such.
func jsonFields(typ reflect.Type) (fields map[string]reflect.Type, rest reflect.Type) {
	fields = map[string]reflect.Type{}
	if typ.Kind() == reflect.Map {
		return fields, typ.Elem()
	}
	for _, f := range reflect.VisibleFields(typ) {
		if f.Tag.Get("rest") != "" {
			rest = f.Type.Elem()
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[strings.ToLower(name)] = f.Type
		}
	}
	return fields, rest
}

func typeName(typ reflect.Type) string {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[Strings]() {
		return "a string or a list of strings"
	}
	switch typ.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of the right things"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

func valueName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
