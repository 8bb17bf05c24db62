// Package fetch reads pages of the web for somebody who is not trusted: a model, or a
// text that told it to. A Poster sends notifications where such a one wants them.
//
// Guarantees: pages are http and https only, GET only; no cookies, no credentials, no client
// certificate, no Referer; hosts as the Rules say, at each redirect again; no connection
// to an address that is not of the public internet unless the Rules except it, decided on
// the address that is really dialed, so that neither a name that resolves to two
// addresses nor one that changes gets around it; a limit for redirects, time and bytes
// (after decompression).
//
// It does not guarantee: that a public server is harmless; addresses, where a proxy is
// used: the proxy looks the name up. A name that resolves here is checked all the same.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

const (
	// MaxBytes is how much of a page is read at most.
	MaxBytes = 5 << 20

	maxURL       = 8 << 10
	maxRedirects = 5
	maxTime      = 60 * time.Second // for all of it
	connectTime  = 10 * time.Second
	lookupTime   = 5 * time.Second
)

// Rules say where pages may come from. A host stands for itself and those below it:
// example.com is also docs.example.com.
type Rules struct {
	Allow   []string // hosts; empty: all
	Deny    []string // hosts
	Private []string // hosts and networks (10.0.0.0/8) that may be private

	// Section is where the user writes them, for messages: toolCall.webFetch if empty.
	Section string
}

// Getter gets pages. It is safe for concurrent use.
type Getter struct {
	network *netclient.Network
	rules   Rules
	private []netip.Prefix
	agent   string
	time    time.Duration // for all of a page
}

// New returns a Getter that speaks through a network. agent is how it calls itself.
func New(network *netclient.Network, rules Rules, agent string) *Getter {
	g := &Getter{network: network, agent: agent, time: maxTime}
	g.rules.Section = cmp.Or(rules.Section, "toolCall.webFetch")
	g.rules.Allow, g.rules.Deny = hosts(rules.Allow), hosts(rules.Deny)
	for _, p := range rules.Private {
		if prefix, ok := parseNetwork(p); ok {
			g.private = append(g.private, prefix)
		} else {
			g.rules.Private = append(g.rules.Private, hosts([]string{p})...)
		}
	}
	return g
}

// Page is what a server answered.
type Page struct {
	URL    string // after redirects
	Status int
	Type   string // Content-Type
	Body   []byte
	Cut    bool // there was more
}

// Check says why a URL would not be requested, without any network access.
func (g *Getter) Check(address string) error {
	_, err := g.parse(address)
	return err
}

// Address returns the form of an address that rules are held against: its host as name
// servers see it, without the port that its scheme has anyway, its path without detours.
// It is an error if it would not be asked for; no request is made.
func (g *Getter) Address(address string) (*url.URL, error) {
	u, err := g.parse(address)
	if err != nil {
		return nil, err
	}
	if slices.Contains(strings.Split(u.Path, "/"), "..") {
		u.Path, u.RawPath = path.Clean(u.Path), ""
	}
	return u, nil
}

// Get reads a page, up to limit bytes of it (at most MaxBytes). Any status is an answer.
func (g *Getter) Get(ctx context.Context, address string, limit int) (*Page, error) {
	return g.get(ctx, address, limit, false)
}

// GetFromHost is Get for somebody who was allowed the address's host and no other: a
// redirect to another one is an error that names it.
func (g *Getter) GetFromHost(ctx context.Context, address string, limit int) (*Page, error) {
	return g.get(ctx, address, limit, true)
}

func (g *Getter) get(ctx context.Context, address string, limit int, oneHost bool) (*Page, error) {
	u, err := g.parse(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.time, fmt.Errorf("the page did not come within %s", g.time))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL: %w", address, err)
	}
	req.Header.Set("User-Agent", g.agent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/*;q=0.8, */*;q=0.5")
	client := &http.Client{
		Transport: &guard{g, g.network.Client(netclient.Options{Connect: connectTime, Guarded: true}).Transport},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			next.Header.Del("Referer")
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
				return fmt.Errorf("%s leads from https to %s", via[len(via)-1].URL.Host, next.URL.Scheme)
			}
			if to, err := g.parse(next.URL.String()); oneHost && err == nil && to.Host != u.Host {
				return fmt.Errorf("it leads to %s, which is another host; fetch %s if that is what you want", to.Host, to.Redacted())
			}
			return nil
		},
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, explain(ctx, err)
	}
	defer resp.Body.Close()
	limit = min(limit, MaxBytes)
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil && len(body) <= limit {
		return nil, fmt.Errorf("the page broke off: %w", explain(ctx, err))
	}
	page := &Page{URL: resp.Request.URL.Redacted(), Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: body}
	if len(body) > limit {
		page.Body, page.Cut = body[:limit], true
	}
	return page, nil
}

