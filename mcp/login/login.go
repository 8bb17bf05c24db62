// Package login logs in to MCP servers that require it, by OAuth as the Model Context Protocol uses
// it (its pages on authorization from 2025-03-26 to 2026-07-28, eca-features.md 19).
//
// It covers everything between a server's refusal and a token: parsing the refusal
// (Account.Refused), logging in (flow.go), choosing the OAuth client (client.go), and limiting the
// addresses that eca contacts (guard.go).
//
// Guarantees: a browser opens only when the user starts a login. A token is bound to one server's
// address and sent to no other. It is renewed only once, even if several processes request it at the
// same time. Metadata is trusted only about its publisher, and can refer eca to addresses of this
// machine or network only if the server is there too. Logins without PKCE, and logins over plain
// HTTP to another machine, are refused.
//
// It does not send the tokens, does not open browsers, and does not know the configuration or the
// state of a server.
package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Deps are the dependencies of the package.
type Deps struct {
	// Store contains the logins to MCP servers and nothing else.
	Store func() *auth.Store
	// HTTP returns a client whose connections are guarded (netclient.Options).
	HTTP func() *http.Client
	Now  func() time.Time
	Log  *slog.Logger
	// Lookup finds a host's addresses; nil means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Server is a configured MCP server, with all variables expanded.
type Server struct {
	Key string // of its stored login (Key)
	URL string

	ClientID     string // empty: eca registers itself. An https address is the address of the client's metadata
	ClientSecret string
	ClientName   string // under which eca registers itself; empty means defaultClientName
	Port         int    // of the redirect; 0 means any
}

// Logins are the logins to MCP servers. It is safe for concurrent use.
type Logins struct {
	deps Deps

	mu           sync.Mutex                 // guards the fields below
	challenges   map[string]oauth.Challenge // the last challenge of each server, by key
	insufficient map[string]string          // tokens that lack permissions, by key
}

// New returns the logins of a store.
func New(d Deps) *Logins {
	if d.Lookup == nil {
		d.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	return &Logins{deps: d, challenges: map[string]oauth.Challenge{}, insufficient: map[string]string{}}
}

// Of returns the account of a server, even if no login exists.
func (l *Logins) Of(s Server) *Account { return &Account{logins: l, server: s} }

// Account is the login to one server.
type Account struct {
	logins *Logins
	server Server
}

// NeededError means that the user has to log in, again or with more permission.
type NeededError struct{ Reason string }

func (e *NeededError) Error() string { return e.Reason }

// Needed distinguishes this error from others (mcp.Login).
func (*NeededError) Needed() {}

// boundURL returns the part of the server's address to which a login is bound.
func (a *Account) boundURL() string { return oauth.Canonical(a.server.URL) }

// stored returns the stored login, if it is for this server.
func (a *Account) stored() (auth.Credential, bool) {
	all, _ := a.logins.deps.Store().All() // read errors are reported with the configuration
	c, ok := all[a.server.Key]
	return c, ok && c.Type == auth.OAuth && c.For.Provider == a.boundURL()
}

// Exists reports whether there is a login that has not ended.
func (a *Account) Exists() bool {
	c, ok := a.stored()
	return ok && !c.Ended
}

// Usable reports whether there is a login that has not ended, and that the server has not refused
// because it lacks permissions.
func (a *Account) Usable() bool {
	c, ok := a.stored()
	a.logins.mu.Lock()
	defer a.logins.mu.Unlock()
	return ok && !c.Ended && c.Access.Reveal() != a.logins.insufficient[a.server.Key]
}

// Token returns the access token for requests to the server; it is empty without a login.
func (a *Account) Token(ctx context.Context) (string, error) {
	token, err := a.token(ctx, "")
	if errors.Is(err, auth.ErrNone) || errors.Is(err, auth.ErrEnded) {
		return "", nil // the server's refusal will say what it requires
	}
	return token, err
}

// token returns an access token that is valid for a while, other than the rejected one.
func (a *Account) token(ctx context.Context, rejected string) (string, error) {
	if _, ok := a.stored(); !ok {
		return "", auth.ErrNone
	}
	c, err := a.logins.deps.Store().Token(ctx, a.server.Key, rejected, a.logins.deps.Now, a.renew)
	switch {
	case err != nil:
		return "", err
	case c.For.Provider != a.boundURL():
		return "", auth.ErrNone
	}
	return c.Access.Reveal(), nil
}

// renew is an auth.Renewer.
func (a *Account) renew(ctx context.Context, old auth.Credential) (auth.Credential, error) {
	client := a.client(ctx)
	t, err := client.Refresh(ctx, a.provider(old), old.Refresh.Reveal())
	if oauth.Ended(err) {
		return auth.Credential{}, fmt.Errorf("%w: %w", auth.ErrEnded, err)
	}
	return auth.NewLogin(t.Access, t.Refresh, t.Expires), err
}

// provider returns the login server that issued a login, and the client that it was issued to.
func (a *Account) provider(c auth.Credential) oauth.Provider {
	secret := c.ClientSecret.Reveal()
	if secret == "" && c.For.ClientID == a.server.ClientID && c.For.Redirect == "" {
		secret = a.server.ClientSecret
	}
	return oauth.Provider{
		Issuer: c.For.Issuer, TokenURL: c.For.TokenURL, RevokeURL: c.For.Revoke, Resource: c.For.Resource,
		ClientID: c.For.ClientID, ClientSecret: secret, SecretInHeader: c.For.Basic,
	}
}

// Refused handles the server's refusal of a request with status 401 or 403. It takes the
// WWW-Authenticate headers of the answer and the token that was sent. It returns another token to
// try. An empty token without an error means that the refusal is not about logins. A *NeededError
// means that the user has to log in.
func (a *Account) Refused(ctx context.Context, status int, headers []string, sent string) (token string, err error) {
	challenge := oauth.ParseChallenge(headers)
	if status == http.StatusForbidden {
		err := a.missingScopes(challenge)
		if _, needed := errors.AsType[*NeededError](err); needed {
			a.logins.mu.Lock()
			a.logins.insufficient[a.server.Key] = sent
			a.logins.mu.Unlock()
		}
		return "", err
	}
	a.logins.saveChallenge(a.server.Key, challenge)
	token, err = a.token(ctx, sent)
	if !errors.Is(err, auth.ErrEnded) && !errors.Is(err, auth.ErrNone) {
		return token, err
	}
	reason := "the server requires a login: connect it in an editor, run `eca mcp login`, or give it an Authorization header"
	if errors.Is(err, auth.ErrEnded) {
		reason = "the login has ended; log in again"
	}
	if a.server.ClientID != "" && a.server.ClientSecret != "" {
		switch err := a.login(ctx, nil); {
		case err == nil:
			return a.token(ctx, sent)
		case !errors.Is(err, errUser):
			reason = "the login as the configured client failed: " + err.Error()
		}
	}
	return "", &NeededError{reason}
}

// missingScopes returns an error that names the scopes that a login lacks. It ignores those that were
// already requested: the server would refuse the next login too.
func (a *Account) missingScopes(challenge oauth.Challenge) error {
	if challenge.Error != "insufficient_scope" || len(challenge.Scopes) == 0 {
		return nil
	}
	var has []string
	if c, ok := a.stored(); ok {
		has = strings.Fields(c.For.Scope)
	}
	lacks := slices.DeleteFunc(slices.Clone(challenge.Scopes), func(s string) bool { return slices.Contains(has, s) })
	if len(lacks) == 0 {
		return nil
	}
	a.logins.saveChallenge(a.server.Key, challenge)
	return &NeededError{fmt.Sprintf("the server requires more permissions (%s); log in again", shorten.Bytes(strings.Join(lacks, " "), 200))}
}

func (l *Logins) saveChallenge(key string, challenge oauth.Challenge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.challenges[key] = challenge
}

// revokeTime limits how long revoking a token at a logout may take.
const revokeTime = 10 * time.Second

// Forget deletes the login, whichever address it is for, and reports whether it existed. revoke
// revokes it at the login server; it is nil if that server does not support revocation.
func (a *Account) Forget(ctx context.Context) (existed bool, revoke func(context.Context), err error) {
	store := a.logins.deps.Store()
	all, _ := store.All() // an unreadable login cannot be revoked
	c := all[a.server.Key]
	existed, err = store.Delete(ctx, a.server.Key)
	token, hint := c.Refresh.Reveal(), "refresh_token"
	if token == "" {
		token, hint = c.Access.Reveal(), "access_token"
	}
	if err != nil || c.For.Revoke == "" || token == "" {
		return existed, nil, err
	}
	at := *a // with the address of the login, for the guard
	at.server.URL = c.For.Provider
	return existed, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, revokeTime)
		defer cancel()
		if err := at.client(ctx).Revoke(ctx, at.provider(c), token, hint); err != nil {
			at.logins.deps.Log.Warn("deleted a login to an MCP server, but could not revoke it", "server", at.server.Key, "err", err)
		}
	}, nil
}

// Key returns the name under which a login is stored: that of the server, or one for a workspace or
// for servers with the same label (authScope, eca-features.md 19). folders are those of the
// workspace.
func Key(server, scope string, folders []string) string {
	switch scope {
	case "", "global":
		return server
	case "workspace":
		return server + "#ws:" + digest(folders)
	}
	return server + "#scope:" + scope
}

// isPlainHTTP reports whether a URL refers to another machine without TLS.
func isPlainHTTP(address string) bool {
	u, err := url.Parse(address)
	return err != nil || u.Scheme != "https" && !localhost.Is(u.Hostname())
}
