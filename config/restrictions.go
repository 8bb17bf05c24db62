package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// LostRestrictions lists mistakes in keys that restrict tool calls: a rule of a wrong type, a
// misspelled key or tool, the agent in use. Calls that they were meant to deny would run, so an
// unattended program must not start. agent is the name that was requested; empty means the default.
func LostRestrictions(l *Loaded, agent string) []string {
	used := l.AgentOrDefault(agent)
	var out []string
	for _, f := range l.Mistakes() {
		switch path := splitKey(f.path); {
		case restricts(path), restricts(splitKey(f.meant)), definesAgent(f.Source, used):
		case agent == "" && (slices.Equal(path, []string{"defaultAgent"}) || slices.Equal(path, []string{"chat", "defaultAgent"})):
		default:
			continue
		}
		at := f.Source
		if f.Line > 0 {
			at += fmt.Sprintf(": line %d", f.Line)
		}
		if f.Column > 0 {
			at += fmt.Sprintf(", column %d", f.Column)
		}
		out = append(out, at+": "+f.Message)
	}
	return out
}

// MistakesAt returns the Mistakes about these top-level keys.
func (l *Loaded) MistakesAt(keys ...string) (out []Finding) {
	for _, f := range l.Mistakes() {
		if path := splitKey(f.path); len(path) > 0 && slices.Contains(keys, path[0]) {
			out = append(out, f)
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

// definesAgent reports whether a file is the Markdown file of an agent.
func definesAgent(file, agent string) bool {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return filepath.Base(filepath.Dir(file)) == "agents" && strings.EqualFold(filepath.Ext(file), ".md") && strings.EqualFold(name, agent)
}

// restricts reports whether a path is that of a key that restricts tool calls, or is below or above
// one.
func restricts(path []string) bool {
	if len(path) > 0 && path[0] == "agent" {
		if len(path) < 3 {
			return true
		}
		path = path[2:]
		if path[0] == "readOnly" {
			return true
		}
	}
	switch {
	case len(path) == 0:
		return false
	case path[0] == "toolCall" && len(path) > 1:
		return slices.Contains([]string{"approval", "unasked", "sandbox", "sandboxNetwork", "sandboxProtect", "environment"}, path[1])
	}
	return slices.Contains([]string{"toolCall", "disabledTools", "hooks"}, path[0]) // a hook may block calls
}

// looksLikeApproval reports whether an object has the members of toolCall.approval.
func looksLikeApproval(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains([]string{"deny", "ask", "allow", "bydefault"}, strings.ToLower(name))
	})
}
