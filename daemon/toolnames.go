package daemon

import (
	"context"
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

// badToolNames names the tools in approval rules and in disabledTools that do not exist: a
// rule that denies a misspelled tool denies nothing. The tools of an MCP server are known
// when it runs only, so that any name behind the server's is accepted.
func (d *Daemon) badToolNames(cfg *config.Loaded) []config.Problem {
	names := d.toolNames(cfg.Config)
	var out []config.Problem
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
				check(append(slices.Clone(at), "toolCall", "approval", key, name), name, slices.Contains(names, name) || servedBy(cfg.Config, name))
			}
		}
	}
	lists(nil, cfg.DisabledTools, cfg.ToolCall.Approval)
	for _, agent := range slices.Sorted(maps.Keys(cfg.Agents)) {
		lists([]string{"agent", agent}, cfg.Agents[agent].DisabledTools, cfg.Agents[agent].ToolCall.Approval)
	}
	return out
}

// toolNames lists what rules can call native tools, also those that only some clients have:
// with and without the name of their server, which is one of the names too.
func (d *Daemon) toolNames(cfg *config.Config) []string {
	list := d.builtIn(cfg, nil, client{questions: nobody{}})
	list = append(list, editor.Tools(editor.Options{Navigation: true, Client: editor.Client{
		Diagnostics: func(context.Context, string) ([]editor.Diagnostic, error) { return nil, nil },
		Definition:  func(context.Context, editor.Position) ([]editor.Position, error) { return nil, nil },
		References:  func(context.Context, editor.Position, bool) ([]editor.Position, error) { return nil, nil },
	}})...)
	custom, _ := d.customTools(cfg, list)
	out := []string{tools.Native}
	for _, t := range append(list, custom...) {
		spec := t.Spec()
		out = append(out, spec.Name, spec.FullName())
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
