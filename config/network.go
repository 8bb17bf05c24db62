package config

import "strings"

// userOnly removes keys from a workspace's or a plugin's layer that only the user may set. Trusted
// certificates and eca's own certificate would let a cloned repository read along. Plugins and
// their hooks would let it run programs; if Inputs.Trusts judges workspace files, it decides about
// those.
func (b *builder) userOnly(l *layer) {
	if l.root == "" && l.plugin == "" {
		return
	}
	judged := l.root != "" && b.in.Trusts != nil
	for key := range l.content {
		if strings.EqualFold(key, "network") || !judged && (key == "plugins" || key == "claudeFiles") {
			delete(l.content, key)
			b.problem(l.origin([]string{key}), "%s counts in your own configuration only, not in a workspace's or a plugin's; it is ignored", key)
		}
	}
}