// explain drops what net/http puts around a cause: the model knows what it asked for.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// guard checks each request, redirected ones too, and gives it what is asked before a
// connection is made.
type guard struct {
	g    *Getter
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := t.g.parse(req.URL.String())
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	if proxy, err := t.g.network.Proxies().For(u); err == nil && proxy != nil {
		if err := t.g.lookUp(req.Context(), host); err != nil {
			return nil, err
		}
	}
	ctx := netclient.WithGuard(req.Context(), func(at netip.AddrPort) error { return t.g.mayDial(host, at.Addr()) })
	return t.next.RoundTrip(req.WithContext(ctx))
}

// mayDial decides about an address that a host has.
func (g *Getter) mayDial(host string, a netip.Addr) error {
	if Public(a) || g.excepted(host, a) {
		return nil
	}
	return fmt.Errorf("%s is at %s, which is not of the public internet; the user can except it in %s.privateHosts", host, a, g.rules.Section)
}

// excepted reports whether the user named a host, or a network that an address of it is in.
func (g *Getter) excepted(host string, a netip.Addr) bool {
	return matchesHost(host, g.rules.Private) || slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// lookUp checks a host's addresses as they are known here. That a name is not known here
// says nothing: the proxy may know it.
func (g *Getter) lookUp(ctx context.Context, host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return g.mayDial(host, a)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		if err := g.mayDial(host, a); err != nil {
			return err
		}
	}
	return nil
}

// parse reads a URL and decides about its host.
func (g *Getter) parse(address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, fmt.Errorf("the URL is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(strings.TrimSpace(address))
	switch {
	case err != nil:
		return nil, fmt.Errorf("this is not a URL: %w", explain(context.Background(), err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("only http and https are fetched, not %.100q", address)
	case u.User != nil:
		return nil, errors.New("URLs with a user or a password in them are not fetched")
	}
	name, err := normal(u.Hostname())
	if err != nil {
		return nil, fmt.Errorf("the URL has no valid host: %w", err)
	}
	port := u.Port()
	u.Host = name
	if strings.Contains(name, ":") {
		u.Host = "[" + name + "]"
	}
	if port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		u.Host += ":" + port
	}
	u.Fragment = ""
	switch {
	case matchesHost(name, g.rules.Deny):
		return nil, fmt.Errorf("%s is denied by %s.denyHosts", name, g.rules.Section)
	case len(g.rules.Allow) > 0 && !matchesHost(name, g.rules.Allow):
		return nil, fmt.Errorf("%s is not among %s.allowHosts", name, g.rules.Section)
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return u, g.mayDial(name, a)
	}
	if localhost.Is(name) {
		return u, g.mayDial(name, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return u, nil
}

// normal is how hosts are compared: as the name server sees them. Ways to write an IPv4
// address that only some programs understand (0x7f.1, 2130706433) are not hosts.
func normal(host string) (string, error) {
	host = strings.TrimSuffix(host, ".")
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", errors.New("addresses with a zone are of this machine")
		}
		return a.Unmap().String(), nil
	}
	name, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return "", err
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case name == "":
		return "", errors.New("it is empty")
	case last != "" && last[0] >= '0' && last[0] <= '9':
		return "", fmt.Errorf("%q is neither a name nor an address", host)
	case strings.Contains(name, ":"):
		return "", fmt.Errorf("%q is not a host name", host)
	}
	return strings.ToLower(name), nil
}

// hosts are names as normal writes them; other values are left out.
func hosts(list []string) []string {
	var out []string
	for _, h := range list {
		if name, err := normal(strings.TrimPrefix(h, "*.")); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// matchesHost reports whether a host is one of a list or below it.
func matchesHost(host string, list []string) bool {
	return slices.ContainsFunc(list, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) })
}

// parseNetwork reads a network or an address.
func parseNetwork(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), true
}

// Valid reports whether an entry of Rules is one.
func Valid(entry string) error {
	if _, ok := parseNetwork(entry); ok {
		return nil
	}
	_, err := normal(strings.TrimPrefix(entry, "*."))
	return err
}
