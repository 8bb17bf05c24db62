package config

import "strings"

// userOnly removes from a workspace's or a plugin's layer what is not for it to say: which
// certificates are trusted, and who we are, would let a cloned repository read along. Which
// plugins there are, or whose hooks run, would let it run programs; where something judges
// what workspaces say (Inputs.Restrict), that is for it to decide.
func (b *builder) userOnly(l *layer) {
	if l.root == "" && l.plugin == "" {
		return
	}
	judged := l.root != "" && b.in.Restrict != nil
	for key := range l.content {
		if strings.EqualFold(key, "network") || !judged && (key == "plugins" || key == "claudeFiles") {
			delete(l.content, key)
			b.problem(l.origin([]string{key}), "%s counts in your own configuration only, not in a workspace's or a plugin's; it is ignored", key)
		}
	}
}
