package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/agent"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/tools/lsp"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

// badToolNames returns problems for tools in approval rules and in disabledTools that do not exist,
// and for arguments in rules that a tool does not have: a rule that denies a misspelled tool or
// argument denies nothing. offered are the tools that MCP servers have listed. For a server that has
// listed none, any tool name and any arguments are accepted. Tools are created only if the user's
// files name some, because that takes longer than the rest of a start.
func (b *toolbox) badToolNames(cfg *config.Loaded, offered []tools.Tool) []config.Problem {
	arguments := sync.OnceValue(func() map[string][]string { return b.toolArguments(cfg, offered) })
	isMCPName := func(name string) bool { return isMCPName(cfg.Config, name, offered) }
	unlisted := slices.ContainsFunc(slices.Collect(maps.Keys(cfg.MCPServers)), func(server string) bool { return !hasListedTools(offered, server) })
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
		hint := toolHint(name, slices.Concat(names(), slices.Sorted(maps.Keys(cfg.MCPServers))))
		switch {
		case path[len(path)-1] == name && isPattern(name):
			hint = patternHint
		case path[len(path)-1] != name && globStar().MatchString(name):
			hint = fmt.Sprintf("; it is a regular expression, not a glob; did you mean %q?", globToRegexp(name))
		}
		p := cfg.Problem(path, "%s: there is no such tool, so this has no effect%s", what, hint)
		mayBeOtherServer := hint == "" && !strings.HasPrefix(name, tools.FullName(tools.Native, "")) // it may be a server of another workspace, or its tool
		if mayBeOtherServer || slices.Contains(path, "allow") {                                      // such a rule restricts nothing
			p = config.Problem{Origin: origin, Cause: p.Cause}
		}
		out = append(out, p)
	}
	checkRules := func(at []string, disabled []string, a *config.Approval) {
		for _, name := range disabled {
			check(append(slices.Clone(at), "disabledTools"), name, func(name string) bool {
				return permission.Selects(name, names(), unlisted && !globStar().MatchString(name)) || isMCPName(name) && !isPattern(name)
			})
		}
		if a == nil {
			return
		}
		for key, rules := range map[string]map[string]config.ApprovalRule{"deny": a.Deny, "ask": a.Ask, "allow": a.Allow} {
			for _, name := range slices.Sorted(maps.Keys(rules)) {
				path := append(slices.Clone(at), "toolCall", "approval", key, name)
				check(path, name, func(name string) bool {
					return slices.Contains(names(), name) || isMCPName(name) && !isPattern(name)
				})
				checkArguments(path, name, rules[name])
			}
		}
	}
	checkDescriptions := func(at []string, texts map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			check(append(slices.Clone(at), "prompts", "tools", name), name, func(name string) bool {
				return slices.Contains(names(), name) && strings.Contains(name, "__") || isMCPName(name)
			})
		}
	}
	checkDescriptions(nil, cfg.Prompts.Tools)
	checkRules(nil, cfg.DisabledTools, cfg.ToolCall.Approval)
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		checkDescriptions([]string{"agent", name}, cfg.Agents[name].Prompts.Tools)
		checkRules([]string{"agent", name}, cfg.Agents[name].DisabledTools, cfg.Agents[name].ToolCall.Approval)
	}
	return append(out, badMatchers(cfg, arguments, isMCPName)...)
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
		default:
			out = append(out, badPatterns(cfg, path, name, rule.ArgsMatchers[name])...)
		}
	}
	return out
}

var (
	commandGlob = pattern.Lazy(`(?:^|[^\\])[A-Za-z0-9/ ]\*(?: |$)`)
	lastStar    = pattern.Lazy(`\*( |$)`)
	claudeRule  = pattern.Lazy(`^(?:(?:Bash|Shell)\()?([^():]*[^():*\s])(?::\*\)?|[ *]*\))$`)
	// onlyWords matches a pattern that matches words, and at most one more character.
	onlyWords = pattern.Lazy(`^\^?([\w./ -]*\w) ?(?:\$|\\b|\\s|\?|\.)*$`)
)

// badPatterns returns problems for patterns of an argument that are written as globs, and for commands
// that are denied only without arguments. path leads to the rule, or to the tool in a hook's matcher.
func badPatterns(cfg *config.Loaded, path []string, argument string, patterns []string) (out []config.Problem) {
	allows := slices.Contains(path, "allow")
	for i, text := range patterns {
		at, what := append(slices.Clone(path), "argsMatchers", argument, strconv.Itoa(i)), config.KeyPath(path)
		switch m := claudeRule().FindStringSubmatch(text); {
		case argument == "command" && m != nil:
			p := cfg.Problem(at, "%s: %q is a rule of Claude Code, not a regular expression; did you mean %q?", what, text, m[1]+"( .*)?")
			if allows { // such a rule restricts nothing
				p = p.WithoutKey()
			}
			out = append(out, p)
		case strings.HasPrefix(text, "*"): // invalid, and reported with the rule
		case commandGlob().MatchString(text):
			p := cfg.Problem(at, "%s: %q is a regular expression, not a glob: its * repeats only the character before it; did you mean %q?", what, text, lastStar().ReplaceAllString(text, ".*$1"))
			if allows { // such a rule restricts nothing
				p = p.WithoutKey()
			}
			out = append(out, p)
		case argument == "command" && !allows && onlyWords().MatchString(text):
			words := onlyWords().FindStringSubmatch(text)[1]
			p := cfg.Problem(at, "%s: the pattern %q does not match %q with arguments; to match those too, write %q", what, text, words, words+"( .*)?")
			out = append(out, p.WithoutKey()) // it may be intended
		}
	}
	return out
}

