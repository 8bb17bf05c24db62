package login

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/seed-dec29ce4/eca/auth/oauth"
	"github.com/seed-dec29ce4/eca/internal/fetch"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// lookupTime limits the DNS look-up of the server.
const lookupTime = 5 * time.Second

// client returns the OAuth client for the addresses that the server, or its metadata, refers to.
func (a *Account) client(ctx context.Context) *oauth.Client {
	return &oauth.Client{
		HTTP: &http.Client{Transport: &guard{next: a.logins.deps.HTTP().Transport, private: a.onPrivateNetwork(ctx)}},
		Now:  a.logins.deps.Now,
	}
}

// onPrivateNetwork reports whether the MCP server is on this machine or in a private network. If so,
// its login server may be there too.
func (a *Account) onPrivateNetwork(ctx context.Context) bool {
	u, err := url.Parse(a.server.URL)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if at, err := netip.ParseAddr(host); err == nil {
		return !fetch.Public(at)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	list, err := a.logins.deps.Lookup(ctx, host)
	if err != nil {
		return false
	}
	for _, at := range list {
		if fetch.Public(at) {
			return false
		}
	}
	return len(list) > 0
}

// guard allows connections to the public internet only, unless the server itself is on a private
// network.
type guard struct {
	next    http.RoundTripper
	private bool
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Hostname()
	allow := func(at netip.AddrPort) error {
		if g.private || fetch.Public(at.Addr()) {
			return nil
		}
		return fmt.Errorf("the public MCP server refers to %s at the private address %s", host, at.Addr())
	}
	return g.next.RoundTrip(req.WithContext(netclient.WithGuard(req.Context(), allow)))
}
