package config

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// CamelCase converts a name from a client's initializationOptions to the form that clients of the
// reference server use: deny-tool becomes denyTool.
func CamelCase(s string) string {
	var b strings.Builder
	up := false
	for _, r := range s {
		if r == '-' || r == '_' || r == ' ' {
			up = b.Len() > 0
			continue
		}
		switch {
		case up:
			r = unicode.ToUpper(r)
		case b.Len() == 0:
			r = unicode.ToLower(r)
		}
		up = false
		b.WriteRune(r)
	}
	return b.String()
}

// camelCaseServers renames the MCP servers in a client's options. It also renames all references to
// their tools, so that each rule still applies to the same tool.
func (l *layer) camelCaseServers() {
	servers, _ := l.content["mcpServers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		camel := CamelCase(name)
		if _, taken := servers[camel]; taken || camel == "" {
			continue
		}
		l.move([]string{"mcpServers", name}, []string{"mcpServers", camel})
		for key, v := range l.content {
			if key != "mcpServers" {
				l.renameServer([]string{key}, v, name, camel)
			}
		}
	}
}

// renameServer replaces the server's name in tool names below a path.
func (l *layer) renameServer(path []string, v any, name, camel string) {
	renamed := func(s string) (string, bool) {
		rest, ok := strings.CutPrefix(s, name)
		return camel + rest, ok && (rest == "" || strings.HasPrefix(rest, "__"))
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := append(slices.Clone(path), key)
			l.renameServer(at, v[key], name, camel)
			if to, ok := renamed(key); ok {
				l.move(at, append(slices.Clone(path), to))
			}
		}
	case []any:
		for i, e := range v {
			s, _ := e.(string)
			if to, ok := renamed(s); ok {
				v[i] = to
			}
		}
	}
}
