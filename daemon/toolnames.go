package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/tools/lsp"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

// badToolNames returns problems for tools in approval rules and in disabledTools that do not exist,
// and for arguments in rules that a tool does not have: a rule that denies a misspelled tool or
// argument denies nothing. The tools of an MCP server are known only while it runs, so any name
// after the server's name is accepted, with any arguments. The tools are created only if the user's
// files name some, because that takes longer than the rest of a start.
func (b *toolbox) badToolNames(cfg *config.Loaded) []config.Problem {
	arguments := sync.OnceValue(func() map[string][]string { return b.toolArguments(cfg) })
	names := sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(arguments())) })
	var out []config.Problem
	checkArguments := func(path []string, tool string, rule config.ApprovalRule) {
		if origin, ok := cfg.Origin(path...); !ok || origin.IsDefault() {
			return
		}
		written, _ := cfg.Origin(append(slices.Clone(path), "argsMatchers")...)
		if rule.ArgsMatchers != nil && len(rule.ArgsMatchers) == 0 && written.Line > 0 { // without a line, it replaces a rule with a mistake
			out = append(out, cfg.Problem(append(slices.Clone(path), "argsMatchers"), "%s: argsMatchers is empty, so the rule matches no call; leave it out to match all calls of %s", config.KeyPath(path), tool))
		}
		out = append(out, badArguments(cfg, path, tool, rule, arguments()[tool])...)
	}
	check := func(path []string, name string, known func(name string) bool) {
		origin, ok := cfg.Origin(path...)
		if !ok || origin.IsDefault() || known(name) {
			return
		}
		what := config.KeyPath(path)
		if path[len(path)-1] != name {
			what += ": " + strconv.Quote(name)
		}
		hint := suggest.DidYouMean(name, sameForm(slices.Concat(names(), slices.Sorted(maps.Keys(cfg.MCPServers))), name))
		if ours := toolOfPeers(name); ours != "" {
			hint = "; did you mean " + ours + "?"
		}
		if path[len(path)-1] == name && isPattern(name) {
			hint = noPatterns
		}
		p := cfg.Problem(path, "%s: there is no such tool, so this has no effect%s", what, hint)
		elsewhere := hint == "" && !strings.HasPrefix(name, tools.FullName(tools.Native, "")) // it may be a server of another workspace, or its tool
		if elsewhere || slices.Contains(path, "allow") {                                      // such a rule restricts nothing
			p = config.Problem{Origin: origin, Cause: p.Cause}
		}
		out = append(out, p)
	}
	lists := func(at []string, disabled []string, a *config.Approval) {
		for _, name := range disabled {
			check(append(slices.Clone(at), "disabledTools"), name, func(name string) bool {
				return permission.Selects(name, names(), len(cfg.MCPServers) > 0) || isMCPName(cfg.Config, name)
			})
		}
		if a == nil {
			return
		}
		for key, rules := range map[string]map[string]config.ApprovalRule{"deny": a.Deny, "ask": a.Ask, "allow": a.Allow} {
			for _, name := range slices.Sorted(maps.Keys(rules)) {
				path := append(slices.Clone(at), "toolCall", "approval", key, name)
				check(path, name, func(name string) bool {
					return slices.Contains(names(), name) || isMCPName(cfg.Config, name) && !isPattern(name)
				})
				checkArguments(path, name, rules[name])
			}
		}
	}
	lists(nil, cfg.DisabledTools, cfg.ToolCall.Approval)
	for _, agent := range slices.Sorted(maps.Keys(cfg.Agents)) {
		lists([]string{"agent", agent}, cfg.Agents[agent].DisabledTools, cfg.Agents[agent].ToolCall.Approval)
	}
	return append(out, badMatchers(cfg, arguments)...)
}

