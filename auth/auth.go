// Package auth stores the credentials that a user entered or obtained by a login: the provider,
// the kind, and the secret.
//
// The credentials are in one JSON file that only its owner can read (docs/storage.md). Several
// daemons share it: a writer takes a lock, replaces the file atomically, and keeps entries of
// unknown kinds; a reader notices changes of other processes. A file that others may read, or that
// does not parse, is neither used nor overwritten, and the error says why. If the system has a keychain,
// the secrets are in the keychain and the file only refers to them. A keychain that does not answer
// causes only a short delay. Store.Token renews a token once, even if several processes request it.
//
// A secret leaves the package only through Secret.Reveal, and through Credential.Secrets for
// callers that remove secrets from texts. A secret that is printed, logged or encoded appears as a
// placeholder. The file is protected by its mode, like an SSH key; it is not encrypted. This
// package does not decide which of a provider's keys is used. The login itself is in auth/oauth.
package auth

import (
	"time"

	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Kinds of credentials (eca-protocol.md 4.11).
const (
	APIKey = "api-key" // one fixed key
	OAuth  = "oauth"   // tokens that are renewed
)

// Credential is a credential for one provider.
type Credential struct {
	Type   string   // APIKey or OAuth
	Key    Secret   // only for an APIKey
	URL    string   // the provider's address, unless the configuration has one
	Models []string // the provider's models, if neither the configuration nor the provider lists them

	// The following fields are only for OAuth.
	Access  Secret    // the access token
	Refresh Secret    // the refresh token; empty if the login cannot be renewed
	Expires time.Time // when Access expires, to the second; zero if not known
	Ended   bool      // the server rejected the login: the user has to log in again
	Method  string    // how the user logged in
	For     Binding   // the endpoints and servers that the tokens are for

	ClientSecret Secret // of the client that eca registered for this login; empty if it has none, or if the configuration sets it
}

// NewLogin returns an OAuth credential with these tokens. An empty refresh token means that the login
// cannot be renewed.
func NewLogin(access, refresh string, expires time.Time) Credential {
	c := Credential{Type: OAuth, Access: NewSecret(access), Expires: expires}
	if refresh != "" {
		c.Refresh = NewSecret(refresh)
	}
	return c
}

// Binding records where tokens may be sent, and the client to which they belong. It applies even if
// the configuration changes later.
type Binding struct {
	TokenURL string `json:"tokenUrl,omitempty"` // the endpoint that renews the tokens
	ClientID string `json:"clientId,omitempty"`
	Basic    bool   `json:"basic,omitempty"`    // the client's secret is sent to TokenURL in a header (HTTP Basic)
	Provider string `json:"provider,omitempty"` // scheme and host of the provider's API, or an MCP server's address; empty means any

	// The following fields are only for logins to MCP servers.
	Issuer   string `json:"issuer,omitempty"`    // the server that issued the tokens
	Resource string `json:"resource,omitempty"`  // the server that accepts the tokens
	Revoke   string `json:"revokeUrl,omitempty"` // the endpoint that revokes the tokens
	Scope    string `json:"scope,omitempty"`     // the requested scopes, separated by spaces
	Redirect string `json:"redirect,omitempty"`  // of the client that eca registered; empty if eca registered none
}

// Secrets lists the values that must not be shown.
func (c Credential) Secrets() []string {
	var out []string
	for _, s := range []Secret{c.Key, c.Access, c.Refresh, c.ClientSecret} {
		if v := s.Reveal(); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// Secret is a value that must not be shown. It holds a pointer, because package fmt does not call the
// methods of unexported fields: it would print a string, but prints only the address of a pointer.
type Secret struct{ value *string }

// NewSecret returns s as a Secret.
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
