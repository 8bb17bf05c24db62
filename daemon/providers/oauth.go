package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
)

// Login methods in addition to auth.APIKey.
const (
	methodBrowser = "oauth"
	methodDevice  = "device"
)

// authServer returns the authorization server of a provider, with the client id and scopes to use.
func authServer(name string, p config.Provider) oauth.Provider {
	a := p.Auth
	out := oauth.Provider{
		Issuer: a.URL, AuthorizeURL: a.AuthorizeURL, TokenURL: a.TokenURL, DeviceURL: a.DeviceURL,
		ClientID: a.ClientID, ClientSecret: a.ClientSecret, Scopes: a.Scopes, RedirectURL: a.RedirectURL, Params: a.Params,
	}
	if name == copilot {
		host := copilotHost(p)
		out.DeviceURL = cmp.Or(out.DeviceURL, host+"/login/device/code")
		out.TokenURL = cmp.Or(out.TokenURL, host+"/login/oauth/access_token")
		out.AuthorizeURL = ""
		if len(out.Scopes) == 0 {
			out.Scopes = []string{"read:user"}
		}
	}
	return out
}

// oauthMethods lists the OAuth login methods. If the configuration has only an issuer, it lists all
// methods, because only a request shows which of them the server supports.
func oauthMethods(name string, p config.Provider) []auth.Method {
	if p.Auth.ClientID == "" {
		return nil
	}
	s := authServer(name, p)
	ask := s.TokenURL == "" && s.Issuer != ""
	var out []auth.Method
	if s.AuthorizeURL != "" || ask {
		out = append(out, auth.Method{Key: methodBrowser, Label: "Log in with the browser"})
	}
	if s.DeviceURL != "" || ask {
		out = append(out, auth.Method{Key: methodDevice, Label: "Log in with a code, on any device"})
	}
	return out
}

// logins gets the tokens of providers that users log in to.
type logins struct{ *view }

// oauthClient returns a client for authorization servers that uses the provider's HTTP client.
func (v logins) oauthClient(name string, p config.Provider) *oauth.Client {
	return &oauth.Client{HTTP: v.endpoint(name, p).Client, Now: v.opts.Now, Sleep: v.opts.Sleep}
}

// binding returns the servers to which the tokens of a login may be sent.
func binding(s oauth.Provider, provider string) auth.Binding {
	return auth.Binding{TokenURL: s.TokenURL, ClientID: s.ClientID, Basic: s.SecretInHeader, Provider: serverOf(provider)}
}

// serverOf returns the scheme and host of a URL.
func serverOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// mayReceive reports whether the tokens of a login may be sent to a provider as it is configured now. A
// changed configuration cannot redirect them to another server.
func mayReceive(p config.Provider, c auth.Credential) bool {
	return c.For.ClientID == p.Auth.ClientID && (c.For.Provider == "" || c.For.Provider == serverOf(cmp.Or(p.URL, c.URL)))
}

// expiresSoon is the remaining time below which a login that eca cannot renew is reported as
// expiring (eca-protocol.md 4.11).
const expiresSoon = 24 * time.Hour

// oauthStatus returns the authentication status of a provider with an OAuth login.
func (m *Models) oauthStatus(p config.Provider, c auth.Credential) auth.Status {
	st := auth.Status{State: auth.Authenticated, Type: auth.OAuth, Source: auth.FromLogin, Mode: c.Method, Expires: c.Expires}
	left := c.Expires.Sub(m.opts.Now())
	final := c.Refresh.Reveal() == "" && !c.Expires.IsZero()
	switch {
	case c.Ended, !mayReceive(p, c), final && left <= 0:
		st.State = auth.Expired
	case final && left < expiresSoon:
		st.State = auth.Expiring
	}
	return st
}

// bearer returns the function that supplies the token for requests to a provider. Without a login
// it supplies an empty token.
func (v logins) bearer(name string, p config.Provider) func(context.Context, string) (string, error) {
	spelled := v.cfg.Spelled(name)
	return func(ctx context.Context, rejected string) (string, error) {
		token, err := v.token(ctx, name, p, rejected)
		switch {
		case errors.Is(err, auth.ErrNone):
			return "", nil
		case err == nil, ctx.Err() != nil:
			return token, err
		}
		return "", loginProblem(spelled, err)
	}
}

func (v logins) token(ctx context.Context, name string, p config.Provider, rejected string) (string, error) {
	if name == copilot {
		return v.copilotKey(ctx, p, rejected)
	}
	c, err := v.login(ctx, name, p, rejected)
	return c.Access.Reveal(), err
}

// login returns a valid login, which it renews if necessary.
func (v logins) login(ctx context.Context, name string, p config.Provider, rejected string) (auth.Credential, error) {
	c, err := v.opts.Credentials().Token(ctx, name, rejected, v.opts.Now, func(ctx context.Context, old auth.Credential) (auth.Credential, error) {
		if !mayReceive(p, old) {
			return auth.Credential{}, errOtherServer
		}
		s := oauth.Provider{TokenURL: old.For.TokenURL, ClientID: old.For.ClientID, ClientSecret: p.Auth.ClientSecret, SecretInHeader: old.For.Basic}
		t, err := v.oauthClient(name, p).Refresh(ctx, s, old.Refresh.Reveal())
		if oauth.Ended(err) {
			return auth.Credential{}, fmt.Errorf("%w: %w", auth.ErrEnded, err)
		}
		return auth.NewLogin(t.Access, t.Refresh, t.Expires), err
	})
	if err == nil && !mayReceive(p, c) {
		return auth.Credential{}, errOtherServer
	}
	return c, err
}

// errOtherServer means that a login was issued for a different server or client.
var errOtherServer = errors.New("the login was for another server or client than is configured now")

// loginProblem converts the error of a missing token. Temporary causes are retryable.
func loginProblem(name string, err error) error {
	var known *llm.Error
	var unreachable *oauth.UnreachableError
	var refused *oauth.Error
	advice := fmt.Sprintf("Log in again: /login %s, or eca login %s.", name, name)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, auth.ErrEnded):
		return &llm.Error{Kind: llm.ErrAuth, Message: fmt.Sprintf("The login for provider %s has expired. %s", name, advice), Cause: err}
	case errors.Is(err, errOtherServer):
		return &llm.Error{Kind: llm.ErrAuth, Message: fmt.Sprintf("Provider %s: %v. %s", name, err, advice), Cause: err}
	case errors.As(err, &unreachable), errors.As(err, &refused) && refused.Status >= 500:
		return &llm.Error{Kind: llm.ErrNetwork, Message: fmt.Sprintf("The login for provider %s cannot be renewed now: %v", name, err), Cause: err}
	}
	return &llm.Error{Kind: llm.ErrAuth, Message: fmt.Sprintf("The login for provider %s cannot be used: %v", name, err), Cause: err}
}
