package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/bug"
)

// key is one key of the configuration. The type and the tags of its field declare it.
//
//	doc      what it is for; required
//	each     what its elements are for; after a |, what their elements are for
//	default  its default value, unless it is a list or an object
//	enum     the strings that it, or its elements, accept
//	strict   other strings are dropped when the configuration is loaded
//	wrong    the string that replaces a value that the key does not accept
//	types    the JSON types that a field of the Go type any accepts
//	min, max the range of a number; max needs min
//	trust    its effect in a file that is not trusted, see trustEffect
//	source   where it may be set, see dropForeignKeys
//	pending  it is accepted, but has no effect
//	rest     the field holds those members of the object whose names users choose
//
// Loading, checking and showing keys use this type, and so do the JSON Schema and the reference in
// docs/configuration.md.
type key struct {
	typ   reflect.Type // without pointers
	index []int        // of the field in its struct
	tag   reflect.StructTag
	docs  []string // for elements of a list or object: what they are for, from the tag each
	types []string // the JSON types that it accepts; empty means all

	expanded bool // the fields below are set; this happens on first use, because most keys are never used
	members  map[string]*key
	element  *key

	deprecated bool
}

// newKeys returns the root of all keys.
func newKeys() *key { return newKey(reflect.TypeFor[Config](), "", nil) }

// newKey describes a field with a type and a tag, or an element of a list or object.
func newKey(typ reflect.Type, tag reflect.StructTag, docs []string) *key {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	k := &key{typ: typ, tag: tag, docs: docs, types: jsonTypes(typ)}
	if types := tag.Get("types"); types != "" {
		k.types = strings.Fields(types)
	}
	return k
}

// WireFormats returns the values of api of a provider.
func WireFormats() []string { return newKeys().lookup([]string{"providers", "*", "api"}).enum() }

// fields returns the keys of an object whose names eca defines.
func (k *key) fields() map[string]*key {
	k.expand()
	return k.members
}

// elem returns the key of the elements of a list, or of an object whose names users choose;
// otherwise nil.
func (k *key) elem() *key {
	k.expand()
	return k.element
}

func (k *key) expand() {
	if k.expanded {
		return
	}
	k.expanded = true
	docs := k.docs[min(1, len(k.docs)):]
	if each := k.tag.Get("each"); each != "" {
		docs = strings.Split(each, "|")
	}
	switch k.typ.Kind() {
	case reflect.Slice:
		k.element = newKey(k.typ.Elem(), reflect.StructTag(fmt.Sprintf("enum:%q strict:%q", k.tag.Get("enum"), k.tag.Get("strict"))), docs)
	case reflect.Map:
		k.element = newKey(k.typ.Elem(), "", docs)
	case reflect.Struct:
		k.members = map[string]*key{}
		for _, f := range reflect.VisibleFields(k.typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Tag.Get("rest") != "" {
				k.element = newKey(f.Type.Elem(), "", []string{f.Tag.Get("doc")})
			} else if name != "" && name != "-" {
				field := newKey(f.Type, f.Tag, nil)
				field.index = f.Index
				k.members[name] = field
			}
		}
	}
}

// jsonTypes returns the JSON types of a Go type, except null.
func jsonTypes(typ reflect.Type) []string {
	switch typ {
	case reflect.TypeFor[Strings]():
		return []string{"string", "array"}
	case reflect.TypeFor[SandboxNetwork](), reflect.TypeFor[LSP]():
		return []string{"boolean", "object"}
	case reflect.TypeFor[HTTPClient](): // was a string in earlier versions
		return []string{"object", "string"}
	}
	switch typ.Kind() {
	case reflect.Interface:
		return nil
	case reflect.String:
		return []string{"string"}
	case reflect.Bool:
		return []string{"boolean"}
	case reflect.Int, reflect.Int64:
		return []string{"integer"}
	case reflect.Float64:
		return []string{"number"}
	case reflect.Slice:
		return []string{"array"}
	case reflect.Map, reflect.Struct:
		return []string{"object"}
	}
	bug.Reportf("configuration has a field of kind %s", typ.Kind())
	return nil
}

