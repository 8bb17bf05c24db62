package config

import "fmt"

// dropForeignKeys removes keys that may not be set where a layer comes from. With its own
// certificates (network), a cloned repository could intercept requests, with a retention it could
// delete the chats of other workspaces, and with claudeFiles it could run hooks. The tag source of a
// key says who may set it:
//
//	options    initializationOptions
//	user       the user, but no workspace and no plugin
//	no-plugin  the user and workspaces
func (b *builder) dropForeignKeys(l *layer) {
	for key := range l.content {
		k := b.keys.member(key)
		if k == nil || l.source == defaults {
			continue
		}
		why := ""
		switch source := k.tag.Get("source"); {
		case source == "options" && l.source != initializationOptions:
			why = "has an effect only in initializationOptions"
		case source == "user" && (l.root != "" || l.plugin != ""), key == "plugins" && l.root != "" && b.in.Trusts == nil:
			why = "can be set only in your own configuration, not in a workspace's or a plugin's"
		case source == "no-plugin" && l.plugin != "":
			why = "cannot be set by a plugin"
		}
		if why != "" {
			delete(l.content, key)
			b.Problems = append(b.Problems, Problem{Origin: l.origin([]string{key}), Cause: fmt.Sprintf("%s %s; it is ignored", key, why)})
		}
	}
}
