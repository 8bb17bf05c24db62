package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// IsWebURL reports whether an address is an HTTP or HTTPS URL with a host. If it has a port, the
// number must be valid.
func IsWebURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false
	}
	_, err = strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16)
	return err == nil
}

// CheckTransport reports an error in the transport of an MCP server. An unresolved url is accepted.
func CheckTransport(command, address string) error {
	switch {
	case command == "" && address == "":
		return errors.New("an MCP server needs a command or a url")
	case command != "" && address != "":
		return errors.New("an MCP server has a command or a url, not both")
	case address != "" && !strings.Contains(address, "$") && !IsWebURL(address):
		return errors.New("the url of an MCP server must be like https://HOST or http://HOST:PORT")
	}
	return nil
}

// maxServerName limits the names of MCP servers, because they are part of the names of tools.
const maxServerName = 128

// CheckServerName reports an error in the name of an MCP server.
func CheckServerName(name string) error {
	bad := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	switch {
	case name == "":
		return errors.New("the MCP server has no name")
	case len(name) > maxServerName || strings.ContainsFunc(name, bad):
		return fmt.Errorf("the name of an MCP server must be at most %d characters without spaces", maxServerName)
	case isNativeServer(name):
		return errors.New("eca is the name of the native tools; choose another name for the MCP server")
	}
	return nil
}

// isNativeServer reports whether an MCP server's tools would have the names of native ones.
func isNativeServer(server string) bool { return strings.EqualFold(server, "eca") }

// checkServerNames removes MCP servers whose tools would have the names of native ones. Other names
// that eca mcp add refuses work in files that were written for the reference server.
func checkServerNames(b *builder) {
	for _, name := range slices.Sorted(maps.Keys(b.MCPServers)) {
		if isNativeServer(name) {
			at := []string{"mcpServers", name}
			b.problemAt(at, "%s: %v. The server is not started", KeyPath(at), CheckServerName(name))
			delete(b.MCPServers, name)
		}
	}
}

// checkURLs reports providers and MCP servers whose addresses are invalid. It does not show the
// urls, because they may contain a password.
func (b *builder) checkURLs() {
	for _, name := range slices.Sorted(maps.Keys(b.Providers)) {
		p, at := b.Providers[name], []string{"providers", name, "url"}
		unresolved := len(b.unset[join(at)]) > 0 || strings.Contains(p.URL, "${")
		if p.API != "" && p.API != "cassette" && p.URL != "" && !unresolved && !IsWebURL(p.URL) {
			b.problemAt(at, "%s must be like https://HOST or http://HOST:PORT", KeyPath(spelledPath(b.spellings, at)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.MCPServers)) {
		s, at := b.MCPServers[name], []string{"mcpServers", name}
		withheld := func(l *layer) bool { // an untrusted file sets more, so the known settings are incomplete
			servers, _ := l.withheld["mcpServers"].(map[string]any)
			return servers[name] != nil
		}
		err := CheckTransport(s.Command, s.URL)
		if err == nil || s.Disabled || slices.ContainsFunc(b.layers, withheld) {
			continue
		}
		if s.Command == "" && s.URL != "" {
			at = append(at, "url")
		}
		b.problemAt(at, "%s: %v", KeyPath(at), err)
	}
}
