package extensions

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Agent is an agent from a Markdown file (eca-features.md 12).
type Agent struct {
	ID     string
	File   string
	Root   string // the workspace folder that it belongs to; empty if it is global
	Plugin string // the name of its plugin; empty if it belongs to none

	keys      map[string]any // as below agent.<id> in the configuration
	lines     map[string]int
	pluginDir string
}

// fragment returns the agent as configuration.
func (a Agent) fragment() config.Fragment {
	lines := map[string]int{}
	for key, line := range a.lines {
		lines[key] = line
	}
	return config.Fragment{
		Source: a.File, Root: a.Root, Plugin: a.pluginDir, Path: []string{"agent", a.ID},
		Content: a.keys, Lines: lines,
	}
}

// parseAgent parses a Markdown agent. Its strings are expanded with the configuration.
func parseAgent(path, text string) (Agent, *fault) {
	d, flt := parseDocument(text)
	if flt != nil {
		return Agent{}, flt
	}
	return d.agent(path)
}

// agent converts a document to an agent.
func (d document) agent(path string) (Agent, *fault) {
	if flt := d.checkFrontmatter(); flt != nil {
		return Agent{}, flt
	}
	var flt *fault
	a := Agent{File: path, keys: map[string]any{}, lines: map[string]int{}}
	set := func(key, from string, v any) {
		a.keys[key] = v
		a.lines[key] = d.line(from)
	}
	for _, k := range []struct{ from, to string }{
		{"description", "description"}, {"model", "defaultModel"}, {"variant", "variant"}, {"inherit", "inherit"},
	} {
		v, flt := d.text(k.from)
		if flt != nil {
			return Agent{}, flt
		}
		if v != "" {
			set(k.to, k.from, v)
		}
	}
	for _, key := range []string{"mode", "spawnableBy", "disabledTools"} {
		v, flt := d.texts(key)
		if flt != nil {
			return Agent{}, flt
		}
		if key == "mode" && slices.ContainsFunc(v, func(m string) bool { return m != "primary" && m != "subagent" }) {
			return Agent{}, faultf(d.line(key), "mode must be primary, subagent, or both as a list")
		}
		if v != nil {
			set(key, key, toAny(v))
		}
	}
	if flt := d.checkRestrictions(); flt != nil {
		return Agent{}, flt
	}
	switch readOnly := d.meta["readOnly"].(type) {
	case nil:
	case bool:
		set("readOnly", "readOnly", readOnly)
	default:
		return Agent{}, faultf(d.line("readOnly"), "readOnly must be true or false")
	}
	for _, key := range []string{"steps", "maxSteps"} {
		v, flt := d.number(key)
		if flt != nil {
			return Agent{}, flt
		}
		if v > 0 {
			set("maxSteps", key, float64(v))
		}
	}
	approval, flt := d.approval()
	if flt != nil {
		return Agent{}, flt
	}
	if approval != nil {
		set("toolCall", "tools", map[string]any{"approval": approval})
	}
	if d.body != "" {
		a.keys["systemPrompt"] = d.body
	}
	id, flt := d.text("name")
	if flt != nil {
		return Agent{}, flt
	}
	if id == "" {
		id, _, _ = strings.Cut(filepath.Base(path), ".")
	}
	if a.ID = strings.ToLower(id); a.ID == "" {
		return Agent{}, faultf(1, "the agent has no name")
	}
	return a, nil
}

// checkFrontmatter returns a fault if the restrictions of an agent are not read because its file is
// empty, or its frontmatter is not recognized.
func (d document) checkFrontmatter() *fault {
	keys := append(agentKeys(), otherRestrictions()...)
	first, _, _ := strings.Cut(d.body, "\n")
	name, _, _ := strings.Cut(first, ":")
	switch {
	case d.meta != nil:
		return nil
	case d.unread != nil:
		return d.unread
	case d.body == "":
		return faultf(1, "the file is empty; write the agent's prompt, and its frontmatter before it")
	case strings.HasPrefix(first, delimiter) || strings.HasPrefix(first, "+++"):
		return faultf(1, "the frontmatter must be between two lines of exactly three dashes")
	case name != first && slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, name) }):
		return faultf(1, "the frontmatter must begin with a line of three dashes")
	}
	return nil
}

