package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
)

// Authority is the metadata of an authorization server (RFC 8414 section 2).
type Authority struct {
	Issuer        string   `json:"issuer"`
	Authorize     string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	Register      string   `json:"registration_endpoint"`
	Revoke        string   `json:"revocation_endpoint"`
	SecretMethods []string `json:"token_endpoint_auth_methods_supported"`
	PKCE          []string `json:"code_challenge_methods_supported"`
	Scopes        []string `json:"scopes_supported"`
	Grants        []string `json:"grant_types_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	Documents     bool     `json:"client_id_metadata_document_supported"`          // a client id may be the URL of the client's metadata
}

// Discover returns the provider with all endpoints. Configured endpoints stay; the others come from
// the metadata of the issuer. If the token endpoint is configured, no request is made. It is an
// error if there is neither a token endpoint nor an issuer.
func (c *Client) Discover(ctx context.Context, p Provider) (Provider, error) {
	if p.TokenURL != "" {
		return p, nil
	}
	if p.Issuer == "" {
		return p, errors.New("neither an issuer (auth.url) nor a token endpoint (auth.tokenUrl) is configured")
	}
	a, err := c.Authority(ctx, p.Issuer)
	if err != nil {
		return p, fmt.Errorf("the login server has no metadata that eca can use; set auth.tokenUrl, and auth.authorizeUrl or auth.deviceUrl: %w", err)
	}
	return p.withMetadata(a)
}

// Authority requests the metadata of an authorization server. ErrNoMetadata means that the server
// answered at all well-known URLs and has no metadata.
func (c *Client) Authority(ctx context.Context, issuer string) (Authority, error) {
	if err := (Provider{}).checkEndpoint("metadata", issuer); err != nil {
		return Authority{}, err
	}
	var errs []error
	none := true
	for _, at := range wellKnown(issuer) {
		var a Authority
		err := c.document(ctx, "metadata", at, &a)
		if err != nil {
			if ctx.Err() != nil {
				return Authority{}, ctx.Err()
			}
			none = none && errors.Is(err, ErrNoMetadata)
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		// RFC 8414 section 3.3: metadata of another issuer could redirect the login to any server.
		if strings.TrimRight(a.Issuer, "/") != strings.TrimRight(issuer, "/") {
			return Authority{}, fmt.Errorf("%s is the metadata of %q, not of the issuer %s", at, oneLine(a.Issuer, 200), issuer)
		}
		return a, nil
	}
	if none {
		return Authority{}, fmt.Errorf("%w at %s", ErrNoMetadata, issuer)
	}
	return Authority{}, errors.Join(errs...)
}

func (p Provider) withMetadata(a Authority) (Provider, error) {
	for dst, src := range map[*string]string{&p.AuthorizeURL: a.Authorize, &p.TokenURL: a.Token, &p.DeviceURL: a.Device} {
		if *dst == "" {
			*dst = src
		}
	}
	p.SecretInHeader = p.ClientSecret != "" && len(a.SecretMethods) > 0 && !slices.Contains(a.SecretMethods, "client_secret_post")
	p.ResponseIssuer, p.SendsIssuer = a.Issuer, a.SendsIssuer
	if len(a.PKCE) > 0 && !slices.Contains(a.PKCE, "S256") {
		p.AuthorizeURL = "" // never without PKCE
	}
	return p, p.checkEndpoint("token", p.TokenURL)
}

// wellKnown lists the URLs where metadata may be: the well-known paths of OAuth and OpenID before
// the issuer's path, and that of OpenID after it.
func wellKnown(issuer string) []string {
	u, err := url.Parse(strings.TrimRight(issuer, "/"))
	if err != nil {
		return nil
	}
	path := u.Path
	var out []string
	for _, p := range []string{"/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path, path + "/.well-known/openid-configuration"} {
		v := *u
		v.Path, v.RawQuery, v.Fragment = p, "", ""
		if s := v.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// decode reads a JSON object. Errors do not quote it.
func decode(body io.Reader, into any) error {
	if json.NewDecoder(body).Decode(into) != nil {
		return errors.New("it is not a JSON object with the expected fields")
	}
	return nil
}
