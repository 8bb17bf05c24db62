package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
)

// Login discovers the login server, calls open to show the user a URL, and returns when the login is
// stored, or with the reason for the failure. The user has until the end of ctx. A login without a
// user does not call open.
func (a *Account) Login(ctx context.Context, open func(url string)) error { return a.login(ctx, open) }

// errUser means that a login needs a user.
var errUser = errors.New("the login needs a user")

// login is like Login. If open is nil, it supports only logins without a user.
func (a *Account) login(ctx context.Context, open func(url string)) error {
	if isPlainHTTP(a.server.URL) {
		return errors.New("the server uses plain HTTP, over which others could read the token; use an https url")
	}
	a.logins.mu.Lock()
	challenge := a.logins.challenges[a.server.Key]
	a.logins.mu.Unlock()
	client := a.client(ctx)
	at, resource, err := a.discover(ctx, client, challenge)
	if err != nil {
		return err
	}
	old, _ := a.stored()
	want := scopes(challenge, resource, at, old)
	if needsNoUser(at) {
		return a.loginAsClient(ctx, client, at, resource, want)
	}
	if open == nil {
		return errUser
	}
	if err := checkPKCE(at); err != nil {
		return err
	}
	chosen, err := a.chooseClient(ctx, client, at, want, old)
	if err != nil {
		return err
	}
	defer chosen.landing.Close()
	p := at.As(chosen.registration)
	p.Resource, p.Scopes = resource.ID, want
	if slices.Contains(want, offline) {
		p.Params = map[string]string{"prompt": "consent"} // required by OpenID Connect
	}
	if err := chosen.landing.Begin(p); err != nil {
		return err
	}
	open(chosen.landing.URL)
	tokens, err := chosen.landing.Wait(ctx)
	if err != nil {
		return err
	}
	return a.store(ctx, p, tokens, chosen)
}

// loginAsClient gets tokens for the configured client, without a user.
func (a *Account) loginAsClient(ctx context.Context, client *oauth.Client, at oauth.Authority, r oauth.Resource, want []string) error {
	if a.server.ClientID == "" || a.server.ClientSecret == "" {
		return fmt.Errorf("the login server %s supports only clients, not users: set mcpServers.%s.clientId and clientSecret", at.Issuer, serverName(a.server.Key))
	}
	chosen := clientChoice{registration: oauth.Registration{ID: a.server.ClientID, Secret: a.server.ClientSecret}}
	p := at.As(chosen.registration)
	p.Resource, p.Scopes = r.ID, want
	tokens, err := client.ClientTokens(ctx, p)
	if err != nil {
		return err
	}
	return a.store(ctx, p, tokens, chosen)
}

// store saves a login.
func (a *Account) store(ctx context.Context, p oauth.Provider, t oauth.Tokens, by clientChoice) error {
	c := auth.NewLogin(t.Access, t.Refresh, t.Expires)
	c.For = auth.Binding{
		TokenURL: p.TokenURL, ClientID: p.ClientID, Basic: p.SecretInHeader, Provider: a.boundURL(),
		Issuer: p.Issuer, Resource: p.Resource, Revoke: p.RevokeURL, Scope: strings.Join(p.Scopes, " "),
	}
	if by.registeredByECA {
		c.For.Redirect = by.landing.Redirect
		if p.ClientSecret != "" {
			c.ClientSecret = auth.NewSecret(p.ClientSecret)
		}
	}
	if err := a.logins.deps.Store().Set(ctx, a.server.Key, c); err != nil {
		return err
	}
	a.logins.mu.Lock()
	defer a.logins.mu.Unlock()
	delete(a.logins.challenges, a.server.Key)
	return nil
}

// discover returns the login server and the resource metadata of the MCP server. A server without
// metadata is its own login server (2025-03-26), if necessary at the default paths of that version.
func (a *Account) discover(ctx context.Context, client *oauth.Client, challenge oauth.Challenge) (oauth.Authority, oauth.Resource, error) {
	resource, err := client.Resource(ctx, a.server.URL, challenge.Metadata)
	if err != nil && !errors.Is(err, oauth.ErrNoMetadata) {
		return oauth.Authority{}, resource, fmt.Errorf("cannot use the server's metadata: %w", err)
	}
	resource.ID = cmp.Or(resource.ID, oauth.Canonical(a.server.URL))
	if len(resource.Issuers) == 0 {
		at, err := a.ownAuthority(ctx, client)
		return at, resource, err
	}
	var errs []error
	const maxIssuers = 5 // issuers tried for one server
	for _, issuer := range resource.Issuers[:min(len(resource.Issuers), maxIssuers)] {
		at, err := client.Authority(ctx, issuer)
		if err == nil {
			return at, resource, nil
		}
		if ctx.Err() != nil {
			return at, resource, ctx.Err()
		}
		errs = append(errs, err)
	}
	return oauth.Authority{}, resource, fmt.Errorf("cannot use the login server's metadata: %w", errors.Join(errs...))
}

// ownAuthority returns the server as its own login server.
func (a *Account) ownAuthority(ctx context.Context, client *oauth.Client) (oauth.Authority, error) {
	u, err := url.Parse(a.server.URL)
	if err != nil {
		return oauth.Authority{}, errors.New("invalid url")
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host}
	at, err := client.Authority(ctx, root.String())
	if err == nil || !errors.Is(err, oauth.ErrNoMetadata) {
		return at, err
	}
	return oauth.Authority{
		Issuer: root.String(), Authorize: root.String() + "/authorize", Token: root.String() + "/token", Register: root.String() + "/register",
		PKCE: []string{"S256"},
	}, nil
}