// badArguments returns problems for arguments in a rule that its tool does not have, or that have
// no patterns. known lists the arguments of the tool; nil means that they are not known.
func badArguments(cfg *config.Loaded, path []string, tool string, rule config.ApprovalRule, known []string) (out []config.Problem) {
	for _, name := range slices.Sorted(maps.Keys(rule.ArgsMatchers)) {
		at := append(slices.Clone(path), "argsMatchers", name)
		switch {
		case known != nil && !slices.Contains(known, name):
			out = append(out, cfg.Problem(at, "%s: %s has no argument %q, so this has no effect%s", config.KeyPath(path), tool, name, suggest.DidYouMean(name, known)))
		case len(rule.ArgsMatchers[name]) == 0:
			out = append(out, cfg.Problem(at, "%s: there are no patterns for %q, so the rule matches no call", config.KeyPath(path), name))
		}
	}
	return out
}

// toolOfPeers returns the name of our tool that does the same as a tool of another assistant with
// this name, or "".
func toolOfPeers(name string) string {
	ours := map[string][]string{
		"shell_command":  {"bash", "shell", "sh", "exec", "exec_command", "execute_command", "run_command", "run_shell_command", "run_in_terminal", "run_terminal_cmd"},
		"edit_file":      {"edit", "multiedit", "patch", "apply_patch", "replace", "str_replace_editor"},
		"write_file":     {"write", "create_file", "write_to_file"},
		"read_file":      {"read", "view", "read_many_files"},
		"directory_tree": {"ls", "list", "list_dir", "list_directory"},
		"grep":           {"search_file_content", "grep_search", "search_files"},
		"web_fetch":      {"webfetch"},
		"ask_user":       {"askuserquestion", "ask_followup_question"},
		"spawn_agent":    {"subagent"},
	}
	name = strings.ToLower(strings.TrimPrefix(name, tools.FullName(tools.Native, "")))
	for tool, theirs := range ours {
		if slices.Contains(theirs, name) {
			return tools.FullName(tools.Native, tool)
		}
	}
	return ""
}

// noPatterns is the hint for a pattern in place of a tool's name.
const noPatterns = "; give the whole name of a tool, or that of a server for all its tools, not a pattern"

// isPattern reports whether a name is written as a wildcard or a regular expression, so that no tool
// has it.
func isPattern(name string) bool {
	return strings.ContainsAny(name, `*?|()[]{}^$\`) || strings.Contains(name, ".+")
}

// toolArguments returns the arguments of native tools, including tools that only some clients have,
// by tool name with and without the server. The name of the server alone stands for all its tools;
// its value is nil.
func (b *toolbox) toolArguments(cfg *config.Loaded) map[string][]string {
	list := b.builtIn(bareSnapshot(cfg, client{questions: noClient{}}))
	list = append(list, editor.Tools(editor.Options{Navigation: true, Client: editor.Client{
		Diagnostics: func(context.Context, string) ([]tools.Diagnostic, error) { return nil, nil },
		Definition:  func(context.Context, tools.Position) ([]tools.Position, error) { return nil, nil },
		References:  func(context.Context, tools.Position, bool) ([]tools.Position, error) { return nil, nil },
	}})...)
	list = append(list, b.lsp.With(lsp.Settings{}).SymbolsTool(0))
	custom, _ := b.customTools(cfg, list)
	out := map[string][]string{tools.Native: nil}
	for _, t := range append(list, custom...) {
		spec := t.Spec()
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		arguments := []string{}
		if json.Unmarshal(spec.Schema, &schema) == nil {
			arguments = slices.AppendSeq(arguments, maps.Keys(schema.Properties))
		}
		slices.Sort(arguments)
		out[spec.Name], out[spec.FullName()] = arguments, arguments
	}
	return out
}

// noClient is a client that never gets requests.
type noClient struct{}

// Ask implements ask.Client.
func (noClient) Ask(context.Context, ask.Question) (ask.Answer, error) { return ask.Answer{}, nil }

// isMCPName reports whether a name is that of an MCP server or of one of its tools.
func isMCPName(cfg *config.Config, name string) bool {
	for server := range cfg.MCPServers {
		if name == server || strings.HasPrefix(name, server+"__") || strings.HasPrefix(name, tools.FullName(server, "")) {
			return true
		}
	}
	return false
}

// sameForm returns the names that have the same form as name: with or without a server.
func sameForm(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.Contains(n, "__") != strings.Contains(name, "__") })
}
