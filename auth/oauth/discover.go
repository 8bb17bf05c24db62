package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// metadata is what a server says of itself (RFC 8414 section 2).
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorize     string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	SecretMethods []string `json:"token_endpoint_auth_methods_supported"`
	PKCE          []string `json:"code_challenge_methods_supported"`
}

// Discover returns the provider with its endpoints: those that are given stay, the
// others come from its issuer's metadata. Without an issuer, or if the token endpoint is
// given, nobody is asked.
func (c *Client) Discover(ctx context.Context, p Provider) (Provider, error) {
	if p.TokenURL != "" {
		return p, nil
	}
	if p.Issuer == "" {
		return p, errors.New("neither an issuer (auth.url) nor a token endpoint (auth.tokenUrl) is configured")
	}
	if err := p.check("metadata", p.Issuer); err != nil {
		return p, err
	}
	var errs []error
	for _, at := range wellKnown(p.Issuer) {
		m, err := c.metadata(ctx, at)
		if err != nil {
			if ctx.Err() != nil {
				return p, ctx.Err()
			}
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		// RFC 8414 section 3.3: somebody else's metadata could send us anywhere.
		if strings.TrimRight(m.Issuer, "/") != strings.TrimRight(p.Issuer, "/") {
			return p, fmt.Errorf("%s is the metadata of %q, not of the configured issuer", at, oneLine(m.Issuer, 200))
		}
		return p.with(m)
	}
	return p, fmt.Errorf("the login server says nothing of itself; set auth.tokenUrl, and auth.authorizeUrl or auth.deviceUrl: %w", errors.Join(errs...))
}

func (p Provider) with(m metadata) (Provider, error) {
	for dst, src := range map[*string]string{&p.AuthorizeURL: m.Authorize, &p.TokenURL: m.Token, &p.DeviceURL: m.Device} {
		if *dst == "" {
			*dst = src
		}
	}
	p.SecretInHeader = p.ClientSecret != "" && len(m.SecretMethods) > 0 && !slices.Contains(m.SecretMethods, "client_secret_post")
	if len(m.PKCE) > 0 && !slices.Contains(m.PKCE, "S256") {
		p.AuthorizeURL = "" // never without PKCE
	}
	return p, p.check("token", p.TokenURL)
}

// wellKnown lists where metadata may be: OAuth's place in front of the issuer's path,
// OpenID's behind it.
func wellKnown(issuer string) []string {
	u, err := url.Parse(strings.TrimRight(issuer, "/"))
	if err != nil {
		return nil
	}
	path := u.Path
	var out []string
	for _, p := range []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration", "/.well-known/openid-configuration" + path} {
		v := *u
		v.Path, v.RawQuery, v.Fragment = p, "", ""
		if s := v.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (c *Client) metadata(ctx context.Context, at string) (metadata, error) {
	var m metadata
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return m, err
	}
	resp, err := c.own().Do(req)
	if err != nil {
		return m, clean(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return m, fmt.Errorf("status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		return m, errors.New("it is not a JSON object with the fields of RFC 8414")
	}
	return m, nil
}
