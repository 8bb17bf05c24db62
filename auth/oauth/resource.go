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

// Resource is what a server says of itself that wants tokens of others (RFC 9728 section 2).
type Resource struct {
	ID      string   `json:"resource"`              // its name for authorisation servers, to the letter
	Issuers []string `json:"authorization_servers"` // whose tokens it takes
	Scopes  []string `json:"scopes_supported"`
}

// ErrNoMetadata says that a server answered, and has no metadata.
var ErrNoMetadata = errors.New("there is no metadata")

// Resource asks a resource server for its metadata: where the server said it is, if it did,
// and then at its well-known places (RFC 9728 section 3). ErrNoMetadata means that it
// answered everywhere, and has none.
func (c *Client) Resource(ctx context.Context, server, said string) (Resource, error) {
	places, err := resourcePlaces(server)
	if err != nil {
		return Resource{}, err
	}
	if said != "" {
		places = slices.Insert(slices.DeleteFunc(places, func(p string) bool { return p == said }), 0, said)
	}
	var errs []error
	for _, at := range places {
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

// resourcePlaces lists where a server's metadata may be: before its path, and at the
// root.
func resourcePlaces(server string) ([]string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, errors.New("the server's address is not a URL")
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/oauth-protected-resource"}
	own := root
	own.Path += strings.TrimRight(u.Path, "/")
	return slices.Compact([]string{own.String(), root.String()}), nil
}

// covers says whether a resource is a server, or what the server is a part of.
func covers(resource, server string) bool {
	r, err := url.Parse(resource)
	s, bad := url.Parse(server)
	if err != nil || bad != nil || !strings.EqualFold(r.Scheme, s.Scheme) || !strings.EqualFold(hostPort(r), hostPort(s)) || r.Fragment != "" {
		return false
	}
	above, below := strings.TrimRight(r.Path, "/")+"/", strings.TrimRight(s.Path, "/")+"/"
	return strings.HasPrefix(below, above)
}

// hostPort is a URL's host with its port, also where that is the usual one.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "http" {
		return u.Host + ":80"
	}
	return u.Host + ":443"
}

// Canonical is how a server is named where it does not say so itself (RFC 8707 section 2):
// its address without the parts that do not identify it.
func Canonical(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	name := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: strings.TrimRight(u.Path, "/")}
	return name.String()
}

// document reads a JSON document that a server has of itself.
func (c *Client) document(ctx context.Context, what, at string, into any) error {
	if err := (Provider{}).check(what, at); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := c.own().Do(req)
	if err != nil {
		return clean(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("%w: status %d", ErrNoMetadata, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if err := decode(resp.Body, into); err != nil {
		return fmt.Errorf("%w: %w", ErrNoMetadata, err) // pages for all addresses are common
	}
	return nil
}