// checkRestrictions finds a key that was meant to restrict the agent but has no effect: a misspelled
// one, or one of config.json or of other programs. Other unknown keys may be for other programs, but
// an agent must not run with more rights than its file intends.
func (d document) checkRestrictions() *fault {
	known, elsewhere := []string{"readOnly", "disabledTools", "tools"}, otherRestrictions()
	for _, key := range slices.Sorted(maps.Keys(d.meta)) {
		if slices.Contains(known, key) {
			continue
		}
		switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key)) {
		case "allow", "ask", "deny", "bydefault":
			return faultf(d.line(key), "%s has no effect here; put it below tools", key)
		case "allowedtools":
			return faultf(d.line(key), "unknown key %s; did you mean tools?", key)
		case "disallowedtools", "deniedtools", "excludetools", "excludedtools":
			return faultf(d.line(key), "unknown key %s; did you mean disabledTools?", key)
		}
		if meant := suggest.Nearest(key, known); meant != "" {
			return faultf(d.line(key), "unknown key %s; did you mean %s?", key, meant)
		}
		if slices.Contains(elsewhere, key) || suggest.Nearest(key, elsewhere) != "" {
			return faultf(d.line(key), "%s has no effect in a Markdown file; restrict the agent with tools, disabledTools or readOnly", key)
		}
	}
	return nil
}

// agentKeys are the keys of an agent's frontmatter.
func agentKeys() []string {
	return []string{"name", "description", "mode", "model", "variant", "inherit", "spawnableBy", "readOnly", "disabledTools", "tools", "steps", "maxSteps"}
}

// otherRestrictions are keys that restrict agents in config.json or in other programs.
func otherRestrictions() []string {
	return []string{"toolCall", "permission", "permissions", "permissionMode", "approval", "unasked", "sandbox"}
}

func toAny(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// approval returns tools as a toolCall.approval; nil if the key is absent. If tools is a list, its
// entries are allowed and everything else needs approval.
func (d document) approval() (map[string]any, *fault) {
	line := d.line("tools")
	switch v := d.meta["tools"].(type) {
	case nil:
		return nil, nil
	case []any, string:
		list, flt := d.texts("tools")
		if flt != nil {
			return nil, flt
		}
		allow, flt := selectors(list, line)
		return map[string]any{"byDefault": "ask", "allow": allow}, flt
	case map[string]any:
		out := map[string]any{}
		for key, sub := range v {
			switch key {
			case "byDefault":
				s, _ := sub.(string)
				if s != "ask" && s != "allow" && s != "deny" {
					return nil, faultf(line, "tools.byDefault must be ask, allow or deny")
				}
				out[key] = s
			case "allow", "ask", "deny":
				list, flt := document{meta: map[string]any{key: sub}, lines: map[string]int{key: line}}.texts(key)
				if flt != nil {
					return nil, faultf(line, "tools.%s", flt.cause)
				}
				if out[key], flt = selectors(list, line); flt != nil {
					return nil, flt
				}
			default:
				return nil, faultf(line, "unknown key tools.%s; tools can have byDefault, allow, ask and deny", key)
			}
		}
		return out, nil
	default:
		return nil, faultf(line, "tools must be a list, or an object with byDefault, allow, ask and deny, not %s", kindName(v))
	}
}

// shellTool is the only tool whose entries may have a pattern: eca__shell_command(regex).
const shellTool = "eca__shell_command"

// selectors converts entries to the keys of an approval. Several patterns of the shell tool become
// one entry; without a pattern, the entry stands for all commands.
func selectors(list []string, line int) (map[string]any, *fault) {
	out := map[string]any{}
	var patterns []any
	all := false
	for _, entry := range list {
		name, rest, has := strings.Cut(entry, "(")
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return nil, faultf(line, "tools has an entry without a name")
		case !has:
			out[name] = map[string]any{}
			all = all || name == shellTool
		case name != shellTool:
			return nil, faultf(line, "%q: only %s can have a pattern; use toolCall.approval in the configuration", entry, shellTool)
		case !strings.HasSuffix(rest, ")"):
			return nil, faultf(line, "%q has no closing parenthesis", entry)
		default:
			patterns = append(patterns, strings.TrimSuffix(rest, ")"))
		}
	}
	if len(patterns) > 0 && !all {
		out[shellTool] = map[string]any{"argsMatchers": map[string]any{"command": patterns}}
	}
	return out, nil
}
