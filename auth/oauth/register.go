package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Registration is a client that is registered at an authorization server.
type Registration struct {
	ID     string
	Secret string // empty: the client has no secret
	Method string // the client's authentication method at the token endpoint; empty: unknown
}

// Register registers a native client with a name at an authorization server (RFC 7591).
func (c *Client) Register(ctx context.Context, a Authority, name, redirect string, scopes []string) (Registration, error) {
	if err := (Provider{}).checkEndpoint("registration", a.Register); err != nil {
		return Registration{}, err
	}
	metadata, err := json.Marshal(struct {
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Grants    []string `json:"grant_types"`
		Responses []string `json:"response_types"`
		Method    string   `json:"token_endpoint_auth_method"`
		Kind      string   `json:"application_type"`
		Scope     string   `json:"scope,omitempty"`
	}{name, []string{redirect}, []string{"authorization_code", "refresh_token"}, []string{"code"}, a.Method(""), "native", strings.Join(scopes, " ")})
	if err != nil {
		return Registration{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Register, bytes.NewReader(metadata))
	if err != nil {
		return Registration{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.httpClient().Do(req)
	if err != nil {
		return Registration{}, sanitizeError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		refused := struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}{}
		_ = decode(resp.Body, &refused) // an unreadable body leaves only the status
		return Registration{}, fmt.Errorf("it does not register eca as a client: %w",
			&Error{Code: oneLine(refused.Error, 100), Description: oneLine(refused.Description, 300), Status: resp.StatusCode})
	}
	var got struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Ends   int64  `json:"client_secret_expires_at"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if err := decode(resp.Body, &got); err != nil {
		return Registration{}, err
	}
	switch {
	case got.ID == "":
		return Registration{}, errors.New("it registers clients without an id")
	case got.Ends > 0 && !time.Unix(got.Ends, 0).After(c.Now()):
		return Registration{}, errors.New("it registers clients whose secret has expired")
	}
	return Registration{got.ID, got.Secret, got.Method}, nil
}

// Authentication methods of clients at the token endpoint.
const (
	methodNone   = "none"
	methodHeader = "client_secret_basic"
	methodForm   = "client_secret_post"
)

// Method returns the best authentication method that the authority supports. secret is the client's
// secret; without one, Method returns the method for a new registration.
func (a Authority) Method(secret string) string {
	methods := []string{methodHeader, methodForm, methodNone}
	if secret == "" {
		methods = []string{methodNone, methodHeader, methodForm}
	}
	offered := a.SecretMethods
	if len(offered) == 0 {
		offered = []string{methodHeader} // RFC 8414 section 2
		if secret == "" {
			offered = []string{methodNone}
		}
	}
	for _, method := range methods {
		if slices.Contains(offered, method) {
			return method
		}
	}
	return methods[0]
}

// As returns the provider for a client of an authority. It does not check the endpoints.
func (a Authority) As(r Registration) Provider {
	p := Provider{
		Issuer: a.Issuer, AuthorizeURL: a.Authorize, TokenURL: a.Token, DeviceURL: a.Device, RevokeURL: a.Revoke,
		ResponseIssuer: a.Issuer, SendsIssuer: a.SendsIssuer, ClientID: r.ID,
	}
	method := r.Method
	if method == "" {
		method = a.Method(r.Secret)
	}
	if method != methodNone {
		p.ClientSecret, p.SecretInHeader = r.Secret, r.Secret != "" && method != methodForm
	}
	return p
}

// Revoke revokes a token (RFC 7009). Revoking a refresh token also revokes the access tokens that
// it issued.
func (c *Client) Revoke(ctx context.Context, p Provider, token, hint string) error {
	if err := p.checkEndpoint("revocation", p.RevokeURL); err != nil {
		return err
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if !p.SecretInHeader {
		form.Set("client_id", p.ClientID)
		if p.ClientSecret != "" {
			form.Set("client_secret", p.ClientSecret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.SecretInHeader {
		req.SetBasicAuth(url.QueryEscape(p.ClientID), url.QueryEscape(p.ClientSecret))
	}
	resp, err := c.httpClient().Do(req)
	if err != nil {
		return sanitizeError(err, token, p.ClientSecret)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &Error{Status: resp.StatusCode}
	}
	return nil
}
