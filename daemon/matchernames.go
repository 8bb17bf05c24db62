package daemon

import (
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
// because it may match a tool that is not known yet. names returns the names of the native tools,
// with and without their server.
func badMatchers(cfg *config.Loaded, names func() []string) []config.Problem {
	var out []config.Problem
	for _, hook := range slices.Sorted(maps.Keys(cfg.Hooks)) {
		h, path := cfg.Hooks[hook], []string{"hooks", hook, "matcher"}
		if h.Type != "preToolCall" && h.Type != "postToolCall" {
			continue
		}
		missing := func(name string, known []string) {
			if isMCPName(cfg.Config, name) {
				return
			}
			hint := similarTool(name, known)
			p := cfg.Problem(path, "%s: there is no tool %q, so the hook does not run for it%s", config.KeyPath(path), name, hint)
			if hint == "" && !strings.HasPrefix(name, tools.FullName(tools.Native, "")) { // it may be a tool of a server in another workspace
				p = config.Problem{Origin: p.Origin, Cause: p.Cause}
			}
			out = append(out, p)
		}
		switch m := h.Matcher.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(m)) {
				if !slices.Contains(names(), name) {
					missing(name, names())
				}
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

// similarTool suggests the tool that a name probably means, or returns "".
func similarTool(name string, known []string) string {
	if full := tools.FullName(tools.Native, name); slices.Contains(known, full) && !slices.Contains(known, name) {
		return "; did you mean " + full + "?"
	}
	return suggest.DidYouMean(name, sameForm(known, name))
}