// everyTool returns eca's own tools, including those that exist only with some clients, language
// servers, agents, skills or rules. Use only their names and arguments; they cannot be called.
func (b *toolbox) everyTool(cfg *config.Loaded) []tools.Tool {
	s := bareSnapshot(cfg, client{questions: noClient{}})
	s.extensions = &extensions.Set{Skills: []extensions.Skill{{}}, Rules: []extensions.Rule{{Paths: []string{"*"}}}}
	list := append(b.builtIn(s), editor.Tools(editor.Options{Navigation: true, Client: editor.Client{
		Diagnostics: func(context.Context, string) ([]tools.Diagnostic, error) { return nil, nil },
		Definition:  func(context.Context, tools.Position) ([]tools.Position, error) { return nil, nil },
		References:  func(context.Context, tools.Position, bool) ([]tools.Position, error) { return nil, nil },
	}})...)
	list = append(list, agent.Tools(agent.Options{All: []agent.Agent{{}}})...)
	return append(list, b.lsp.With(lsp.Settings{}).SymbolsTool(0))
}

// toolArguments returns the arguments of eca's own, custom and offered tools, by full name; of eca's
// own and custom tools also by the name without the server. The name of eca's own server is in the map
// too, with the value nil.
func (b *toolbox) toolArguments(cfg *config.Loaded, offered []tools.Tool) map[string][]string {
	list := b.everyTool(cfg)
	custom, _ := b.customTools(cfg)
	out := map[string][]string{tools.Native: nil}
	for _, t := range offered {
		out[t.Spec().FullName()], out[t.Spec().Written()] = argumentsOf(t), argumentsOf(t)
	}
	for _, t := range append(list, custom...) {
		arguments := append([]string{}, argumentsOf(t)...)
		out[t.Spec().Name], out[t.Spec().FullName()] = arguments, arguments
	}
	return out
}

// argumentsOf lists the arguments that a tool declares, sorted; nil if it declares no argument.
func argumentsOf(t tools.Tool) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Spec().Schema, &schema) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

// BadServerTools returns problems like those of badToolNames for tools of the MCP servers that run
// now, except those that are already among the configuration's.
func (d *Daemon) BadServerTools() []config.Problem {
	cfg, offered := d.Config(), d.servers().Tools()
	if len(offered) == 0 {
		return nil
	}
	return slices.DeleteFunc(d.badToolNames(cfg, offered), func(p config.Problem) bool { return slices.Contains(cfg.Problems, p) })
}

// UnknownTool returns a message if no tool has the given name, with a suggestion; otherwise "". A name
// that begins with an MCP server that has not listed its tools is accepted.
func (d *Daemon) UnknownTool(name string) string {
	cfg, offered := d.Config(), d.servers().Tools()
	known := d.toolArguments(cfg, offered)
	delete(known, tools.Native) // the name of a server is not that of a tool
	if _, ok := known[name]; ok || isMCPName(cfg.Config, name, offered) && strings.Contains(name, "__") && !isPattern(name) {
		return ""
	}
	return fmt.Sprintf("there is no tool %q%s", name, toolHint(name, slices.Sorted(maps.Keys(known))))
}

// noClient is a client that never gets requests.
type noClient struct{}

// Ask implements ask.Client.
func (noClient) Ask(context.Context, ask.Question) (ask.Answer, error) { return ask.Answer{}, nil }

// hasListedTools reports whether an MCP server has tools among the offered ones.
func hasListedTools(offered []tools.Tool, server string) bool {
	return slices.ContainsFunc(offered, func(t tools.Tool) bool { return t.Spec().Server == server })
}

// isMCPName reports whether a name is that of an MCP server, or may be that of a tool of a server that
// has no offered tools.
func isMCPName(cfg *config.Config, name string, offered []tools.Tool) bool {
	for server := range cfg.MCPServers {
		if name == server {
			return true
		}
		if !hasListedTools(offered, server) && (strings.HasPrefix(name, server+"__") || strings.HasPrefix(name, tools.FullName(server, ""))) {
			return true
		}
	}
	return false
}
