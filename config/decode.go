package config

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
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

// prune removes from a value what does not fit a type, keys of objects and elements of
// lists. It returns what is left, and whether the value itself fits.
func (b *builder) prune(v any, typ reflect.Type, path []string) (any, bool) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if v == nil {
		return v, true
	}
	if _, isString := v.(string); isString && typ == reflect.TypeFor[Strings]() {
		return v, true
	}
	switch typ.Kind() {
	case reflect.Interface:
		return v, true
	case reflect.String:
		_, ok := v.(string)
		return v, ok
	case reflect.Bool:
		_, ok := v.(bool)
		return v, ok
	case reflect.Int, reflect.Int64:
		f, ok := v.(float64)
		return v, ok && f == math.Trunc(f) && math.Abs(f) < 1<<53
	case reflect.Float64:
		_, ok := v.(float64)
		return v, ok
	case reflect.Slice:
		list, ok := v.([]any)
		left := make([]any, 0, len(list))
		for i, e := range list {
			if e, fits := b.pruned(e, typ.Elem(), append(slices.Clone(path), strconv.Itoa(i))); fits {
				left = append(left, e)
			}
		}
		return left, ok
	case reflect.Map, reflect.Struct:
		m, ok := v.(map[string]any)
		fields, rest := jsonFields(typ)
		for key, sub := range m {
			elem, known := fields[strings.ToLower(key)]
			if !known && rest != nil {
				elem, known = rest, true
			}
			if !known {
				continue
			}
			if sub, fits := b.pruned(sub, elem, append(slices.Clone(path), key)); fits {
				m[key] = sub
			} else {
				delete(m, key)
			}
		}
		return m, ok
	}
	bug.Reportf("configuration has a field of kind %s", typ.Kind())
	return v, false
}

// pruned is prune that reports a value that does not fit.
func (b *builder) pruned(v any, typ reflect.Type, path []string) (any, bool) {
	left, fits := b.prune(v, typ, path)
	if !fits {
		b.problemAt(path, "%s must be %s, not %s; it is ignored", strings.Join(path, "."), typeName(typ), valueName(v))
	}
	return left, fits
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
