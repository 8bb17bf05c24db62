package config

import (
	"maps"
	"slices"
	"strings"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// tightening is a value of an untrusted file that is combined with the user's values. It can only
// make them stricter.
type tightening struct {
	l     *layer
	path  []string
	value any
}

// tightens reports whether a value has the form that an untrusted file may set at this path.
func tightens(path []string, v any) bool {
	if path[0] == "budget" {
		return tightensBudget(v)
	}
	switch path[len(path)-1] {
	case "readOnly":
		return v == true
	case "unasked":
		word, _ := v.(string)
		return slices.Contains(unaskedValues(), word)
	case "maxSteps":
		n, ok := v.(float64)
		return ok && n > 0
	case "ask", "deny":
		m, ok := v.(map[string]any)
		for _, rule := range m {
			ok = ok && isObject(rule)
		}
		return ok
	}
	if _, ok := v.(string); ok {
		return path[len(path)-1] == "spawnableBy" || path[len(path)-1] == "inherit"
	}
	list, ok := v.([]any)
	ok = ok && path[len(path)-1] != "inherit"
	for _, e := range list {
		_, isText := e.(string)
		ok = ok && isText
	}
	return ok
}

// withholdUnasked removes toolCall.unasked, also that of agents, from the layer of a workspace's
// file, trusted or not, and adds it to b.stricter, because the file can only make the user's value
// stricter. It also drops an agent that is not an object, because null would remove the user's value
// of this key.
func (b *builder) withholdUnasked(l *layer) {
	withhold := func(object map[string]any, path []string) {
		calls, _ := object["toolCall"].(map[string]any)
		v, found := calls["unasked"]
		if !found {
			return
		}
		delete(calls, "unasked")
		t := tightening{l, append(path[:len(path):len(path)], "toolCall", "unasked"), v}
		if !tightens(t.path, v) {
			b.problem(l.origin(t.path), "%s must be one of %s; it is ignored", KeyPath(t.path), strings.Join(unaskedValues(), ", "))
			return
		}
		b.stricter = append(b.stricter, t)
	}
	withhold(l.content, nil)
	value, found := l.content["agent"]
	agents, ok := value.(map[string]any)
	if found && !ok {
		delete(l.content, "agent")
		b.problem(l.origin([]string{"agent"}), "agent: a workspace's file cannot remove agents; it is ignored")
	}
	for _, name := range sortedKeys(agents) {
		path := []string{"agent", name}
		agent, ok := agents[name].(map[string]any)
		if !ok {
			delete(agents, name)
			b.problem(l.origin(path), "%s: a workspace's file cannot remove agents; it is ignored", KeyPath(path))
			continue
		}
		withhold(agent, path)
	}
}

// applyUnaskedFlag replaces the user's values of toolCall.unasked with the one from the command line.
func (b *builder) applyUnaskedFlag() {
	if b.in.Unasked == "" {
		return
	}
	agents, _ := b.merged["agent"].(map[string]any)
	for _, value := range agents {
		agent, _ := value.(map[string]any)
		calls, _ := agent["toolCall"].(map[string]any)
		delete(calls, "unasked")
	}
	path := []string{"toolCall", "unasked"}
	if in := b.objectAt(path[:1]); in != nil {
		in[path[1]] = b.in.Unasked
		b.origins[join(path)] = Origin{Source: "the command line"}
	}
}

// tightener groups the methods that apply values which can only make the configuration stricter.
type tightener struct{ *builder }

// tighten applies the tightenings of workspaces' files after all layers are merged. The general rules
// come first, because agents without their own rules start with a copy of them.
func (b tightener) tighten() {
	agents := map[string][]tightening{}
	for _, t := range b.stricter {
		if t.path[0] == "agent" {
			agents[t.path[1]] = append(agents[t.path[1]], t)
			continue
		}
		b.applyStricter(t)
	}
	done := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		b.tightenAgent(name, agents, done)
	}
}

// tightenAgent makes an agent stricter, after the agent that it inherits from.
func (b tightener) tightenAgent(name string, agents map[string][]tightening, done map[string]bool) {
	if done[name] {
		return
	}
	done[name] = true
	for _, t := range agents[name] {
		if parent, ok := t.value.(string); ok && t.path[2] == "inherit" {
			b.tightenAgent(parent, agents, done)
			b.inheritStrictly(t, parent)
			continue
		}
		b.applyStricter(t)
	}
}

// inheritStrictly copies to an agent of an untrusted file those values of its parent that need no
// trust, and never permissions.
func (b tightener) inheritStrictly(t tightening, parent string) {
	agents, _ := b.merged["agent"].(map[string]any)
	from, known := agents[parent].(map[string]any)
	if !known || parent == t.path[1] {
		b.problem(t.l.origin(t.path), "%s: there is no other agent %s; it is ignored", KeyPath(t.path), parent)
		return
	}
	s := splitter{l: t.l, keys: b.keys, parts: map[string]any{}}
	at := []string{"agent", t.path[1]}
	harmless := s.object(clone(from), at)
	if agent := b.objectAt(at); agent != nil {
		b.inheritMembers(agent, harmless, at, []string{"agent", parent})
	}
	for _, more := range s.stricter {
		if more.path[2] != "inherit" {
			b.applyStricter(more)
		}
	}
}