// doc returns what the key is for.
func (k *key) doc() string {
	if len(k.docs) > 0 {
		return k.docs[0]
	}
	return k.tag.Get("doc")
}

// enum returns the strings that the key accepts; nil means any.
func (k *key) enum() []string {
	if k.typ.Kind() == reflect.Slice {
		return nil // they belong to the elements
	}
	return strings.Fields(k.tag.Get("enum"))
}

// limit returns min or max; nil without one.
func (k *key) limit(name string) *float64 {
	n, err := strconv.ParseFloat(k.tag.Get(name), 64)
	if err != nil {
		return nil
	}
	return &n
}

// replacement returns the value that replaces one that the key does not accept. ok is false
// without one; the value of an earlier layer then applies.
func (k *key) replacement() (v any, ok bool) {
	text := k.tag.Get("wrong")
	return text, text != ""
}

// consequence says in a message what happens to a value that the key does not accept.
func (k *key) consequence() string {
	if v, ok := k.replacement(); ok {
		return fmt.Sprintf("it counts as %s", v)
	}
	return "it is ignored"
}

// violatedRange describes the range of the key in words if a number is outside it. It is empty if the
// number is valid.
func (k *key) violatedRange(n float64) string {
	least, most := k.limit("min"), k.limit("max")
	switch {
	case least != nil && most != nil && (n < *least || n > *most):
		return fmt.Sprintf("between %v and %v", *least, *most)
	case least != nil && n < *least:
		return fmt.Sprintf("at least %v", *least)
	}
	return ""
}

// member returns the key of a member of an object; nil if there is no such key. Case matters, as in
// the reference server.
func (k *key) member(name string) *key {
	if field := k.fields()[name]; field != nil {
		return field
	}
	return k.elem()
}

// acceptsAnything reports whether the key accepts any content.
func (k *key) acceptsAnything() bool { return k.fields() == nil && k.elem() == nil }

// lookup follows a path in the notation of the schema: * is a name that users choose, [] an element of
// a list.
func (k *key) lookup(path []string) *key {
	for _, name := range path {
		if k = k.member(name); k == nil {
			return nil
		}
	}
	return k
}

// each calls fn for all keys below a key: first fields, ordered by name, then elements.
func (k *key) each(path []string, fn func(path []string, k *key)) {
	visit := func(name string, sub *key) {
		at := append(slices.Clone(path), name)
		fn(at, sub)
		sub.each(at, fn)
	}
	for _, name := range slices.Sorted(maps.Keys(k.fields())) {
		visit(name, k.fields()[name])
	}
	if k.elem() != nil {
		visit(k.elementName(), k.elem())
	}
}

func (k *key) elementName() string {
	if k.typ.Kind() == reflect.Slice {
		return "[]"
	}
	return "*"
}

// defaults adds the default values of keys to an object, unless it has a value already.
func (k *key) defaults(into map[string]any) {
	for name, field := range k.fields() {
		_, isSet := into[name]
		text, hasDefault := field.tag.Lookup("default")
		switch {
		case hasDefault && !isSet:
			var value any = text
			if field.typ.Kind() != reflect.String && json.Unmarshal([]byte(text), &value) != nil {
				bug.Reportf("%s is not a default of %s", text, name)
			}
			into[name] = value
		case field.typ.Kind() == reflect.Struct:
			sub, _ := into[name].(map[string]any)
			if sub == nil {
				sub = map[string]any{}
			}
			if field.defaults(sub); len(sub) > 0 {
				into[name] = sub
			}
		}
	}
}

// acceptsType reports whether the key accepts the type of a decoded value.
func (k *key) acceptsType(v any) bool {
	return len(k.types) == 0 || slices.ContainsFunc(k.types, func(typ string) bool { return isType(v, typ) })
}
