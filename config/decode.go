package config

import (
	"encoding/json"
	"maps"
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
	if err := b.fill(reflect.ValueOf(cfg).Elem(), b.merged); err != nil {
		bug.Reportf("configuration does not decode after pruning: %v", err)
	}
	return cfg
}

// fill sets what encoding/json would set if it decoded the value. To have it do that, the
// whole configuration would be written as JSON first, and encoding/json would make encoders
// for all its types: a third of the time it takes to read a configuration.
func (b *builder) fill(to reflect.Value, v any) error {
	if v == nil {
		return nil
	}
	if one, isString := v.(string); isString && to.Type() == reflect.TypeFor[Strings]() {
		to.Set(reflect.ValueOf(Strings{one}))
		return nil
	}
	if u, ok := to.Addr().Interface().(json.Unmarshaler); ok && to.Kind() == reflect.Struct {
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return u.UnmarshalJSON(raw)
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return b.fill(to.Elem(), v)
	case reflect.Interface:
		to.Set(reflect.ValueOf(cloned(v)))
	case reflect.Int, reflect.Int64:
		f, _ := v.(float64)
		to.SetInt(int64(f))
	case reflect.Slice:
		list, _ := v.([]any)
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i, e := range list {
			if err := b.fill(to.Index(i), e); err != nil {
				return err
			}
		}
	case reflect.Map:
		m, _ := v.(map[string]any)
		to.Set(reflect.MakeMapWithSize(to.Type(), len(m)))
		for key, sub := range m {
			elem := reflect.New(to.Type().Elem()).Elem()
			if err := b.fill(elem, sub); err != nil {
				return err
			}
			to.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), elem)
		}
	case reflect.Struct:
		m, _ := v.(map[string]any)
		fields := b.fieldsOf(to.Type())
		for _, key := range slices.Sorted(maps.Keys(m)) { // of two spellings the last counts
			f, known := fields.named[strings.ToLower(key)]
			if !known {
				continue
			}
			if err := b.fill(to.FieldByIndex(f.Index), m[key]); err != nil {
				return err
			}
		}
	default:
		to.Set(reflect.ValueOf(v).Convert(to.Type()))
	}
	return nil
}

// cloned copies a JSON value.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, sub := range v {
			out[key] = cloned(sub)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloned(e)
		}
		return out
	}
	return v
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
	if _, isBool := v.(bool); isBool && typ == reflect.TypeFor[SandboxNetwork]() {
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
		fields := b.fieldsOf(typ)
		for key, sub := range m {
			elem := fields.rest
			if f, known := fields.named[strings.ToLower(key)]; known {
				elem = f.Type
			}
			if elem == nil {
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
		b.problemAt(path, "%s must be %s, not %s; it is ignored", strings.Join(spelledPath(b.spellings, path), "."), typeName(typ), valueName(v))
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

// jsonFields are the fields of a struct by their lower-cased JSON names.
type jsonFields struct {
	named map[string]reflect.StructField
	rest  reflect.Type // of the values whose keys users choose; nil if there are none
}

// fieldsOf looks at each type once.
func (b *builder) fieldsOf(typ reflect.Type) jsonFields {
	if f, ok := b.fields[typ]; ok {
		return f
	}
	f := fieldsOf(typ)
	b.fields[typ] = f
	return f
}

func fieldsOf(typ reflect.Type) jsonFields {
	if typ.Kind() == reflect.Map {
		return jsonFields{rest: typ.Elem()}
	}
	out := jsonFields{named: map[string]reflect.StructField{}}
	for _, f := range reflect.VisibleFields(typ) {
		if f.Tag.Get("rest") != "" {
			out.rest = f.Type.Elem()
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			out.named[strings.ToLower(name)] = f
		}
	}
	return out
}

func typeName(typ reflect.Type) string {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[Strings]() {
		return "a string or a list of strings"
	}
	if typ == reflect.TypeFor[SandboxNetwork]() {
		return "true, false or an object"
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
