package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

// badToolNames names the tools in approval rules and in disabledTools that do not exist, and
// the arguments in rules that a tool does not have: a rule that denies a misspelled tool or
// argument denies nothing. The tools of an MCP server are known only when it runs, so any name
// after the server's is accepted, with any arguments.
func (d *Daemon) badToolNames(cfg *config.Loaded) []config.Problem {
	arguments := d.toolArguments(cfg.Config)
	names := slices.Sorted(maps.Keys(arguments))
	var out []config.Problem
	checkArguments := func(path []string, tool string, rule config.ApprovalRule) {
		origin, ok := cfg.Origin(path...)
		known := arguments[tool]
		if !ok || origin.IsDefault() || known == nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(rule.ArgsMatchers)) {
			if !slices.Contains(known, name) {
				out = append(out, cfg.Problem(append(slices.Clone(path), "argsMatchers", name), "%s: %s has no argument %q, so this has no effect%s",
					config.KeyPath(path), tool, name, suggest.DidYouMean(name, known)))
			}
		}
	}
	check := func(path []string, name string, known bool) {
		origin, ok := cfg.Origin(path...)
		if known || !ok || origin.IsDefault() {
			return
		}
		what := config.KeyPath(path)
		if path[len(path)-1] != name {
			what += ": " + strconv.Quote(name)
		}
		out = append(out, config.Problem{Origin: origin, Cause: fmt.Sprintf("%s: there is no such tool, so this has no effect%s", what, suggest.DidYouMean(name, like(names, name)))})
	}
	lists := func(at []string, disabled []string, a *config.Approval) {
		for _, name := range disabled {
			known := permission.Selects(name, names, len(cfg.MCPServers) > 0) || servedBy(cfg.Config, name)
			check(append(slices.Clone(at), "disabledTools"), name, known)
		}
		if a == nil {
			return
		}
		for key, rules := range map[string]map[string]config.ApprovalRule{"deny": a.Deny, "ask": a.Ask, "allow": a.Allow} {
			for _, name := range slices.Sorted(maps.Keys(rules)) {
				path := append(slices.Clone(at), "toolCall", "approval", key, name)
				check(path, name, slices.Contains(names, name) || servedBy(cfg.Config, name))
				checkArguments(path, name, rules[name])
			}
		}
	}
	lists(nil, cfg.DisabledTools, cfg.ToolCall.Approval)
	for _, agent := range slices.Sorted(maps.Keys(cfg.Agents)) {
		lists([]string{"agent", agent}, cfg.Agents[agent].DisabledTools, cfg.Agents[agent].ToolCall.Approval)
	}
	return out
}

// toolArguments has the arguments of native tools, also of those that only some clients have,
// by what rules can call them: with and without the name of their server. That name alone
// stands for all of them, so its arguments are nil.
func (d *Daemon) toolArguments(cfg *config.Config) map[string][]string {
	list := d.builtIn(cfg, nil, client{questions: nobody{}})
	list = append(list, editor.Tools(editor.Options{Navigation: true, Client: editor.Client{
		Diagnostics: func(context.Context, string) ([]editor.Diagnostic, error) { return nil, nil },
		Definition:  func(context.Context, editor.Position) ([]editor.Position, error) { return nil, nil },
		References:  func(context.Context, editor.Position, bool) ([]editor.Position, error) { return nil, nil },
	}})...)
	custom, _ := d.customTools(cfg, list)
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

// nobody is a client that is never asked.
type nobody struct{}

// Ask implements ask.Client.
func (nobody) Ask(context.Context, ask.Question) (ask.Answer, error) { return ask.Answer{}, nil }

// servedBy says whether a name is that of an MCP server, or of a tool of one.
func servedBy(cfg *config.Config, name string) bool {
	for server := range cfg.MCPServers {
		if name == server || strings.HasPrefix(name, server+"__") || strings.HasPrefix(name, tools.FullName(server, "")) {
			return true
		}
	}
	return false
}

// like keeps the names that are written like one: with or without their server.
func like(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.Contains(n, "__") != strings.Contains(name, "__") })
}
