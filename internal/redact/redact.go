// Package redact removes secrets from text: known secret values, and text that looks like a
// credential of a common service. If in doubt, it removes the text.
//
// Redactors from New and Known remove every known value of six bytes or more, including its escaped
// forms in JSON and in the log. They do not find known values in other encodings, and the patterns
// do not cover the credentials of every service. The time is linear in the length of the text: one
// pass finds the positions where a secret may be, and the patterns are tried only there.
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

// minSecret is the minimum length of a known value. Shorter values ("x", "test") occur in ordinary
// text.
const minSecret = 6

// Redactor removes secrets. It is immutable and safe for concurrent use.
type Redactor struct {
	values []string // longest first
	finder func() finder
}

// New returns a redactor for credentials and for the given values.
func New(secrets ...string) *Redactor { return newRedactor(secrets, allPatterns) }

// newRedactor returns a redactor for values and patterns. It builds the automaton when String gets
// the first text: many redactors for logs and errors never get one.
func newRedactor(secrets []string, patterns func() []pattern) *Redactor {
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
	// A secret that contains another secret must come first.
	slices.SortFunc(r.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.values = slices.Compact(r.values)
	r.finder = sync.OnceValue(func() finder { return newFinder(r.values, patterns()) })
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

// Value removes secrets from a decoded JSON value. It applies clean to all strings and member names,
// and replaces strings whose member has a name such as password. It may change v.
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

// Writer returns a writer that applies clean to each write and passes the result to w. It does not
// find a secret that is split between two writes. A log record is one write.
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
	return newRedactor(secrets, func() []pattern { return nil })
}

// Credentials returns a redactor like Known, but ignores the word undefined and values that are too
// short for a credential or begin with a slash. Replacing an ordinary word in the input of a model
// would make the input useless.
func Credentials(secrets ...string) *Redactor {
	const minLen = 8
	return Known(slices.DeleteFunc(slices.Clone(secrets), func(s string) bool {
		return len(s) < minLen || s == "undefined" || s[0] == '/'
	})...)
}
