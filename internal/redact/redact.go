// Package redact removes secrets from text: values that are known to be secret, and
// what looks like a credential of a common service. It errs on the side of removing.
//
// It guarantees that no known value of six bytes or more is left, also as JSON and the log
// write it. It does not find known values in other encodings, and what only looks like a secret
// it finds by patterns, which are never complete.
package redact

import (
	"encoding/json"
	"regexp"
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
	known []string
	looks func() looks
}

// looks are the patterns of what looks like a secret. They are compiled when the first text
// comes: most that is made to watch over a log or an error never sees one.
type looks struct {
	patterns []*regexp.Regexp
	parts    []part
}

// part is a secret beside something that stays.
type part struct {
	pattern *regexp.Regexp
	to      string
}

// New returns a redactor that also knows the given values.
func New(secrets ...string) *Redactor {
	r := &Redactor{looks: sync.OnceValue(compile)}
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		r.known = append(r.known, s)
		for _, quoted := range []string{asJSON(s, true), asJSON(s, false), strconv.Quote(s)} {
			if quoted = quoted[1 : len(quoted)-1]; !slices.Contains(r.known, quoted) {
				r.known = append(r.known, quoted)
			}
		}
	}
	// A secret that contains another must go first.
	slices.SortFunc(r.known, func(a, b string) int { return len(b) - len(a) })
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

func compile() looks {
	l := looks{parts: []part{
		// JSON fields whose names say so.
		{regexp.MustCompile(`(?i)("(?:key|[a-z_-]*api[-_]?key|[a-z_-]*password|[a-z_-]*token|[a-z_-]*secret|authorization)"\s*:\s*")(?:[^"\\]|\\.)*"`), "${1}" + Mark + `"`},
		// URLs: who asks, and parameters.
		{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@"'<>]+@`), "${1}" + Mark + "@"},
		{regexp.MustCompile(`(?i)([?&](?:[a-z0-9_-]*(?:key|token|secret|passw(?:or)?d|sig|signature))=)[^&\s#"'<>]+`), "${1}" + Mark},
	}}
	for _, p := range []string{
		`\bsk-[A-Za-z0-9_-]{16,}`,                                     // OpenAI, Anthropic and others
		`\bgh[pousr]_[A-Za-z0-9]{20,}`,                                // GitHub
		`\bgithub_pat_[A-Za-z0-9_]{20,}`,                              //
		`\bglpat-[A-Za-z0-9_-]{16,}`,                                  // GitLab
		`\bAKIA[0-9A-Z]{16}\b`,                                        // AWS
		`\bAIza[A-Za-z0-9_-]{30,}`,                                    // Google
		`\bxox[abprs]-[A-Za-z0-9-]{10,}`,                              // Slack
		`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`, // JWT
		`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{16,}`,                      //
		`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`,
	} {
		l.patterns = append(l.patterns, regexp.MustCompile(p))
	}
	return l
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	for _, k := range r.known {
		s = strings.ReplaceAll(s, k, Mark)
	}
	looks := r.looks()
	for _, p := range looks.patterns {
		s = p.ReplaceAllString(s, Mark)
	}
	for _, p := range looks.parts {
		s = p.pattern.ReplaceAllString(s, p.to)
	}
	return s
}

// SecretName says whether a value by this name is probably a secret.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "key") || slices.ContainsFunc([]string{"token", "secret", "passw", "passphrase", "credential", "authorization", "cookie"},
		func(word string) bool { return strings.Contains(name, word) })
}
