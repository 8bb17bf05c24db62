package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Resource is the metadata of a resource server, which accepts tokens of authorization servers (RFC
// 9728 section 2).
type Resource struct {
	ID      string   `json:"resource"`              // the exact name that authorization servers use
	Issuers []string `json:"authorization_servers"` // issuers of accepted tokens
	Scopes  []string `json:"scopes_supported"`
}

// ErrNoMetadata means that a server answered and has no metadata.
var ErrNoMetadata = errors.New("there is no metadata")

// Resource requests the metadata of a resource server: first at the URL that the server announced,
// if not empty, and then at the well-known URLs (RFC 9728 section 3). ErrNoMetadata means that the
// server answered at all URLs and has no metadata.
func (c *Client) Resource(ctx context.Context, server, announced string) (Resource, error) {
	urls, err := wellKnownResource(server)
	if err != nil {
		return Resource{}, err
	}
	if announced != "" {
		urls = slices.Insert(slices.DeleteFunc(urls, func(p string) bool { return p == announced }), 0, announced)
	}
	var errs []error
	for _, at := range urls {
		var r Resource
		if err = c.document(ctx, "resource metadata", at, &r); err == nil {
			if !covers(r.ID, server) {
				return Resource{}, fmt.Errorf("%s is the metadata of %q, not of this server", at, oneLine(r.ID, 200))
			}
			return r, nil
		}
		if ctx.Err() != nil {
			return Resource{}, ctx.Err()
		}
		if !errors.Is(err, ErrNoMetadata) {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	if len(errs) > 0 {
		return Resource{}, errors.Join(errs...)
	}
	return Resource{}, ErrNoMetadata
}

// wellKnownResource lists the well-known URLs of a server's metadata: the one for its path, and the
// one for the root.
func wellKnownResource(server string) ([]string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, errors.New("the server's address is not a URL")
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/oauth-protected-resource"}
	own := root
	own.Path += strings.TrimRight(u.Path, "/")
	return slices.Compact([]string{own.String(), root.String()}), nil
}

// covers reports whether a resource is a server, or contains the server.
func covers(resource, server string) bool {
	r, err := url.Parse(resource)
	s, bad := url.Parse(server)
	if err != nil || bad != nil || !strings.EqualFold(r.Scheme, s.Scheme) || !strings.EqualFold(hostPort(r), hostPort(s)) || r.Fragment != "" {
		return false
	}
	above, below := strings.TrimRight(r.Path, "/")+"/", strings.TrimRight(s.Path, "/")+"/"
	return strings.HasPrefix(below, above)
}

// hostPort returns a URL's host and port, with the default port if the URL has none.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "http" {
		return u.Host + ":80"
	}
	return u.Host + ":443"
}

// Canonical returns the resource name of a server that does not announce one (RFC 8707 section 2):
// its URL without the parts that do not identify it.
func Canonical(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	name := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: strings.TrimRight(u.Path, "/")}
	return name.String()
}

// document requests a metadata document.
func (c *Client) document(ctx context.Context, what, at string, into any) error {
	if err := (Provider{}).checkEndpoint(what, at); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := c.httpClient().Do(req)
	if err != nil {
		return sanitizeError(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("%w: status %d", ErrNoMetadata, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if err := decode(resp.Body, into); err != nil {
		return fmt.Errorf("%w: %w", ErrNoMetadata, err) // many servers answer every address with a page
	}
	return nil
}
