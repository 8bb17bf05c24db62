package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Text returns the value as JSON, or a mark in place of a secret.
func (v Value) Text() string {
	if v.Secret {
		return redact.Mark
	}
	raw, err := encode(v.shown())
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// shown returns the value, or a mark in place of a secret. Passwords and tokens in addresses
// are secrets within a value.
func (v Value) shown() any {
	if v.Secret {
		return redact.Mark
	}
	return withoutCredentials(v.Value)
}

func withoutCredentials(v any) any {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "://") {
			return redact.New().String(v)
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutCredentials(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = withoutCredentials(e)
		}
		return out
	}
	return v
}

// ParseKeyPath reads what KeyPath writes.
func ParseKeyPath(s string) ([]string, error) {
	var path []string
	for rest := s; ; {
		var key string
		if strings.HasPrefix(rest, `"`) {
			dec := json.NewDecoder(strings.NewReader(rest))
			if err := dec.Decode(&key); err != nil {
				return nil, fmt.Errorf("%q is no path of keys: a quoted key does not end", s)
			}
			rest = rest[dec.InputOffset():]
			if rest != "" && !strings.HasPrefix(rest, ".") {
				return nil, fmt.Errorf("%q is no path of keys: a dot must follow a quoted key", s)
			}
		} else {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			if key, rest = rest[:i], rest[i:]; key == "" {
				return nil, fmt.Errorf("%q is no path of keys: one is empty", s)
			}
		}
		path = append(path, key)
		if rest == "" {
			return path, nil
		}
		rest = rest[1:]
	}
}

// UnsetError says that there is no value at a path.
type UnsetError struct {
	Path    []string
	Meant   string // the key that was probably meant; empty if none is near
	Unknown bool   // eca does not know the key
}

func (e *UnsetError) Error() string {
	switch {
	case !e.Unknown:
		return KeyPath(e.Path) + " is not set"
	case e.Meant != "":
		return fmt.Sprintf("there is no key %s; did you mean %s?", KeyPath(e.Path), e.Meant)
	}
	return "there is no key " + KeyPath(e.Path)
}

// ValuesAt lists what is set at and below a path, ordered by path; all that is set if the
// path is empty. If it is nothing, the error is an *UnsetError.
func (l *Loaded) ValuesAt(path []string) ([]Value, error) {
	// What names a provider is known in any spelling, as in the files.
	if len(path) > 1 && path[0] == "providers" {
		path = slices.Clone(path)
		path[1], _ = l.ProviderNamed(path[1])
	}
	var out []Value
	for _, v := range l.Values() {
		if len(v.Path) >= len(path) && slices.Equal(v.Path[:len(path)], path) {
			out = append(out, v)
		}
	}
	if len(out) > 0 || len(path) == 0 {
		return out, nil
	}
	s, err := newSchema()
	if err != nil {
		return nil, err
	}
	unset := &UnsetError{Path: path}
	if schemaAt(s, path) == nil {
		c := &checker{schema: s, paths: schemaKeys(s, nil)}
		for i := range path {
			if schemaAt(s, path[:i+1]) == nil {
				hint := c.suggestion(schemaAt(s, path[:i]), path[:i], path[i])
				unset.Unknown, unset.Meant = true, strings.TrimSuffix(strings.TrimPrefix(hint, "; did you mean "), "?")
				break
			}
		}
	}
	return nil, unset
}

// Tree puts values below a path together as JSON has them, secrets as marks. A single value
// that stands at the path is itself.
func Tree(values []Value, path []string) any {
	if len(values) == 1 && len(values[0].Path) == len(path) {
		return values[0].shown()
	}
	tree := map[string]any{}
	for _, v := range values {
		at := tree
		rest := v.Path[len(path):]
		for _, key := range rest[:len(rest)-1] {
			sub, ok := at[key].(map[string]any)
			if !ok {
				sub = map[string]any{}
				at[key] = sub
			}
			at = sub
		}
		at[rest[len(rest)-1]] = v.shown()
	}
	return tree
}
