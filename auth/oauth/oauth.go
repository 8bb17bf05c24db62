// Package oauth logs in to OAuth 2 servers and renews tokens. It supports the authorization code
// flow with PKCE, by a redirect to this machine or by a pasted address (browser.go), and the device
// flow for machines without a browser (device.go). If only an issuer is known, the other endpoints
// come from its metadata (discover.go, RFC 8414). It reads which authorization servers a resource
// server accepts (challenge.go, resource.go), and it can register clients (register.go).
//
// Guarantees: secrets are sent only to the endpoints of one Provider, over TLS unless they are on
// this machine, and never to the target of a redirect; errors contain no token, code or client
// secret; every request identifies itself as eca. The package stores nothing and does not know
// model providers.
package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Provider is an authorization server and the client that eca uses there. eca has no client of its
// own; the client belongs to the user or was registered for the login.
type Provider struct {
	Issuer       string // its metadata supplies the endpoints that are not set below
	AuthorizeURL string
	TokenURL     string
	DeviceURL    string
	ClientID     string
	ClientSecret string // empty for public clients
	Scopes       []string
	RedirectURL  string            // as registered; default: http://127.0.0.1/callback at any port
	Params       map[string]string // further parameters of the authorization request

	SecretInHeader bool // send the client secret in a header; set by Discover if the server accepts nothing else

	Resource       string // the resource that the tokens are for (RFC 8707); empty: not sent
	RevokeURL      string // endpoint that revokes tokens (RFC 7009); empty: not supported
	ResponseIssuer string // the issuer that redirects must contain (RFC 9207); empty: any
	SendsIssuer    bool   // refuse redirects without an issuer
}

// Tokens are the result of a login. They are secret.
type Tokens struct {
	Access  string
	Refresh string    // empty: cannot be renewed
	Expires time.Time // zero: unknown
}

// Client sends requests to authorization servers.
type Client struct {
	HTTP  *http.Client // only its Transport is used, which must be set
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // waits; returns ctx's error if that ends first
}

// Error is a refusal by the server (RFC 6749 section 5.2, RFC 8628 section 3.5).
type Error struct {
	Code        string // invalid_grant, access_denied, ...; empty if the answer has none
	Description string // the server's description, without secrets
	Status      int
}

func (e *Error) Error() string {
	switch {
	case e.Code == "access_denied":
		return "the login was denied"
	case e.Code == "expired_token":
		return "the code expired before it was entered; log in again"
	case e.Code == "":
		return fmt.Sprintf("the login server answered with status %d", e.Status)
	case e.Description == "":
		return "the login server answered " + e.Code
	}
	return fmt.Sprintf("the login server answered %s: %s", e.Code, e.Description)
}

// Ended reports whether an error of Refresh is permanent: the user has to log in again.
func Ended(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == "invalid_grant" || e.Code == "unauthorized_client" || e.Code == "invalid_client")
}

// Refresh renews an access token. The refresh token may be valid only once, so the caller must
// replace both tokens with the returned ones.
func (c *Client) Refresh(ctx context.Context, p Provider, refresh string) (Tokens, error) {
	if err := p.checkEndpoint("token", p.TokenURL); err != nil {
		return Tokens{}, err
	}
	return c.grant(ctx, p, "refresh_token", []string{refresh}, oauth2.SetAuthURLParam("refresh_token", refresh))
}

// ClientTokens requests tokens for the client itself, without a user (RFC 6749 section 4.4).
func (c *Client) ClientTokens(ctx context.Context, p Provider) (Tokens, error) {
	if err := p.checkEndpoint("token", p.TokenURL); err != nil {
		return Tokens{}, err
	}
	var opts []oauth2.AuthCodeOption
	if len(p.Scopes) > 0 {
		opts = append(opts, oauth2.SetAuthURLParam("scope", strings.Join(p.Scopes, " ")))
	}
	return c.grant(ctx, p, "client_credentials", nil, opts...)
}

