package extensions

import (
	"slices"
	"strings"
)

// claudeTools maps the names of Claude Code's tools to eca's. Tools without an equivalent, and
// patterns for MCP servers, cannot be translated.
func claudeTools() map[string][]string {
	return map[string][]string{
		"Read": {"eca__read_file"}, "Write": {"eca__write_file"}, "Edit": {"eca__edit_file"}, "MultiEdit": {"eca__multi_edit"},
		"Bash": {shellTool}, "Grep": {"eca__grep"}, "Glob": {"eca__glob"}, "LS": {"eca__directory_tree"},
		"WebFetch": {"eca__web_fetch"}, "TodoWrite": {"eca__task"}, "Skill": {skillTool}, "AskUserQuestion": {"eca__ask_user"},
	}
}

// parseClaudeAgent parses an agent of Claude Code. It is a subagent, its tools have Claude Code's
// names, and its model is a short name.
func parseClaudeAgent(path, text string) (Agent, *fault) {
	d, flt := parseDocument(text)
	if flt != nil {
		return Agent{}, flt
	}
	if flt := d.checkFrontmatter(); flt != nil {
		return Agent{}, flt
	}
	names, flt := d.texts("tools")
	if flt != nil {
		return Agent{}, flt
	}
	model, flt := d.text("model")
	if flt != nil {
		return Agent{}, flt
	}
	given := d.meta["tools"] != nil
	meta := map[string]any{"mode": "subagent"}
	for _, key := range []string{"name", "description"} {
		if v, ok := d.meta[key]; ok {
			meta[key] = v
		}
	}
	if strings.Contains(model, "/") { // short names such as sonnet, opus and inherit leave the model to the user's choice
		meta["model"] = model
	}
	if given {
		allow, ask := []any{}, []any{}
		for _, list := range names {
			for name := range strings.SplitSeq(list, ",") {
				name = strings.TrimSpace(name)
				if slices.Contains([]string{"Read", "Grep", "Glob", "LS", "TodoWrite", "Skill", "AskUserQuestion"}, name) {
					allow = append(allow, claudeSelector(name)...)
				} else {
					ask = append(ask, claudeSelector(name)...)
				}
			}
		}
		// In an agent of Claude Code, tools that are not listed are unavailable.
		meta["tools"] = map[string]any{"byDefault": "deny", "allow": allow, "ask": ask}
	}
	return d.with(meta).agent(path)
}

// claudeSelector returns the tools that a name stands for. A command with a pattern, such as
// Bash(git log:*), needs approval like any command.
func claudeSelector(name string) []any {
	name, _, _ = strings.Cut(name, "(")
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		server, _, _ := strings.Cut(rest, "__")
		if server == rest {
			return []any{server}
		}
		return []any{rest}
	}
	return toAny(slices.Clone(claudeTools()[name]))
}

// with returns a document with other frontmatter, whose keys keep their line numbers.
func (d document) with(meta map[string]any) document {
	d.meta = meta
	return d
}
