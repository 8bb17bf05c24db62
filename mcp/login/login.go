// Package login logs in to MCP servers that want it, by OAuth as the Model Context Protocol
// uses it (its pages on authorization from 2025-03-26 to 2026-07-28, eca-features 19).
//
// It owns what happens between a server's refusal and a token: what the refusal says
// (Account.Refused), the login itself (flow.go), as which client eca comes (client.go), and
// whom eca talks to about it (guard.go).
//
// Guarantees: a browser is opened when the user asks for a login and at no other time.
// Tokens are kept for one server's address and go nowhere else; they are renewed once,
// however many ask, also in other processes. Metadata is believed about who published it
// only; nothing of it leads eca to addresses of this machine or network unless the server is
// there itself. No login without PKCE, and none over plain HTTP to another machine.
//
// It does not send the tokens, does not open browsers, and does not know what is configured
// or how a server is.
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

// Deps is what the room needs from the program around it.
type Deps struct {
	// Store has the logins to MCP servers and nothing else.
	Store func() *auth.Store
	// HTTP returns a client whose connections are guarded (netclient.Options).
	HTTP func() *http.Client
	Now  func() time.Time
	Log  *slog.Logger
	// Lookup finds a host's addresses; nil: as the system does.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Server is an MCP server as it is configured, with everything resolved.
type Server struct {
	Key string // under which its login is kept (Key)
	URL string

	ClientID     string // empty: eca registers itself. An https address is where the client's metadata is
	ClientSecret string
	ClientName   string // under which eca registers itself; empty: its usual one
	Port         int    // of the redirect; 0 is any
}

// Logins are the logins to MCP servers. It is safe for concurrent use.
type Logins struct {
	deps Deps

	mu   sync.Mutex                 // guards what follows
	said map[string]oauth.Challenge // what servers said last of what they want, by key
	poor map[string]string          // the tokens that servers want more permission than, by key
}

// New returns the logins that a store has.
func New(d Deps) *Logins {
	if d.Lookup == nil {
		d.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	return &Logins{deps: d, said: map[string]oauth.Challenge{}, poor: map[string]string{}}
}

// Of returns the login to a server, be there one or not.
func (l *Logins) Of(s Server) *Account { return &Account{logins: l, server: s} }

// Account is the login to one server.
type Account struct {
	logins *Logins
	server Server
}

// NeededError says that only the user can help: by logging in, again or with more permission.
type NeededError struct{ Reason string }

func (e *NeededError) Error() string { return e.Reason }

// Needed tells this error from others (mcp.Login).
func (*NeededError) Needed() {}

// bound is the server's address as far as it decides whether a login counts.
func (a *Account) bound() string { return oauth.Canonical(a.server.URL) }

// stored returns the login that there is, if it is for this server.
func (a *Account) stored() (auth.Credential, bool) {
	all, _ := a.logins.deps.Store().All() // what can not be read is told with the configuration
	c, ok := all[a.server.Key]
	return c, ok && c.Type == auth.OAuth && c.For.Provider == a.bound()
}

// Exists says whether there is a login that has not ended.
func (a *Account) Exists() bool {
	c, ok := a.stored()
	return ok && !c.Ended
}

// Hopeful says whether there is a login that has not ended, and that the server has not
// refused for its lack of permission: starting the server with it may help.
func (a *Account) Hopeful() bool {
	c, ok := a.stored()
	a.logins.mu.Lock()
	defer a.logins.mu.Unlock()
	return ok && !c.Ended && c.Access.Reveal() != a.logins.poor[a.server.Key]
}

// Secrets lists what must not be shown.
func (a *Account) Secrets() []string {
	c, ok := a.stored()
	if !ok {
		return nil
	}
	return c.Secrets()
}

// Token returns the access token for requests to the server; empty if there is none.
func (a *Account) Token(ctx context.Context) (string, error) {
	token, err := a.token(ctx, "")
	if errors.Is(err, auth.ErrNone) || errors.Is(err, auth.ErrEnded) {
		return "", nil // the server says what it wants
	}
	return token, err
}

// token returns an access token that is good for a while, and not the rejected one.
func (a *Account) token(ctx context.Context, rejected string) (string, error) {
	if _, ok := a.stored(); !ok {
		return "", auth.ErrNone
	}
	c, err := a.logins.deps.Store().Token(ctx, a.server.Key, rejected, a.logins.deps.Now, a.renew)
	switch {
	case err != nil:
		return "", err
	case c.For.Provider != a.bound():
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
	return credential(t), err
}

// provider is who gave a login, and to which client.
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

func credential(t oauth.Tokens) auth.Credential {
	c := auth.Credential{Type: auth.OAuth, Access: auth.NewSecret(t.Access), Expires: t.Expires}
	if t.Refresh != "" {
		c.Refresh = auth.NewSecret(t.Refresh)
	}
	return c
}

// Refused hears that the server refused a request with status 401 or 403: the headers
// WWW-Authenticate that came with it, and the token that was sent. It returns another token
// to try again with. Empty, without an error, means that the refusal is not about logins. A
// *NeededError means that the user has to log in.
func (a *Account) Refused(ctx context.Context, status int, headers []string, sent string) (token string, err error) {
	said := oauth.ParseChallenge(headers)
	if status == http.StatusForbidden {
		err := a.wantsMore(said)
		var needed *NeededError
		if errors.As(err, &needed) {
			a.logins.mu.Lock()
			a.logins.poor[a.server.Key] = sent
			a.logins.mu.Unlock()
		}
		return "", err
	}
	a.logins.remember(a.server.Key, said)
	token, err = a.token(ctx, sent)
	if !errors.Is(err, auth.ErrEnded) && !errors.Is(err, auth.ErrNone) {
		return token, err
	}
	reason := "the server wants a login"
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

// wantsMore says which permission a login lacks. One that was asked for already is not
// lacking: the server would refuse for ever.
func (a *Account) wantsMore(said oauth.Challenge) error {
	if said.Error != "insufficient_scope" || len(said.Scopes) == 0 {
		return nil
	}
	var has []string
	if c, ok := a.stored(); ok {
		has = strings.Fields(c.For.Scope)
	}
	lacks := slices.DeleteFunc(slices.Clone(said.Scopes), func(s string) bool { return slices.Contains(has, s) })
	if len(lacks) == 0 {
		return nil
	}
	a.logins.remember(a.server.Key, said)
	return &NeededError{fmt.Sprintf("the server wants further permission (%s); log in again", shorten.Bytes(strings.Join(lacks, " "), 200))}
}

func (l *Logins) remember(key string, said oauth.Challenge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said[key] = said
}

// revokeTime bounds how long telling an authorisation server of a logout may take.
const revokeTime = 10 * time.Second

// Forget forgets the login, for whichever address it was, and reports whether there was one.
// Who gave it can be told by revoke, which is nil if they do not want to know.
func (a *Account) Forget(ctx context.Context) (existed bool, revoke func(context.Context), err error) {
	store := a.logins.deps.Store()
	all, _ := store.All() // what can not be read can not be taken back
	c := all[a.server.Key]
	existed, err = store.Delete(ctx, a.server.Key)
	token, hint := c.Refresh.Reveal(), "refresh_token"
	if token == "" {
		token, hint = c.Access.Reveal(), "access_token"
	}
	if err != nil || c.For.Revoke == "" || token == "" {
		return existed, nil, err
	}
	at := *a // the guard is as strict as it was for the login
	at.server.URL = c.For.Provider
	return existed, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, revokeTime)
		defer cancel()
		if err := at.client(ctx).Revoke(ctx, at.provider(c), token, hint); err != nil {
			at.logins.deps.Log.Warn("a login to an MCP server is forgotten, but could not be taken back", "server", at.server.Key, "err", err)
		}
	}, nil
}

// Key says under which name a login is kept: the server's, or one for a workspace or for
// those that share a label (authScope, eca-features 19). folders are the workspace's.
func Key(server, scope string, folders []string) string {
	switch scope {
	case "", "global":
		return server
	case "workspace":
		return server + "#ws:" + digest(folders)
	}
	return server + "#scope:" + scope
}

// plain says whether a URL leads to another machine without TLS.
func plain(address string) bool {
	u, err := url.Parse(address)
	return err != nil || u.Scheme != "https" && !localhost.Is(u.Hostname())
}
