package fetch

import "net/netip"

// nonPublicNetworks returns networks for which netip has no method: those that IANA has set aside for
// special purposes, and the address of a cloud's own services.
func nonPublicNetworks() []netip.Prefix {
	list := []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"168.63.129.16/32", // a cloud provider's own services, on all of its machines
		"::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32", "fec0::/10", "3fff::/20", "5f00::/16",
	}
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// Public reports whether an address is on the public internet. A NAT64 or 6to4 address is judged by the
// IPv4 address in it.
func Public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if !a.IsValid() || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
		return false
	}
	for _, p := range nonPublicNetworks() {
		if p.Contains(a) {
			return false
		}
	}
	if inner, ok := embeddedIPv4(a); ok {
		return Public(inner)
	}
	return true
}

// embeddedIPv4 returns the IPv4 address in a NAT64 or 6to4 address.
func embeddedIPv4(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
