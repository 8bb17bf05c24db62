package login

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
)

// defaultClientName is the name under which eca registers itself.
const defaultClientName = "ECA (Editor Code Assistant)"

// clientChoice is the OAuth client that eca uses, with the listener to which the browser returns.
type clientChoice struct {
	registration    oauth.Registration
	landing         *oauth.BrowserLogin
	registeredByECA bool
}

// chooseClient picks the client: the configured one, the one that eca registered at this login server
// before, or a new one. old is the previous login, which may be from another login server.
func (a *Account) chooseClient(ctx context.Context, client *oauth.Client, at oauth.Authority, scopes []string, old auth.Credential) (clientChoice, error) {
	if id := a.server.ClientID; id != "" && (!isMetadataURL(id) || at.Documents || at.Register == "") {
		b, err := a.listen(client, a.redirect())
		return clientChoice{registration: oauth.Registration{ID: id, Secret: a.server.ClientSecret}, landing: b}, err
	}
	if at.Register == "" {
		return clientChoice{}, fmt.Errorf("the login server %s does not register clients; register eca there (with the redirect %s) and set mcpServers.%s.clientId", at.Issuer, a.redirect(), serverName(a.server.Key))
	}
	if old.For.Issuer == at.Issuer && old.For.Redirect != "" && old.For.ClientID != "" && a.accepts(old.For.Redirect) {
		b, err := a.listen(client, old.For.Redirect)
		if err == nil {
			r := oauth.Registration{ID: old.For.ClientID, Secret: old.ClientSecret.Reveal()}
			if r.Secret != "" && !old.For.Basic {
				r.Method = "client_secret_post"
			}
			return clientChoice{r, b, true}, nil
		}
	}
	b, err := a.listen(client, a.redirect())
	if err != nil {
		return clientChoice{}, err
	}
	r, err := client.Register(ctx, at, cmp.Or(a.server.ClientName, defaultClientName), b.Redirect, scopes)
	if err != nil {
		b.Close()
		return clientChoice{}, fmt.Errorf("the login server %s: %w", at.Issuer, err)
	}
	return clientChoice{r, b, true}, nil
}

// isMetadataURL reports whether a client id is the address of the client's metadata.
func isMetadataURL(id string) bool { return strings.HasPrefix(id, "https://") }

// redirect returns the address that the browser returns to. It uses https if the port is fixed,
// because that is the address that users have registered (eca-features.md 19).
func (a *Account) redirect() string {
	if a.server.Port > 0 {
		return fmt.Sprintf("https://localhost:%d/auth/callback", a.server.Port)
	}
	return "http://localhost:0/auth/callback"
}

// accepts reports whether a registered redirect still matches the configured one.
func (a *Account) accepts(redirect string) bool {
	if a.server.Port > 0 {
		return redirect == a.redirect()
	}
	return strings.HasPrefix(redirect, "http://localhost:")
}

// listen starts to listen for the browser's return.
func (a *Account) listen(client *oauth.Client, redirect string) (*oauth.BrowserLogin, error) {
	b, err := client.Land(redirect)
	if err != nil {
		return nil, err
	}
	if b.Pasting {
		b.Close()
		return nil, fmt.Errorf("cannot listen at %s for the login: another program uses the port", redirect)
	}
	return b, nil
}

// scopes returns the scopes to request: those that the server requires, otherwise all that it
// lists. If the server requires more scopes than the last login had, the old scopes are added.
// If the login server supports offline_access, it is requested so that the login lasts.
func scopes(challenge oauth.Challenge, r oauth.Resource, at oauth.Authority, old auth.Credential) []string {
	out := slices.Clone(challenge.Scopes)
	if len(out) == 0 {
		out = slices.Clone(r.Scopes)
	}
	if challenge.Error == "insufficient_scope" {
		out = append(strings.Fields(old.For.Scope), out...)
	}
	if len(out) > 0 && slices.Contains(at.Scopes, offline) {
		out = append(out, offline)
	}
	var unique []string
	for _, s := range out {
		if !slices.Contains(unique, s) {
			unique = append(unique, s)
		}
	}
	return unique
}

const offline = "offline_access"

// needsNoUser reports whether a login server supports only logins without a user and a browser.
func needsNoUser(at oauth.Authority) bool {
	return slices.Contains(at.Grants, "client_credentials") && !slices.Contains(at.Grants, "authorization_code")
}

// checkPKCE returns an error if a login server does not support PKCE, without which a login is not
// secure.
func checkPKCE(at oauth.Authority) error {
	if slices.Contains(at.PKCE, "S256") {
		return nil
	}
	return errors.New("the login server " + at.Issuer + " does not announce PKCE with S256 (code_challenge_methods_supported); eca does not log in without it, because the login could be stolen")
}

// serverName is the part of a key that names the server.
func serverName(key string) string {
	before, _, _ := strings.Cut(key, "#")
	return before
}

func digest(folders []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(folders)), "\x00")))
	return hex.EncodeToString(sum[:8])
}
