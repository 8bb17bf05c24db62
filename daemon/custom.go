package daemon

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/shell"
)

// customTools makes the tools that the user configured. native are the others: a tool that
// took the name of one would take its permissions too. Problems are by name.
func (d *Daemon) customTools(cfg *config.Config, native []tools.Tool) (list []tools.Tool, problems map[string]error) {
	// Tools that are not always there.
	taken := []string{"ask_user", "editor_definition", "editor_diagnostics", "editor_references", "skill", "fetch_rule", "compact_chat"}
	for _, t := range native {
		taken = append(taken, t.Spec().Name)
	}
	problems = map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(cfg.CustomTools)) {
		c := cfg.CustomTools[name]
		options := d.shellOptions(cfg)
		options.Sandbox = func(call tools.Call) sandbox.Policy { return d.customBounds(d.Config(), name, call) }
		options.Environ = func(call tools.Call) []string {
			cfg := d.Config()
			by := d.customAuthor(cfg, name, call)
			return d.environment(cfg.Config, by, d.levelFor(cfg.Config, call.Roots, by).Level)
		}
		tool, err := shell.CustomTool(options, shell.Custom{Name: name, Description: c.Description, Command: c.Command, Schema: c.Schema})
		if slices.Contains(taken, name) {
			err = fmt.Errorf("a tool of eca has this name")
		}
		if err != nil {
			problems[name] = err
			continue
		}
		list = append(list, tool)
	}
	return list, problems
}

// badCustomTools names the custom tools that can not be used.
func (d *Daemon) badCustomTools(cfg *config.Loaded) []config.Problem {
	if len(cfg.CustomTools) == 0 {
		return nil
	}
	_, problems := d.customTools(cfg.Config, d.builtIn(cfg.Config, nil, client{}))
	var out []config.Problem
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		origin, _ := cfg.Origin("customTools", name)
		out = append(out, config.Problem{Origin: origin, Cause: fmt.Sprintf("customTools.%s is left out: %v", name, problems[name])})
	}
	return out
}
