package config

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Fragment is configuration from a file that is not one of the user's JSON files, for example an
// agent from a Markdown file. Fragments override the defaults, and the user's JSON overrides
// fragments. A later fragment overrides an earlier one.
type Fragment struct {
	Source  string         // a file's path
	Root    string         // the workspace folder that the file belongs to, if any
	Plugin  string         // the folder of the plugin that the file belongs to, if any
	Path    []string       // the path of keys at which Content is inserted, such as agent, reviewer
	Content map[string]any // as encoding/json decodes it; Load does not change it
	Lines   map[string]int // the line of each key of Content
}

// addFragments adds the layers of the fragments.
func (b *builder) addFragments() {
	for _, f := range b.in.Fragments {
		content := clone(f.Content)
		raw, _ := json.Marshal(content) // decoded JSON always encodes
		l := &layer{source: f.Source, text: string(raw), positions: map[string]position{}, plugin: f.Plugin, fragment: true}
		for key, line := range f.Lines {
			l.positions[join(append(slices.Clone(f.Path), key))] = position{line: line}
		}
		for _, key := range slices.Backward(f.Path) {
			content = map[string]any{key: content}
		}
		l.content = content
		b.addLayer(l, f.Root)
	}
}

// clone copies objects and lists; other values are immutable.
func clone[T any](v T) T {
	var copied any = v
	switch v := any(v).(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, sub := range v {
			m[key] = clone(sub)
		}
		copied = m
	case []any:
		list := make([]any, len(v))
		for i, sub := range v {
			list[i] = clone(sub)
		}
		copied = list
	}
	out, _ := copied.(T)
	return out
}

// inheritAgents completes agents (docs/contracts/eca-features.md, section 12): an agent takes from the
// agent that it names all settings that it does not set itself, including nested ones.
func (b *builder) inheritAgents() {
	agents, _ := b.merged["agent"].(map[string]any)
	done := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		b.inheritAgent(agents, name, done, nil)
	}
}

// inheritAgent completes an agent after the agents it depends on; children are the agents that
// inherit from it, directly or indirectly.
func (b *builder) inheritAgent(agents map[string]any, name string, done map[string]bool, children []string) {
	agent, ok := agents[name].(map[string]any)
	parent, named := agent["inherit"].(string)
	if !ok || !named || parent == "" || done[name] {
		return
	}
	at := []string{"agent", name, "inherit"}
	from, known := agents[parent].(map[string]any)
	switch {
	case slices.Contains(append(children, name), parent):
		b.problemAt(at, "agent.%s.inherit: %s inherits from itself; it is ignored", name, parent)
		delete(agent, "inherit")
		return
	case !known:
		b.problemAt(at, "agent.%s.inherit: there is no agent %s; it is ignored%s", name, parent, suggest.DidYouMean(parent, slices.Sorted(maps.Keys(agents))))
		delete(agent, "inherit")
		return
	}
	b.inheritAgent(agents, parent, done, append(children, name))
	b.inheritMembers(agent, from, []string{"agent", name}, []string{"agent", parent})
	done[name] = true
}

// inheritMembers copies to child the members of parent that it lacks, with their origins. childPath
// and parentPath are the paths of the two objects.
func (b *builder) inheritMembers(child, parent map[string]any, childPath, parentPath []string) {
	for key, v := range parent {
		if key == "inherit" {
			continue
		}
		to, src := append(slices.Clone(childPath), key), append(slices.Clone(parentPath), key)
		sub, isMap := v.(map[string]any)
		have, exists := child[key]
		own, isOwnMap := have.(map[string]any)
		switch {
		case !exists && isMap:
			own = map[string]any{}
			child[key] = own
			b.origins[join(to)] = b.originOf(src)
			b.inheritMembers(own, sub, to, src)
		case !exists:
			child[key] = clone(v)
			b.origins[join(to)] = b.originOf(src)
		case isMap && isOwnMap:
			b.inheritMembers(own, sub, to, src)
		}
	}
}
