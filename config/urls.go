package config

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// IsWebURL says whether an address can be asked over HTTP.
func IsWebURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// CheckTransport says what is wrong with how an MCP server is reached. A url that is not
// resolved yet can be any.
func CheckTransport(command, address string) error {
	switch {
	case command == "" && address == "":
		return errors.New("an MCP server needs a command or a url")
	case command != "" && address != "":
		return errors.New("an MCP server has a command or a url, not both")
	case address != "" && !strings.Contains(address, "$") && !IsWebURL(address):
		return errors.New("the url of an MCP server must name a host; begin it with http:// or https://")
	}
	return nil
}

// checkURLs names the providers and MCP servers that cannot be reached as they are written.
// The urls are not shown: there may be a password in them.
func (b *builder) checkURLs(cfg *Config) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		p, at := cfg.Providers[name], []string{"providers", name, "url"}
		unresolved := len(b.unset[join(at)]) > 0 || strings.Contains(p.URL, "${")
		if p.API != "" && p.API != "cassette" && p.URL != "" && !unresolved && !IsWebURL(p.URL) {
			b.problemAt(at, "%s must name a host; begin it with http:// or https://", KeyPath(spelledPath(b.spellings, at)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.MCPServers)) {
		s, at := cfg.MCPServers[name], []string{"mcpServers", name}
		withheld := func(l *layer) bool { // so that it is not known what else there is
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
