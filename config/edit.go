package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Change is one change of a configuration file; see Set and Delete.
type Change struct {
	path    []string
	value   any
	remove  bool
	ifEmpty bool // remove only an empty object
}

// Set returns the change that stores a value, encoded as JSON, at a path of keys. It creates
// missing objects. When an object replaces an object, only the differences are edited.
func Set(value any, path ...string) Change { return Change{path: path, value: value} }

// Delete returns the change that removes the value at a path of keys, if it exists.
func Delete(path ...string) Change { return Change{path: path, remove: true} }

// DeleteEmpty returns the change that removes the object at a path of keys if it is empty and
// contains no comment.
func DeleteEmpty(path ...string) Change { return Change{path: path, remove: true, ifEmpty: true} }

// edit applies changes in order to the text of a configuration file; source names it in errors.
// Everything except the changed values stays the same: order, format and comments, except comments
// within a value that is replaced or removed. An empty text counts as an empty object. The names of
// providers match in any spelling.
//
// It is an error if the text does not parse, or if a path leads through a value that is not an
// object.
func edit(source string, src []byte, changes []Change) ([]byte, error) {
	text, bom := bytes.CutPrefix(src, utf8BOM())
	if _, broken := parse(source, text); broken != nil {
		return nil, errors.New(broken.String())
	}
	text = ensureObject(withNewline(text))
	before := text
	for _, c := range changes {
		var err error
		if text, err = c.apply(text); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
	}
	if bytes.Equal(text, before) {
		return src, nil
	}
	if _, broken := parse(source, text); broken != nil {
		return nil, fmt.Errorf("the change would break the file: %s", broken)
	}
	if len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	if bom {
		text = append(utf8BOM(), text...)
	}
	return text, nil
}

// ensureObject returns a text that contains an object when parsed, and adds one if necessary.
func ensureObject(text []byte) []byte {
	if len(bytes.TrimSpace(text)) == 0 {
		return []byte("{}\n")
	}
	if root, err := hujson.Parse(text); err == nil && isNull(&root) {
		return splice(text, textEdit{root.StartOffset, root.EndOffset, []byte("{}")})
	}
	return text
}

func (c Change) apply(text []byte) ([]byte, error) {
	if len(c.path) == 0 || slices.ContainsFunc(c.path, func(k string) bool { return !utf8.ValidString(k) }) {
		return nil, fmt.Errorf("%q is not a path of keys", c.path)
	}
	if c.ifEmpty {
		if p, err := find(text, c.path); err != nil || p.index < 0 || len(p.rest) > 1 || !isEmptyObject(p.object.Value.(*hujson.Object).Members[p.index].Value) {
			return text, err
		}
	}
	if c.remove {
		return remove(text, c.path)
	}
	raw, err := encode(c.value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyPath(c.path), err)
	}
	return set(text, c.path, raw)
}

// location is the position in a text to which a path of keys leads.
type location struct {
	text   []byte
	root   *hujson.Value
	object *hujson.Value // the last existing object on the path
	index  int           // of the next member in object, or -1
	rest   []string      // the keys of the path below object
}

// find follows a path. It returns an error if a value on the path is not an object. Null counts as
// missing, as it does when layers are merged.
func find(text []byte, path []string) (location, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return location{}, err
	}
	p := location{text: text, root: &root, object: &root}
	for i, key := range path {
		object, ok := p.object.Value.(*hujson.Object)
		if !ok {
			return location{}, fmt.Errorf("%s is not an object", KeyPath(path[:i]))
		}
		p.rest, p.index = path[i:], lastMember(object, path[:i], key)
		if p.index < 0 || i == len(path)-1 {
			break
		}
		value := &object.Members[p.index].Value
		if isNull(value) {
			break
		}
		p.object = value
	}
	return p, nil
}

func isNull(v *hujson.Value) bool { return v.Value.Kind() == 'n' }

// isEmptyObject reports whether a value is an object that contains only white space.
func isEmptyObject(v hujson.Value) bool {
	object, ok := v.Value.(*hujson.Object)
	return ok && len(object.Members) == 0 && len(bytes.TrimSpace(object.AfterExtra)) == 0
}

// lastMember returns the index of a key, or -1 if it is missing. If a key occurs several times, the
// last one wins.
func lastMember(object *hujson.Object, parent []string, key string) int {
	provider := len(parent) == 1 && parent[0] == "providers"
	for i, m := range slices.Backward(object.Members) {
		name, ok := m.Name.Value.(hujson.Literal)
		if ok && (name.String() == key || provider && Kebab(name.String()) == Kebab(key)) {
			return i
		}
	}
	return -1
}

// set puts a value at a path.
func set(text []byte, path []string, raw []byte) ([]byte, error) {
	p, err := find(text, path)
	if err != nil {
		return nil, err
	}
	if p.index < 0 {
		return p.insert(nest(p.rest[1:], raw)), nil
	}
	old := &p.object.Value.(*hujson.Object).Members[p.index].Value
	if len(p.rest) > 1 { // through null
		return p.replace(old, nest(p.rest[1:], raw)), nil
	}
	before, after := decode(standard(old)), decode(raw)
	oldMap, wasObject := before.(map[string]any)
	newMap, isObject := after.(map[string]any)
	switch {
	case reflect.DeepEqual(before, after):
		return text, nil
	case wasObject && isObject:
		return setMembers(text, path, oldMap, newMap)
	}
	return p.replace(old, raw), nil
}

// setMembers turns one object into another. It removes members first, because two spellings of a
// provider's name are the same key.
func setMembers(text []byte, path []string, before, after map[string]any) ([]byte, error) {
	var err error
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[key]; stays {
			continue
		}
		if text, err = remove(text, append(slices.Clone(path), key)); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		raw, err := encode(after[key])
		if err != nil {
			return nil, err
		}
		if text, err = set(text, append(slices.Clone(path), key), raw); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// remove removes the value at a path, including duplicates of its key.
func remove(text []byte, path []string) ([]byte, error) {
	for {
		p, err := find(text, path)
		if err != nil || p.index < 0 || len(p.rest) > 1 {
			return text, err
		}
		text = p.remove()
	}
}

// nest wraps a value in objects.
func nest(keys []string, raw []byte) []byte {
	for _, key := range slices.Backward(keys) {
		raw = slices.Concat([]byte("{"), hujson.String(key), []byte(":"), raw, []byte("}"))
	}
	return raw
}

// encode returns compact JSON without the escapes for HTML.
func encode(v any) ([]byte, error) { return encodeWith(v, "") }

// encodeIndented returns JSON for people to read.
func encodeIndented(v any) ([]byte, error) { return encodeWith(v, "  ") }

func encodeWith(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// decode decodes valid JSON and keeps numbers as they are written.
func decode(raw []byte) any {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&v)
	return v
}

// standard returns a value of a file as plain JSON.
func standard(v *hujson.Value) []byte {
	c := v.Clone()
	c.Minimize()
	return c.Pack()
}

func utf8BOM() []byte { return []byte("\xef\xbb\xbf") }
