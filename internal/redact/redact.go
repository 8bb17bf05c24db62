// Package redact removes secrets from text: known secret values, and texts that look like
// credentials of common services. In doubt it removes.
//
// No known value of six bytes or more remains, including its forms in JSON and in the log. Known
// values in other encodings are not found, and the patterns for credentials are never complete. The
// time is linear in the length of the text: one pass finds possible positions of secrets, and only
// these are checked.
package redact

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Mark is the replacement for a secret.
const Mark = "[REDACTED]"

// minSecret is the shortest known value that is removed: shorter ones ("x", "test") occur in
// ordinary text.
const minSecret = 6

// Redactor removes secrets. It is immutable and safe for concurrent use.
type Redactor struct {
	values []string // longest first
	finder func() finder
}

// New returns a redactor for credentials and for the given values.
func New(secrets ...string) *Redactor { return newRedactor(secrets, allLooks) }

// newRedactor returns a redactor for values and patterns. The automaton is built for the first
// text, since most redactors of a log or of errors never get one.
func newRedactor(secrets []string, looks func() []look) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if len(s) < minSecret || strings.Contains(Mark, s) {
			continue
		}
		r.values = append(r.values, s)
		for _, quoted := range []string{asJSON(s, true), asJSON(s, false), strconv.Quote(s)} {
			if quoted = quoted[1 : len(quoted)-1]; quoted != s {
				r.values = append(r.values, quoted)
			}
		}
	}
	// A secret that contains another one must come first.
	slices.SortFunc(r.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.values = slices.Compact(r.values)
	r.finder = sync.OnceValue(func() finder { return newFinder(r.values, looks()) })
	return r
}

// asJSON encodes a string as JSON, with or without HTML escapes.
func asJSON(s string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	if s == "" {
		return s
	}
	return r.finder().clean(s)
}

// Value removes secrets from a decoded JSON value, in place if possible: those that clean finds in
// its strings and names, and strings in members with a name such as password.
func Value(v any, clean func(string) string) any { return value("", v, clean) }

func value(name string, v any, clean func(string) string) any {
	switch v := v.(type) {
	case string:
		if v != "" && SecretName(name) {
			return Mark
		}
		return clean(v)
	case []any:
		for i, item := range v {
			v[i] = value(name, item, clean)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[clean(key)] = value(key, member, clean)
		}
		return out
	}
	return v
}

// SecretName reports whether a value with this name is probably a secret.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "key") || slices.ContainsFunc([]string{"token", "secret", "passw", "passphrase", "credential", "authorization", "cookie"},
		func(word string) bool { return strings.Contains(name, word) })
}

// Writer applies clean to each write before it passes the text to w; a log record is one write. A
// secret that is split between two writes is not found.
func Writer(w io.Writer, clean func(string) string) io.Writer { return &writer{w, clean} }

type writer struct {
	w     io.Writer
	clean func(string) string
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.clean(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Known returns a redactor for the given values only, without the patterns for secrets.
func Known(secrets ...string) *Redactor {
	return newRedactor(secrets, func() []look { return nil })
}

// Credentials is Known without values that are too short to be a credential: replacing an ordinary
// word in a model's input would make it useless.
func Credentials(secrets ...string) *Redactor {
	const least = 8
	return Known(slices.DeleteFunc(slices.Clone(secrets), func(s string) bool {
		return len(s) < least || s == "undefined" || s[0] == '/'
	})...)
}
