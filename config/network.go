package config

import "strings"

// userOnly removes from a workspace's file what is not for it to say: which certificates
// are trusted, and who we are, would let a cloned repository read along. root is set for
// workspace files.
func (b *builder) userOnly(content map[string]any, l *layer, root string) {
	if root == "" {
		return
	}
	for key := range content {
		if strings.EqualFold(key, "network") {
			delete(content, key)
			b.problem(l.origin([]string{key}), "%s counts in your own configuration only, not in a workspace's; it is ignored", key)
		}
	}
}

// httpClientForm accepts "httpClient": "http-1.1", as the reference's schema has it,
// beside the object.
func httpClientForm(providers map[string]any) {
	for _, p := range providers {
		if p, ok := p.(map[string]any); ok {
			if version, ok := p["httpClient"].(string); ok {
				p["httpClient"] = map[string]any{"version": version}
			}
		}
	}
}