// applyStricter applies one tightening.
func (b tightener) applyStricter(t tightening) {
	last := len(t.path) - 1
	if t.path[0] == "agent" && (t.path[last] == "ask" || t.path[last] == "deny") {
		b.copyGeneralRules(t)
	}
	in := b.objectAt(t.path[:last])
	if in == nil {
		return // its type is wrong; it is dropped with a message
	}
	before := in[t.path[last]]
	if general, ok := b.merged["toolCall"].(map[string]any); ok && before == nil && t.path[last] == "unasked" {
		before = general["unasked"] // it applies to agents without their own value
	}
	if after := t.combine(before); !equalJSON(before, after) {
		in[t.path[last]] = after
		b.recordTightened(t)
	}
}

// combine combines a value with a tightening.
func (t tightening) combine(before any) any {
	if t.path[0] == "budget" { // the smallest limit of each kind applies
		return anyList(append(slices.Clone(texts(before)), texts(t.value)...))
	}
	switch t.path[len(t.path)-1] {
	case "readOnly":
		return true
	case "unasked":
		word, _ := before.(string)
		required, _ := t.value.(string)
		return unaskedValues()[min(slices.Index(unaskedValues(), required), max(0, slices.Index(unaskedValues(), word)))]
	case "maxSteps":
		if n, ok := before.(float64); ok {
			limit, _ := t.value.(float64)
			return min(n, limit)
		}
	case "ask", "deny":
		return union(before, t.value)
	case "spawnableBy":
		if before != nil {
			return anyList(slices.DeleteFunc(texts(before), func(name string) bool { return !slices.Contains(texts(t.value), name) }))
		}
	case "disabledTools":
		out := texts(before)
		for _, name := range texts(t.value) {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		return anyList(out)
	}
	return clone(t.value)
}

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

// union combines two sets of rules: a call that either set matches also matches the result.
func union(before, more any) any {
	base, _ := before.(map[string]any)
	out := map[string]any{}
	maps.Copy(out, base)
	added, _ := more.(map[string]any)
	for name, rule := range added {
		have, exists := out[name]
		if !exists {
			out[name] = clone(rule)
			continue
		}
		existing, hasExisting := matchers(have)
		newMatchers, hasNew := matchers(rule)
		if !hasExisting || !hasNew {
			out[name] = map[string]any{} // all calls
			continue
		}
		all := map[string]any{}
		for _, m := range []map[string]any{existing, newMatchers} {
			for arg, patterns := range m {
				list := texts(all[arg])
				for _, p := range texts(patterns) {
					if !slices.Contains(list, p) {
						list = append(list, p)
					}
				}
				all[arg] = anyList(list)
			}
		}
		out[name] = map[string]any{"argsMatchers": all}
	}
	return out
}

func matchers(rule any) (map[string]any, bool) {
	m, _ := rule.(map[string]any)
	args, ok := m["argsMatchers"].(map[string]any)
	return args, ok
}

// copyGeneralRules copies a list of the general rules to an agent without such a list, because an agent's
// list replaces the general one.
func (b tightener) copyGeneralRules(t tightening) {
	last := len(t.path) - 1
	general, _ := b.merged["toolCall"].(map[string]any)
	approval, _ := general["approval"].(map[string]any)
	list := approval[t.path[last]]
	if list == nil {
		return
	}
	if in := b.objectAt(t.path[:last]); in != nil && in[t.path[last]] == nil {
		in[t.path[last]] = clone(list)
	}
}

// objectAt returns the object at a path and creates it if it is missing. It returns nil if the path
// has another kind of value.
func (b *builder) objectAt(path []string) map[string]any {
	m := b.merged
	for _, key := range path {
		sub, ok := m[key].(map[string]any)
		if m[key] != nil && !ok {
			return nil
		}
		if !ok {
			sub = map[string]any{}
			m[key] = sub
		}
		m = sub
	}
	return m
}

// recordTightened records the workspace's file as the origin of the tightened value.
func (b tightener) recordTightened(t tightening) {
	set := func(path []string) {
		o := t.l.origin(path)
		b.origins[join(path)] = o
	}
	for n := 1; n <= len(t.path); n++ {
		if _, known := b.origins[join(t.path[:n])]; !known {
			set(t.path[:n])
		}
	}
	rules, ok := t.value.(map[string]any)
	if !ok {
		set(t.path)
	}
	for name := range rules {
		set(append(slices.Clone(t.path), name))
	}
}
