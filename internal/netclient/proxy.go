package netclient

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpproxy"

	"github.com/seed-dec29ce4/eca/internal/localhost"
)

// Proxies determines the proxy for each server. It is immutable.
//
// The variables are http_proxy and https_proxy for requests with these schemes, and all_proxy for
// both; no_proxy lists exceptions. Lower case takes precedence over upper case. A proxy is a URL
// with scheme http, https, socks5 or socks5h (both resolve names at the proxy), or a host and port,
// optionally with user and password.
type Proxies struct {
	plain, secure proxy
	except        func(*url.URL) (*url.URL, error) // see parseExceptions
	exceptions    string                           // the value of no_proxy
}

// proxy is the value of one variable.
type proxy struct {
	variable string // empty if no variable is set
	value    string
	url      *url.URL // nil if the value cannot be used
}

// ProxyInfo describes a proxy in effect, without the secrets in its URL.
type ProxyInfo struct {
	For           string // http or https: the scheme of requests
	Variable      string // the environment variable that sets it
	URL           string // scheme, host and port; empty if the proxy cannot be used
	Authenticates bool   // its URL contains a user
	Problem       string // why it cannot be used; empty if it can
}

// ProxiesOf reads the proxies from an environment.
func ProxiesOf(getenv func(string) string) *Proxies {
	first := func(names ...string) (name, value string) {
		for _, name := range names {
			if v := strings.TrimSpace(getenv(name)); v != "" {
				return name, v
			}
		}
		return "", ""
	}
	p := &Proxies{
		plain:  newProxy(first("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")),
		secure: newProxy(first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")),
	}
	_, p.exceptions = first("no_proxy", "NO_PROXY")
	p.except = parseExceptions(p.exceptions)
	return p
}

func newProxy(variable, value string) proxy {
	p := proxy{variable: variable, value: value}
	if value == "" {
		return p
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	if err == nil && u.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		p.url = &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}
	}
	return p
}

// problem describes why a proxy cannot be used, without the value, which may contain a password.
func (p proxy) problem() string {
	if p.variable == "" || p.url != nil {
		return ""
	}
	return p.variable + " is not a usable proxy: it must be http://, https:// or socks5:// with a host and a port; " +
		"special characters of a user or password are written as %XX"
}

// For returns the proxy for a URL, or nil. The error is an *Error.
func (p *Proxies) For(u *url.URL) (*url.URL, error) {
	chosen := p.plain
	if u.Scheme == "https" {
		chosen = p.secure
	}
	if chosen.variable == "" || p.reachedDirectly(u) {
		return nil, nil
	}
	if chosen.url == nil {
		return nil, &Error{Kind: KindProxy, Message: chosen.problem()}
	}
	return chosen.url, nil
}

// List describes the proxies in effect.
func (p *Proxies) List() []ProxyInfo {
	var out []ProxyInfo
	for _, entry := range []struct {
		scheme string
		proxy
	}{{"http", p.plain}, {"https", p.secure}} {
		if entry.variable == "" {
			continue
		}
		info := ProxyInfo{For: entry.scheme, Variable: entry.variable, Problem: entry.problem()}
		if entry.url != nil {
			info.URL, info.Authenticates = displayURL(entry.url), entry.url.User != nil
		}
		out = append(out, info)
	}
	return out
}

// Exceptions returns the value of no_proxy; may be empty.
func (p *Proxies) Exceptions() string { return p.exceptions }

// Secrets lists parts of the proxies' URLs that must not be shown.
func (p *Proxies) Secrets() []string {
	var out []string
	for _, entry := range []proxy{p.plain, p.secure} {
		switch {
		case entry.variable == "":
		case entry.url == nil:
			out = append(out, entry.value)
		case entry.url.User != nil:
			password, _ := entry.url.User.Password()
			_, escaped, _ := strings.Cut(entry.url.User.String(), ":")
			withoutScheme := strings.TrimPrefix(entry.value[strings.Index(entry.value, "://")+1:], "//")
			_, asWritten, _ := strings.Cut(withoutScheme[:strings.LastIndex(withoutScheme, "@")], ":")
			out = append(out, password, escaped, asWritten)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// displayURL formats a proxy's URL for display.
func displayURL(u *url.URL) string { return u.Scheme + "://" + u.Host }

// address returns the host and port of a URL.
func address(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme])
	return net.JoinHostPort(u.Hostname(), port)
}

// reachedDirectly reports whether a URL is reached directly even if a proxy is configured.
func (p *Proxies) reachedDirectly(u *url.URL) bool {
	host, port, err := net.SplitHostPort(address(u))
	if err != nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	through, err := p.except(&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)})
	return localhost.Is(host) || err == nil && through == nil
}

// parseExceptions parses no_proxy: entries separated by commas or spaces. An entry is *
// (everything), a host (including its subdomains), .suffix or *.suffix (subdomains only), an IP
// address, or a range address/bits; all but the last may have a :port. The returned function
// returns a nil proxy for excepted URLs.
func parseExceptions(s string) func(*url.URL) (*url.URL, error) {
	entries := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, e := range entries {
		if name, ok := strings.CutSuffix(e, "."); ok && name != "*" { // names may end with a dot
			entries[i] = name
		} else if strings.HasPrefix(e, "[") && strings.HasSuffix(e, "]") {
			entries[i] = e[1 : len(e)-1]
		}
	}
	return (&httpproxy.Config{HTTPProxy: "http://proxy.invalid", NoProxy: strings.Join(entries, ",")}).ProxyFunc()
}
