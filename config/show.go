package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Text returns the value as JSON, or redact.Mark for a secret.
func (v Value) Text() string {
	if v.Secret {
		return redact.Mark
	}
	raw, err := encode(v.masked())
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// masked returns the value, or redact.Mark for a secret. It also masks passwords and tokens in
// addresses within the value.
func (v Value) masked() any {
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

// ParseKeyPath parses the output of KeyPath.
func ParseKeyPath(s string) ([]string, error) {
	var path []string
	for rest := s; ; {
		var key string
		if strings.HasPrefix(rest, `"`) {
			dec := json.NewDecoder(strings.NewReader(rest))
			if err := dec.Decode(&key); err != nil {
				return nil, fmt.Errorf("%q is not a path of keys: a quoted key is not closed", s)
			}
			rest = rest[dec.InputOffset():]
			if rest != "" && !strings.HasPrefix(rest, ".") {
				return nil, fmt.Errorf("%q is not a path of keys: a dot must follow a quoted key", s)
			}
		} else {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			if key, rest = rest[:i], rest[i:]; key == "" {
				return nil, fmt.Errorf("%q is not a path of keys: a key is empty", s)
			}
		}
		path = append(path, key)
		if rest == "" {
			return path, nil
		}
		rest = rest[1:]
	}
}

// UnsetError is the error for a path at which no value is set.
type UnsetError struct {
	Path    []string
	Meant   string // the key that the user probably meant; empty if no key is similar
	Unknown bool   // there is no such key
}

func (e *UnsetError) Error() string {
	switch {
	case !e.Unknown:
		return KeyPath(e.Path) + " is not set"
	case e.Meant != "":
		return fmt.Sprintf("unknown key %s; did you mean %s?", KeyPath(e.Path), e.Meant)
	}
	return "unknown key " + KeyPath(e.Path)
}

// ValuesAt lists the values that are set at and below a path, ordered by path; an empty path means
// all values. Without any value, the error is an *UnsetError.
func (l *Loaded) ValuesAt(path []string) ([]Value, error) {
	// The name of a provider may have any spelling, as in the files.
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
	unset := &UnsetError{Path: path}
	c := newChecker()
	for i := range path {
		if c.keys.lookup(path[:i+1]) == nil {
			unset.Unknown, unset.Meant = true, KeyPath(c.intendedKey(c.keys.lookup(path[:i]), path[:i], path[i], nil))
			break
		}
	}
	return nil, unset
}

// Tree combines the values below a path into a JSON tree, with marks instead of secrets. A single
// value at the path itself is returned directly.
func Tree(values []Value, path []string) any {
	if len(values) == 1 && len(values[0].Path) == len(path) {
		return values[0].masked()
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
		at[rest[len(rest)-1]] = v.masked()
	}
	return tree
}
