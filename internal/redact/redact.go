// Package redact removes secrets from text: values that are known to be secret, and
// what looks like a credential of a common service. It errs on the side of removing.
//
// It guarantees that no known value of six bytes or more is left, also as JSON and the log
// write it. It does not find known values in other encodings, and what only looks like a secret
// it finds by patterns, which are never complete. The time it takes grows with the text only: one
// pass finds where a secret may stand, and only there is looked closer.
package redact

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Mark replaces a secret.
const Mark = "[REDACTED]"

// minSecret keeps short values ("x", "test") from blanking out ordinary text.
const minSecret = 6

// Redactor removes secrets. It is immutable and safe for concurrent use.
type Redactor struct {
	values []string // longest first
	finder func() finder
}

// New returns a redactor that also knows the given values.
func New(secrets ...string) *Redactor { return newRedactor(secrets, allLooks) }

// newRedactor returns a redactor for values and for what looks like a secret. The matcher is
// built when the first text comes: most redactors that watch over a log or an error never see one.
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
	// A secret that contains another must go first.
	slices.SortFunc(r.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.values = slices.Compact(r.values)
	r.finder = sync.OnceValue(func() finder { return newFinder(r.values, looks()) })
	return r
}

// asJSON writes a string as JSON does, with or without escapes for HTML.
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

// SecretName reports whether a value by this name is probably a secret.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "key") || slices.ContainsFunc([]string{"token", "secret", "passw", "passphrase", "credential", "authorization", "cookie"},
		func(word string) bool { return strings.Contains(name, word) })
}
