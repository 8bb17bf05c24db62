// Package oauth logs in to OAuth 2 servers and renews what they gave: authorisation code
// with PKCE, by a redirect to this machine or by pasting what the browser was sent to
// (browser.go), and the device flow for machines without a browser (device.go). Where
// only an issuer is known, its metadata says the rest (discover.go, RFC 8414). Servers that
// want tokens of others say of which (challenge.go, resource.go), and clients can register
// themselves (register.go).
//
// Guarantees: secrets go to the endpoints of one Provider only, over TLS unless those
// are on this machine, and never along a redirect; errors contain no token, code or
// client secret; every request says that it comes from eca. It stores nothing, and
// knows no model providers.
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

// Provider is an authorisation server, and as whom it is asked. The client is the
// user's own: eca has none anywhere.
type Provider struct {
	Issuer       string // whose metadata says what is not given below
	AuthorizeURL string
	TokenURL     string
	DeviceURL    string
	ClientID     string
	ClientSecret string // empty for public clients
	Scopes       []string
	RedirectURL  string            // as registered; default: http://127.0.0.1/callback at any port
	Params       map[string]string // further parameters of the request for authorisation

	SecretInHeader bool // the server takes the client's secret only so; Discover finds out

	Resource    string // whom the tokens are for (RFC 8707); empty: not said
	RevokeURL   string // takes tokens back (RFC 7009); empty: nothing does
	NamedAs     string // the issuer in answers to the browser (RFC 9207); empty: any
	NamesItself bool   // answers without it are refused
}

// Tokens are what a login gives. They are secret.
type Tokens struct {
	Access  string
	Refresh string    // empty: cannot be renewed
	Expires time.Time // zero: not said
	Scopes  []string  // what they are good for; empty: what was asked for
}

// Client talks to authorisation servers.
type Client struct {
	HTTP  *http.Client // whose Transport is used; it must have one
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // waits; returns ctx's error if that ends first
}

// Error is a refusal by the server (RFC 6749 section 5.2, RFC 8628 section 3.5).
type Error struct {
	Code        string // invalid_grant, access_denied, ...; empty if the answer has none
	Description string // the server's own words, without secrets
	Status      int
}

func (e *Error) Error() string {
	switch {
	case e.Code == "access_denied":
		return "the login was denied"
	case e.Code == "expired_token":
		return "the code has expired before it was entered; log in again"
	case e.Code == "":
		return fmt.Sprintf("the login server answered with status %d", e.Status)
	case e.Description == "":
		return "the login server answered " + e.Code
	}
	return fmt.Sprintf("the login server answered %s: %s", e.Code, e.Description)
}

// Ended says whether an error of Refresh means that no further attempt can succeed:
// the user has to log in again.
func Ended(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == "invalid_grant" || e.Code == "unauthorized_client" || e.Code == "invalid_client")
}

// Refresh renews an access token. The refresh token may be good only once: what
// Refresh returns replaces both.
func (c *Client) Refresh(ctx context.Context, p Provider, refresh string) (Tokens, error) {
	if err := p.check("token", p.TokenURL); err != nil {
		return Tokens{}, err
	}
	return c.grant(ctx, p, "refresh_token", []string{refresh}, oauth2.SetAuthURLParam("refresh_token", refresh))
}

// ClientTokens asks for tokens of the client itself: no user takes part (RFC 6749 section
// 4.4).
func (c *Client) ClientTokens(ctx context.Context, p Provider) (Tokens, error) {
	if err := p.check("token", p.TokenURL); err != nil {
		return Tokens{}, err
	}
	var opts []oauth2.AuthCodeOption
	if len(p.Scopes) > 0 {
		opts = append(opts, oauth2.SetAuthURLParam("scope", strings.Join(p.Scopes, " ")))
	}
	return c.grant(ctx, p, "client_credentials", nil, opts...)
}

// grant asks for tokens without a code.
func (c *Client) grant(ctx context.Context, p Provider, kind string, secrets []string, opts ...oauth2.AuthCodeOption) (Tokens, error) {
	opts = append(append(opts, p.resource()...), oauth2.SetAuthURLParam("grant_type", kind))
	t, err := p.config("").Exchange(c.context(ctx), "", opts...)
	if err != nil {
		return Tokens{}, clean(err, append(secrets, p.ClientSecret)...)
	}
	return c.tokens(t), nil
}

// resource says in a request whom tokens are for.
func (p Provider) resource() []oauth2.AuthCodeOption {
	if p.Resource == "" {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", p.Resource)}
}

// tokens takes the lifetime from our own clock.
func (c *Client) tokens(t *oauth2.Token) Tokens {
	out := Tokens{Access: t.AccessToken, Refresh: t.RefreshToken}
	if scope, ok := t.Extra("scope").(string); ok {
		out.Scopes = strings.Fields(scope)
	}
	if t.ExpiresIn > 0 {
		out.Expires = c.Now().Add(time.Duration(t.ExpiresIn) * time.Second)
	} else if !t.Expiry.IsZero() { // of an answer that was a form
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

// check says whether an endpoint may be sent secrets.
func (p Provider) check(what, address string) error {
	if address == "" {
		return fmt.Errorf("the login server's %s endpoint is not known", what)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !localhost.Is(u.Hostname())) {
		return fmt.Errorf("the login server's %s endpoint must begin with https://", what)
	}
	return nil
}

// context makes golang.org/x/oauth2 use our client: it says who we are, and follows no
// redirect.
func (c *Client) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, c.own())
}

func (c *Client) own() *http.Client {
	return &http.Client{
		Transport:     honest{c.HTTP.Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// requestTime bounds one request.
const requestTime = 30 * time.Second

// maxAnswer bounds one answer.
const maxAnswer = 1 << 20

// honest says of each request that it is eca's. It reads answers to their end, within
// the time and size of one: golang.org/x/oauth2 does not close all of them.
type honest struct{ base http.RoundTripper }

func (h honest) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
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

// clean makes an error fit to be shown: typed if the server refused, and without
// secrets, which servers repeat and net/http puts in front.
func clean(err error, secrets ...string) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		e := &Error{Code: oneLine(refused.ErrorCode, 100), Description: redact.New(secrets...).String(oneLine(refused.ErrorDescription, 300))}
		if refused.Response != nil {
			e.Status = refused.Response.StatusCode
		}
		return e
	}
	var at *url.Error
	if errors.As(err, &at) {
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
	// Errors of parsing may quote the answer.
	return errors.New("the login server's answer cannot be read")
}

// UnreachableError says that a server did not answer at all.
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
