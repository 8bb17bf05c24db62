package config

import "strings"

// userOnly removes keys from a workspace's or a plugin's layer that only the user may set. With its
// own certificates, a cloned repository could intercept requests. With plugins and their hooks, it
// could run programs; for workspace files, Inputs.Trusts decides about these keys if it is set.
func (b *builder) userOnly(l *layer) {
	if l.root == "" && l.plugin == "" {
		return
	}
	judged := l.root != "" && b.in.Trusts != nil
	for key := range l.content {
		if strings.EqualFold(key, "network") || !judged && (key == "plugins" || key == "claudeFiles") {
			delete(l.content, key)
			b.problem(l.origin([]string{key}), "%s can be set only in your own configuration, not in a workspace's or a plugin's; it is ignored", key)
		}
	}
}
