// Package auth owns the credentials a user entered or logged in for: for which provider,
// of which kind, and the secret itself.
//
// They are kept in one JSON file that only its owner can read (docs/storage.md) and
// that several daemons share: writing takes a lock, replaces the file as a whole and
// keeps entries of kinds this version does not know; reading notices what another
// process wrote. A file that others may read, or that does not parse, is refused with
// the reason and never overwritten. Where the system has a keychain, the secrets are
// there, and the file says only that they are; a keychain that does not answer delays
// nothing for long. Store.Token replaces tokens once, however many processes want it.
//
// A secret leaves the package through Secret.Reveal and Credential.Secrets (what others
// must remove from texts) alone: printed, logged or encoded it is a mark. The file is protected by its mode, like an SSH key; it is not
// encrypted. Which of several keys of a provider is used is not decided here, and how
// one logs in is known to auth/oauth.
package auth

import (
	"time"

	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Kinds of credentials (eca-protocol 4.11).
const (
	APIKey = "api-key" // one fixed key
	OAuth  = "oauth"   // tokens that are renewed
)

// Credential is what a user entered for a provider, or logged in for.
type Credential struct {
	Type   string   // APIKey or OAuth
	Key    Secret   // of an APIKey
	URL    string   // where the provider is, if the configuration does not say
	Models []string // what it offers, if neither the configuration nor the provider says

	// Of OAuth.
	Access  Secret
	Refresh Secret    // empty: cannot be renewed
	Expires time.Time // of Access, to the second; zero: not known
	Ended   bool      // the server takes it no more: the user has to log in again
	Method  string    // how the user logged in
	For     Binding   // where the tokens may go

	ClientSecret Secret // of a client that eca registered for this login; empty: it has none, or the configuration has it
}

// Binding says to whom tokens may be sent: nobody else gets them, whatever a
// configuration says later.
type Binding struct {
	TokenURL string `json:"tokenUrl,omitempty"` // renews them
	ClientID string `json:"clientId,omitempty"`
	Basic    bool   `json:"basic,omitempty"`    // the client's secret goes into a header there
	Provider string `json:"provider,omitempty"` // scheme and host of the provider's API, or an MCP server's address; empty: any

	// Of logins to MCP servers.
	Issuer   string `json:"issuer,omitempty"`    // who gave the tokens
	Resource string `json:"resource,omitempty"`  // whom they are for
	Revoke   string `json:"revokeUrl,omitempty"` // takes them back
	Scope    string `json:"scope,omitempty"`     // what was asked for, separated by spaces
	Redirect string `json:"redirect,omitempty"`  // as the client is registered, if eca registered it
}

// Secrets lists what must not be shown.
func (c Credential) Secrets() []string {
	var out []string
	for _, s := range []Secret{c.Key, c.Access, c.Refresh, c.ClientSecret} {
		if v := s.Reveal(); v != "" {
			out = append(out, v)
		}
	}
	return out
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
