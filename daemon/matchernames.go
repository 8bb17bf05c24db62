package daemon

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
)

// badMatchers returns problems for hook matchers that match no tool: such a hook never runs, even
// if it is meant to stop calls. A regular expression is not reported if there are MCP servers,
// because it may match a tool that is not known yet. The arguments in matchers are checked like those
// in approval rules. arguments returns what toolArguments does.
func badMatchers(cfg *config.Loaded, arguments func() map[string][]string, isMCPName func(name string) bool) []config.Problem {
	names := func() []string { return slices.Sorted(maps.Keys(arguments())) }
	var out []config.Problem
	for _, hook := range slices.Sorted(maps.Keys(cfg.Hooks)) {
		h, path := cfg.Hooks[hook], []string{"hooks", hook, "matcher"}
		if h.Type != "preToolCall" && h.Type != "postToolCall" {
			continue
		}
		missing := func(name string, known []string) {
			if isMCPName(name) && !isPattern(name) {
				return
			}
			hint := toolHint(name, known)
			if isPattern(name) {
				hint = patternHint
			}
			p := cfg.Problem(path, "%s: there is no tool %q, so the hook does not run for it%s", config.KeyPath(path), name, hint)
			if hint == "" && !strings.HasPrefix(name, tools.FullName(tools.Native, "")) { // it may be a tool of a server in another workspace
				p = p.WithoutKey()
			}
			out = append(out, p)
		}
		switch m := h.Matcher.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(m)) {
				if !slices.Contains(names(), name) {
					missing(name, names())
				}
				out = append(out, badSelector(cfg, append(slices.Clone(path), name), m[name], arguments()[name])...)
			}
		case string:
			full := slices.DeleteFunc(slices.Clone(names()), func(n string) bool { return !strings.Contains(n, "__") })
			if regexp.MustCompile(`^[\w|-]+$`).MatchString(m) {
				for _, name := range strings.Split(m, "|") {
					if name != "" && !slices.Contains(full, name) {
						missing(name, full)
					}
				}
			} else if re, err := regexp.Compile(`\A(?:` + m + `)\z`); err == nil && len(cfg.MCPServers) == 0 && m != "" && !slices.ContainsFunc(full, re.MatchString) {
				out = append(out, cfg.Problem(path, "%s: no tool matches the pattern %q, so the hook never runs; it must match a whole name, such as %s", config.KeyPath(path), m, tools.FullName(tools.Native, "shell_command")))
			}
		}
	}
	return out
}

// badSelector returns problems for the value of a tool in a matcher.
func badSelector(cfg *config.Loaded, path []string, selector any, known []string) (out []config.Problem) {
	members, _ := selector.(map[string]any)
	for _, member := range slices.Sorted(maps.Keys(members)) {
		if at := append(slices.Clone(path), member); !strings.EqualFold(member, "argsMatchers") {
			out = append(out, cfg.Problem(at, "unknown key %s; it has no effect%s", config.KeyPath(at), suggest.DidYouMean(member, []string{"argsMatchers"})))
		}
	}
	var rule config.ApprovalRule
	raw, err := json.Marshal(selector)
	if err != nil || json.Unmarshal(raw, &rule) != nil {
		return out // the hook is refused as a whole
	}
	return append(out, badArguments(cfg, path, path[len(path)-1], rule, known)...)
}
