// Package localhost is the one definition of "this machine" as a destination on the network:
// for what may be sent without TLS, what needs no proxy, and who may call without a token.
//
// It guarantees that a host which only looks like this machine is not taken for it. It
// resolves no name, and does not know the machine's own addresses on other networks.
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

// IsURL reports whether a URL leads to this machine.
func IsURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && Is(u.Hostname())
}
