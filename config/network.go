package config

import "strings"

// userOnly removes from a workspace's or a plugin's layer what is not for it to say: which
// certificates are trusted, and who we are, would let a cloned repository read along.
func (b *builder) userOnly(l *layer) {
	if l.root == "" && l.plugin == "" {
		return
	}
	for key := range l.content {
		if strings.EqualFold(key, "network") {
			delete(l.content, key)
			b.problem(l.origin([]string{key}), "%s counts in your own configuration only, not in a workspace's or a plugin's; it is ignored", key)
		}
	}
}
