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

// protectAgents drops null for all agents, and for the agent that eca falls back on. A workspace's file
// cannot remove any agent, see withholdUnasked.
func protectAgents(b *builder, l *layer) {
	drop := func(object map[string]any, path []string, why string) {
		last := path[len(path)-1]
		if v, found := object[last]; found && v == nil && l.root == "" {
			delete(object, last)
			b.Problems = append(b.Problems, Problem{Origin: l.origin(path), Cause: KeyPath(path) + ": " + why + "; it is ignored", key: join(path)})
		}
	}
	drop(l.content, []string{"agent"}, "null would remove all agents")
	agents, _ := l.content["agent"].(map[string]any)
	drop(agents, []string{"agent", "code"}, "this agent cannot be removed, because it takes the place of agents that cannot be used")
}
