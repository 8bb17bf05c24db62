package config

// userOnly removes keys that only the user may set from the layer of a workspace or a plugin. With
// its own certificates (network), a cloned repository could intercept requests. With plugins and
// their hooks (plugins, claudeFiles), it could run programs. In a workspace's file, plugins and
// claudeFiles are kept if Inputs.Trusts is set, because withholdUntrusted then decides about them.
func (b *builder) userOnly(l *layer) {
	if l.root == "" && l.plugin == "" {
		return
	}
	trustDecides := l.root != "" && b.in.Trusts != nil
	for key := range l.content {
		if key == "network" || !trustDecides && (key == "plugins" || key == "claudeFiles") {
			delete(l.content, key)
			b.problem(l.origin([]string{key}), "%s can be set only in your own configuration, not in a workspace's or a plugin's; it is ignored", key)
		}
	}
}
