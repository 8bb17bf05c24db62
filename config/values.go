package config

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Value is one value of the effective configuration that was set explicitly.
type Value struct {
	Path   []string
	Value  any // as encoding/json decodes it. An object is empty: its members are separate Values. A list is complete
	Origin Origin
	// Secret means that the value must not be shown: the name of the key suggests a secret, the value
	// is a header or a variable of a child process, or it comes from the environment or another file.
	Secret bool
}

// Values lists the values that are set, ordered by path.
func (l *Loaded) Values() []Value {
	var out []Value
	l.each(func(v Value, set bool) {
		if set {
			out = append(out, v)
		}
	})
	slices.SortStableFunc(out, func(a, b Value) int { return slices.Compare(a.Path, b.Path) })
	return out
}

// Secrets lists texts that must not be shown anywhere. A value from another file or a variable is
// left out if it is clearly not a secret: a folder, an address, prose. The output of commands and
// passwords from netrc files are always in the list.
func (l *Loaded) Secrets() []string {
	set := map[string]bool{}
	add := func(s string) {
		set[s] = true
		if words := strings.Fields(s); len(words) == 2 {
			set[words[1]] = true // the token in "Bearer TOKEN"
		}
	}
	l.each(func(v Value, _ bool) {
		for _, s := range texts(v.Value) {
			if secretPath(v.Path) && !l.namesFile(v.Path, s) {
				add(s)
			}
			if u, err := url.Parse(s); err == nil && u.User != nil {
				password, _ := u.User.Password()
				add(password)
			}
		}
	})
	for _, layer := range l.layers {
		eachText(layer.withheld, nil, func(path []string, text string) { // values without effect may be secret too
			if !strings.Contains(text, "${") && secretPath(path) && !l.namesFile(path, text) {
				add(text)
			}
		})
	}
	for _, o := range l.origins {
		for piece := range strings.SplitSeq(o.included, "\x00") {
			if secret, ok := strings.CutPrefix(piece, secretMark); ok {
				add(secret)
				continue
			}
			harmless := len(strings.Fields(piece)) > 3
			for _, prefix := range []string{"/", "~", "http://", "https://"} {
				harmless = harmless || strings.HasPrefix(piece, prefix)
			}
			if !harmless {
				add(piece)
			}
		}
	}
	if l.commands != nil {
		for _, s := range l.commands.secrets() {
			add(s)
		}
	}
	delete(set, "")
	return slices.Sorted(maps.Keys(set))
}

// Credentials lists the values of keys whose names clearly mark them as secret, and passwords in
// addresses. It has fewer texts than Secrets; use it for output in which it would matter if a word
// was removed by mistake.
func (l *Loaded) Credentials() []string {
	var out []string
	addIfSecret := func(path []string, s string) {
		words := strings.Fields(s)
		if redact.SecretName(path[len(path)-1]) && len(words) > 0 && len(words) <= 2 {
			out = append(out, s, words[len(words)-1]) // the token in "Bearer TOKEN"
		}
	}
	for _, layer := range l.layers {
		eachText(layer.withheld, nil, func(path []string, text string) {
			if !strings.Contains(text, "${") {
				addIfSecret(path, text)
			}
		})
	}
	l.each(func(v Value, _ bool) {
		for _, s := range texts(v.Value) {
			addIfSecret(v.Path, s)
			if u, err := url.Parse(s); err == nil && u.User != nil {
				if password, ok := u.User.Password(); ok {
					out = append(out, password)
				}
			}
		}
	})
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// each calls fn with every value; set is false for values that were not set explicitly.
func (l *Loaded) each(fn func(v Value, set bool)) {
	raw, err := json.Marshal(l.Config)
	var all map[string]any
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return // cannot happen: the configuration was decoded from JSON
	}
	l.walk(all, nil, fn)
}

// walk calls fn with the values at and below a path. It reports whether one of them is set.
func (l *Loaded) walk(v any, path []string, fn func(Value, bool)) (found bool) {
	if m, ok := v.(map[string]any); ok {
		for key, sub := range m {
			if sub != nil && l.walk(sub, append(slices.Clone(path), key), fn) {
				found = true
			}
		}
		if found || len(path) == 0 {
			return found
		}
		// None of its members is set, but the object itself may be: a model without settings.
		v = map[string]any{}
	}
	origin, set := l.Origin(path...)
	if !set && !isZero(v) {
		// The key may be written in a different case.
		for at := path; !set && len(at) > 0; at = at[:len(at)-1] {
			origin, set = l.Origin(at...)
		}
	}
	fn(Value{Path: path, Value: v, Origin: origin, Secret: secret(path, v, origin)}, set && v != nil)
	return set && v != nil
}

func isZero(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return v == nil
}

// secret reports whether a value must not be shown. Numbers and booleans may be shown.
func secret(path []string, v any, o Origin) bool {
	return len(texts(v)) > 0 && (secretPath(path) || o.included != "" || o.Shared())
}

// secretPath reports whether the values at a path are secret by their nature. Names that users
// choose, like those of providers, do not matter.
func secretPath(path []string) bool {
	last := len(path) - 1
	if redact.SecretName(path[last]) {
		return path[last] != "tokenUrl"
	}
	if path[0] == "mcpServers" && last >= 2 {
		return slices.Contains([]string{"env", "headers", "args"}, path[2])
	}
	for i, name := range path[:last] {
		switch name {
		case "extraHeaders":
			return true
		case "extraPayload":
			return slices.ContainsFunc(path[i+1:], redact.SecretName)
		}
	}
	return false
}

// namesFile reports whether an argument of an MCP server is the name of a file, and so not a
// secret.
func (l *Loaded) namesFile(path []string, arg string) bool {
	if path[0] != "mcpServers" || len(path) < 3 || path[2] != "args" || arg == "" {
		return false
	}
	dirs := []string{""}
	for _, layer := range l.layers {
		if layer.root != "" {
			dirs = append(dirs, layer.root)
		}
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		at := arg
		if !filepath.IsAbs(arg) {
			at = filepath.Join(dir, arg)
		}
		_, err := os.Stat(at)
		return err == nil
	})
}

// texts returns the nonempty strings of a value.
func texts(v any) []string {
	var out []string
	eachText(v, nil, func(_ []string, text string) {
		if text != "" {
			out = append(out, text)
		}
	})
	return out
}

// eachText calls fn with the strings of a value, in a fixed order. Elements of a list have the
// list's path.
func eachText(v any, path []string, fn func(path []string, text string)) {
	switch v := v.(type) {
	case string:
		fn(path, v)
	case []any:
		for _, e := range v {
			eachText(e, path, fn)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			eachText(v[key], append(slices.Clone(path), key), fn)
		}
	}
}

// KeyPath formats a path of keys for users: joined by dots, with keys that contain dots quoted.
func KeyPath(path []string) string {
	out := make([]string, len(path))
	for i, key := range path {
		out[i] = key
		if strings.ContainsAny(key, ". \"\n") || key == "" {
			raw, _ := encode(key) // a string
			out[i] = string(raw)
		}
	}
	return strings.Join(out, ".")
}
