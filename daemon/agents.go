package daemon

import (
	"slices"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools/agent"
)

// subagentOptions says which agents others can start.
func subagentOptions(cfg *config.Config) agent.Options {
	describe := func(names []string) []agent.Agent {
		var out []agent.Agent
		for _, name := range names {
			out = append(out, agent.Agent{Name: name, Description: cfg.Agents[name].Description})
		}
		return out
	}
	var all []string
	for name, a := range cfg.Agents {
		if a.Subagent() {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return agent.Options{All: describe(all), For: func(by string) []agent.Agent { return describe(cfg.Spawnable(by)) }}
}
