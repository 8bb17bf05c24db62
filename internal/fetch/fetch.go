// Package fetch reads web pages for an untrusted party: a model, or a text that instructs it. A
// Poster sends notifications to addresses from such a party.
//
// Guarantees: only http and https, only GET; no cookies, credentials, client certificates or
// Referer; the Rules for hosts apply to each redirect as well; no connection to a non-public
// address unless the Rules except it. The address that is dialed is checked, so that a name which
// resolves to several or changing addresses does not bypass the check. Redirects, time and bytes
// (after decompression) are limited.
//
// Not guaranteed: that a public server is harmless; and, if a proxy is used, that addresses are
// checked, because the proxy resolves the name itself. A name that resolves locally is checked even
// then.
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
	// MaxBytes is the most bytes of a page that are read.
	MaxBytes = 5 << 20

	maxURL       = 8 << 10
	maxRedirects = 5
	maxTime      = 60 * time.Second // for the whole fetch
	connectTime  = 10 * time.Second
	lookupTime   = 5 * time.Second
)

// Rules are the rules for hosts. A host includes its subdomains: example.com also matches
// docs.example.com.
type Rules struct {
	Allow   []string // hosts; empty allows all
	Deny    []string // hosts
	Private []string // hosts and networks (10.0.0.0/8) that may have private addresses

	// Section is where the user configures the rules, for messages: toolCall.webFetch if empty.
	Section string
}

// Getter fetches pages. It is safe for concurrent use.
type Getter struct {
	network   *netclient.Network
	rules     Rules
	private   []netip.Prefix
	userAgent string
	timeout   time.Duration // of a whole fetch
}

// New returns a Getter that uses a network. agent is the User-Agent of its requests.
func New(network *netclient.Network, rules Rules, agent string) *Getter {
	g := &Getter{network: network, userAgent: agent, timeout: maxTime}
	g.rules.Section = cmp.Or(rules.Section, "toolCall.webFetch")
	g.rules.Allow, g.rules.Deny = normalizeHosts(rules.Allow), normalizeHosts(rules.Deny)
	for _, p := range rules.Private {
		if prefix, ok := parseNetwork(p); ok {
			g.private = append(g.private, prefix)
		} else {
			g.rules.Private = append(g.rules.Private, normalizeHosts([]string{p})...)
		}
	}
	return g
}

// Page is the answer of a server.
type Page struct {
	URL    string // after redirects
	Status int
	Type   string // Content-Type
	Body   []byte
	Cut    bool // Body is only the beginning of the page
}

// Check returns why a URL would not be requested, without any network access.
func (g *Getter) Check(address string) error {
	_, err := g.parse(address)
	return err
}

// Address returns the form of an address that rules are matched against: its host in DNS form,
// without a default port, with a clean path. It returns an error if the address would not be
// requested. It makes no request.
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

// Get fetches a page, up to limit bytes of it (at most MaxBytes). It returns answers with any
// status.
func (g *Getter) Get(ctx context.Context, address string, limit int) (*Page, error) {
	return g.get(ctx, address, limit, false)
}

// GetFromHost is like Get, for calls where only the address's host was approved: a redirect to
// another host is an error that names it.
func (g *Getter) GetFromHost(ctx context.Context, address string, limit int) (*Page, error) {
	return g.get(ctx, address, limit, true)
}

func (g *Getter) get(ctx context.Context, address string, limit int, oneHost bool) (*Page, error) {
	u, err := g.parse(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, fmt.Errorf("the page did not arrive within %s", g.timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL: %w", address, err)
	}
	req.Header.Set("User-Agent", g.userAgent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/*;q=0.8, */*;q=0.5")
	client := &http.Client{
		Transport: &guardedTransport{g, g.network.Client(netclient.Options{Connect: connectTime, Guarded: true}).Transport},
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
		return nil, fmt.Errorf("the connection broke off: %w", explain(ctx, err))
	}
	page := &Page{URL: resp.Request.URL.Redacted(), Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: body}
	if len(body) > limit {
		page.Body, page.Cut = body[:limit], true
	}
	return page, nil
}

// explain returns why ctx has ended, if it has; otherwise err without the method and URL that net/http
// adds, because the model knows them.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err
	}
	return err
}

// guardedTransport checks each request, including redirects, and adds the check of addresses to it.
type guardedTransport struct {
	getter *Getter
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := t.getter.parse(req.URL.String())
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	if proxy, err := t.getter.network.Proxies().For(u); err == nil && proxy != nil {
		if err := t.getter.checkResolved(req.Context(), host); err != nil {
			return nil, err
		}
	}
	ctx := netclient.WithGuard(req.Context(), func(at netip.AddrPort) error { return t.getter.mayDial(host, at.Addr()) })
	return t.next.RoundTrip(req.WithContext(ctx))
}

// mayDial returns an error if an address of a host must not be dialed.
func (g *Getter) mayDial(host string, a netip.Addr) error {
	if Public(a) || g.isExcepted(host, a) {
		return nil
	}
	return fmt.Errorf("%s is at %s, which is not on the public internet; the user can except it in %s.privateHosts", host, a, g.rules.Section)
}

// isExcepted reports whether the user excepted a host, or a network that contains its address.
func (g *Getter) isExcepted(host string, a netip.Addr) bool {
	return matchesHost(host, g.rules.Private) || slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// checkResolved checks the addresses to which a host resolves locally. A name that does not resolve is
// allowed: the proxy may know it.
func (g *Getter) checkResolved(ctx context.Context, host string) error {
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

// parse parses a URL and checks its host.
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
	name, err := normalizeHost(u.Hostname())
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

// normalizeHost returns a host in DNS form, for comparison. Forms of IPv4 addresses that only some
// programs accept (0x7f.1, 2130706433) are not valid hosts.
func normalizeHost(host string) (string, error) {
	host = strings.TrimSuffix(host, ".")
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", errors.New("addresses with a zone belong to this machine")
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

// normalizeHosts normalizes host names and drops invalid ones.
func normalizeHosts(list []string) []string {
	var out []string
	for _, h := range list {
		if name, err := normalizeHost(strings.TrimPrefix(h, "*.")); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// matchesHost reports whether a host is one of a list or a subdomain of one.
func matchesHost(host string, list []string) bool {
	return slices.ContainsFunc(list, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) })
}

// parseNetwork parses a network or an address.
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

// Valid returns an error if an entry of Rules is invalid. For an address of a page it names the host.
func Valid(entry string) error {
	if _, ok := parseNetwork(entry); ok {
		return nil
	}
	_, err := normalizeHost(strings.TrimPrefix(entry, "*."))
	if err == nil {
		return nil
	}
	for _, address := range []string{entry, "//" + entry} {
		if u, notURL := url.Parse(address); notURL == nil && u.Hostname() != "" && u.Hostname() != entry && Valid(u.Hostname()) == nil {
			return fmt.Errorf("write %q, without scheme, port and path", u.Hostname())
		}
	}
	return err
}
