// Package auth owns the credentials a user entered: for which provider, of which kind,
// and the secret itself.
//
// They are kept in one JSON file that only its owner can read (docs/storage.md) and
// that several daemons share: writing takes a lock, replaces the file as a whole and
// keeps entries of kinds this version does not know; reading notices what another
// process wrote. A file that others may read, or that does not parse, is refused with
// the reason and never overwritten.
//
// A secret leaves the package through Secret.Reveal alone: printed, logged or encoded
// it is a mark. The file is protected by its mode, like an SSH key; it is not
// encrypted. Which of several keys of a provider is used is not decided here.
package auth

import "github.com/seed-dec29ce4/eca/internal/redact"

// APIKey is the kind of a credential that is one fixed key.
const APIKey = "api-key"

// Credential is what a user entered for a provider.
type Credential struct {
	Type   string // APIKey
	Key    Secret
	URL    string   // where the provider is, if the configuration does not say
	Models []string // what it offers, if neither the configuration nor the provider says
}

// Secret is a value that must not be shown. The pointer keeps it from formatters,
// which ignore methods inside of unexported fields.
type Secret struct{ value *string }

// NewSecret hides s.
func NewSecret(s string) Secret { return Secret{&s} }

// Reveal returns the value.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// String implements fmt.Stringer without the value.
func (Secret) String() string { return redact.Mark }

// GoString implements fmt.GoStringer without the value.
func (Secret) GoString() string { return redact.Mark }

// MarshalText implements encoding.TextMarshaler, and so JSON, without the value.
func (Secret) MarshalText() ([]byte, error) { return []byte(redact.Mark), nil }
