package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// LostRestrictions returns messages about two kinds of mistakes. Those of the first kind, such as a
// misspelled tool in a rule, may let tool calls run that the user meant to deny; weakened reports
// whether there is such a mistake. Those of the second kind are other mistakes in the file of the
// agent in use. A program that runs without a user must not start if there are any messages.
//
// agent is the requested agent; empty means the default one. Agents that DropInvalidAgents removed,
// and untrusted hooks, are ignored.
func LostRestrictions(l *Loaded, agent string) (out []string, weakened bool) {
	used := l.AgentOrDefault(agent)
	for _, f := range l.Mistakes() {
		switch path := splitKey(f.path); {
		case len(path) > 0 && (path[0] == "hooks" || path[0] == "extraConfigs") && l.untrusted(f.Source):
			continue // untrusted hooks and extraConfigs have no effect
		case len(path) > 1 && path[0] == "agent" && agentFile(f.Source) && !l.hasAgent(path[1]) && path[1] != l.DefaultAgent && path[1] != l.Chat.DefaultAgent:
			continue // DropInvalidAgents removed this agent, and it was not requested
		case restricts(path), restricts(splitKey(f.intendedPath)):
			weakened = true
		case definesAgent(f.Source, used):
			weakened = weakened || len(path) == 0 // the whole file is refused
		case agent == "" && (slices.Equal(path, []string{"defaultAgent"}) || slices.Equal(path, []string{"chat", "defaultAgent"})):
			weakened = true // the agent that is used instead may have more rights
		default:
			continue
		}
		out = append(out, f.Place()+": "+f.Message)
	}
	return out, weakened
}

// Restricts reports whether a mistake may let tool calls run that the user meant to deny.
func (p Problem) Restricts() bool { return restricts(splitKey(p.key)) }

// untrusted reports whether a file belongs to an untrusted workspace.
func (l *Loaded) untrusted(file string) bool {
	return slices.ContainsFunc(l.Units, func(u Unit) bool { return u.File == file && !u.Trusted })
}

// DropInvalidAgents removes agents whose Markdown files contain mistakes in restrictions, so that a
// bad file in a repository does not stop the user's other agents. Built-in agents stay.
func (l *Loaded) DropInvalidAgents() {
	if len(l.layers) == 0 {
		return
	}
	builtIn, _ := l.layers[0].content["agent"].(map[string]any)
	for _, p := range l.Problems {
		if path := splitKey(p.key); len(path) > 2 && path[0] == "agent" && builtIn[path[1]] == nil && agentFile(p.Source) && restricts(path) {
			delete(l.Agents, path[1])
		}
	}
}

func (l *Loaded) hasAgent(name string) bool {
	_, known := l.Agents[name]
	return known
}

// RefusedAgent returns the first finding about the Markdown file of an agent. It explains why there
// is no agent with this name.
func (l *Loaded) RefusedAgent(name string) (Finding, bool) {
	for _, f := range l.Findings() {
		if path := splitKey(f.path); definesAgent(f.Source, name) || agentFile(f.Source) && len(path) > 1 && path[0] == "agent" && path[1] == name {
			return f, true
		}
	}
	return Finding{}, false
}

// MistakesAt returns the Mistakes about these top-level keys, and about keys that were probably meant to be
// one of them.
func (l *Loaded) MistakesAt(keys ...string) (out []Finding) {
	for _, f := range l.Mistakes() {
		for _, path := range []string{f.path, f.intendedPath} {
			if at := splitKey(path); len(at) > 0 && slices.Contains(keys, at[0]) {
				out = append(out, f)
				break
			}
		}
	}
	return out
}

// MistakesBelow returns the Mistakes at or below a path.
func (l *Loaded) MistakesBelow(path ...string) (out []Finding) {
	for _, f := range l.Mistakes() {
		if at := splitKey(f.path); len(at) >= len(path) && slices.Equal(at[:len(path)], path) {
			out = append(out, f)
		}
	}
	return out
}

// definesAgent reports whether a file is the Markdown file of the agent with this name.
func definesAgent(file, agent string) bool {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return agentFile(file) && strings.EqualFold(name, agent)
}

// agentFile reports whether a file is the Markdown file of an agent.
func agentFile(file string) bool {
	return filepath.Base(filepath.Dir(file)) == "agents" && strings.EqualFold(filepath.Ext(file), ".md")
}

// restricts reports whether a path leads to a key that restricts tool calls or spending, to something
// inside such a key, or to an object that contains one.
func restricts(path []string) bool {
	if len(path) > 0 && path[0] == "agent" {
		if len(path) < 3 {
			return true
		}
		path = path[2:]
		if path[0] == "readOnly" || path[0] == "inherit" { // the other agent may be read-only
			return true
		}
	}
	switch {
	case len(path) == 0:
		return false
	case path[0] == "toolCall" && len(path) > 2 && path[1] == "webFetch":
		return path[2] == "denyHosts" || path[2] == "allowHosts"
	case path[0] == "toolCall" && len(path) > 1:
		return slices.Contains([]string{"approval", "unasked", "sandbox", "sandboxNetwork", "sandboxProtect", "environment", "webFetch"}, path[1])
	}
	return slices.Contains([]string{"toolCall", "disabledTools", "hooks", "extraConfigs", "budget"}, path[0]) // hooks can block calls, and the files in extraConfigs can restrict them
}

// restrictionLike returns the path of our key that restricts tool calls in the way that key does in
// another assistant's configuration, in another object of ours, or in a Markdown agent. It returns nil
// for other keys.
func restrictionLike(key string) []string {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key)) {
	case "deny", "ask", "allow", "bydefault":
		return []string{"toolCall", "approval", key}
	case "approval", "approvals", "approvalpolicy", "approvalmode", "permission", "permissions", "permissionmode", "tools", "allowedtools", "coretools":
		return []string{"toolCall", "approval"}
	case "disabledtools", "disallowedtools", "deniedtools", "excludetools", "excludedtools":
		return []string{"disabledTools"}
	case "sandbox", "sandboxmode":
		return []string{"toolCall", "sandbox"}
	case "unasked":
		return []string{"toolCall", "unasked"}
	case "budgets":
		return []string{"budget"}
	}
	return nil
}

// looksLikeApproval reports whether an object has any of the keys of toolCall.approval.
func looksLikeApproval(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains([]string{"deny", "ask", "allow", "byDefault"}, name)
	})
}
