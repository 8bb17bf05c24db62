// Package localhost defines which network destinations are this machine: these may be reached
// without TLS and without a proxy, and may call without a token.
//
// A host that only looks like this machine is not accepted. The package resolves no names, and does
// not know the machine's own addresses on other networks.
package localhost

import (
	"net/netip"
	"net/url"
	"strings"
)

// Is reports whether a host, a name or an address without a port, is this machine: localhost,
// a name below it (RFC 6761), or an address that never leaves the machine.
func Is(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// IsURL reports whether the host of a URL is this machine.
func IsURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && Is(u.Hostname())
}