// grant requests tokens without an authorization code.
func (c *Client) grant(ctx context.Context, p Provider, kind string, secrets []string, opts ...oauth2.AuthCodeOption) (Tokens, error) {
	opts = append(append(opts, p.resource()...), oauth2.SetAuthURLParam("grant_type", kind))
	t, err := p.config("").Exchange(c.context(ctx), "", opts...)
	if err != nil {
		return Tokens{}, sanitizeError(err, append(secrets, p.ClientSecret)...)
	}
	return c.tokens(t), nil
}

// resource returns the request parameter that names the resource that tokens are for.
func (p Provider) resource() []oauth2.AuthCodeOption {
	if p.Resource == "" {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", p.Resource)}
}

// tokens converts the tokens. It computes the expiry with Client.Now.
func (c *Client) tokens(t *oauth2.Token) Tokens {
	out := Tokens{Access: t.AccessToken, Refresh: t.RefreshToken}
	if t.ExpiresIn > 0 {
		out.Expires = c.Now().Add(time.Duration(t.ExpiresIn) * time.Second)
	} else if !t.Expiry.IsZero() { // the answer was form-encoded; the oauth2 package computed Expiry with time.Now
		out.Expires = c.Now().Add(time.Until(t.Expiry))
	}
	return out
}

func (p Provider) config(redirect string) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if p.SecretInHeader {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: redirect, Scopes: p.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.AuthorizeURL, TokenURL: p.TokenURL, DeviceAuthURL: p.DeviceURL, AuthStyle: style},
	}
}

// checkEndpoint returns an error if secrets must not be sent to an endpoint.
func (p Provider) checkEndpoint(what, address string) error {
	if address == "" {
		return fmt.Errorf("the login server names no %s endpoint", what)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !localhost.Is(u.Hostname())) {
		return fmt.Errorf("the login server's %s endpoint must begin with https://", what)
	}
	return nil
}

// context returns a context that makes golang.org/x/oauth2 use httpClient.
func (c *Client) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, c.httpClient())
}

// httpClient returns a client that identifies itself as eca and follows no redirects.
func (c *Client) httpClient() *http.Client {
	return &http.Client{
		Transport:     identifyingTransport{c.HTTP.Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// requestTimeout limits one request.
const requestTimeout = 30 * time.Second

// maxAnswer limits one answer, in bytes.
const maxAnswer = 1 << 20

// identifyingTransport sets the User-Agent of requests to eca. It reads each answer completely,
// within the limits of time and size, because golang.org/x/oauth2 does not close all of them.
type identifyingTransport struct{ base http.RoundTripper }

func (h identifyingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", "eca")
	r.Header.Set("Accept", "application/json")
	resp, err := h.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// sanitizeError converts an error so that it can be shown: it is typed if the server refused the request,
// and contains no secrets. Servers may repeat secrets, and errors of net/http contain the URL.
func sanitizeError(err error, secrets ...string) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		e := &Error{Code: oneLine(refused.ErrorCode, 100), Description: redact.New(secrets...).String(oneLine(refused.ErrorDescription, 300))}
		if refused.Response != nil {
			e.Status = refused.Response.StatusCode
		}
		return e
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		if errors.Is(err, context.Canceled) {
			return context.Canceled
		}
		host := ""
		if u, bad := url.Parse(at.URL); bad == nil {
			host = u.Host
		}
		return &UnreachableError{Host: host, Cause: at.Err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	// Parse errors may quote the answer.
	return errors.New("the login server's answer cannot be read")
}

// UnreachableError means that a server did not answer.
type UnreachableError struct {
	Host  string
	Cause error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the login server %s cannot be reached: %v", e.Host, e.Cause)
}

func (e *UnreachableError) Unwrap() error { return e.Cause }

func oneLine(s string, limit int) string {
	return shorten.Bytes(strings.Join(strings.Fields(s), " "), limit)
}
