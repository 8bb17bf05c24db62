package daemon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// CheckAgent returns why users cannot choose an agent; "" is the default agent.
func (d *Daemon) CheckAgent(name string) error {
	d.Extensions() // which may define it
	return CheckAgent(d.Config(), name)
}

// CheckAgent returns why users cannot choose an agent by that name; "" is the default agent.
func CheckAgent(cfg *config.Loaded, name string) error {
	a, known := cfg.Agents[name]
	switch {
	case name == "" || known && a.Primary() || cfg.AgentOrDefault(name) == "code" && (name == "agent" || name == "build"):
		return nil
	case known:
		return fmt.Errorf("the agent %q is a subagent: other agents start it; choose one of: %s", name, strings.Join(primaryAgents(cfg.Config), ", "))
	}
	if f, refused := cfg.RefusedAgent(name); refused {
		return fmt.Errorf("the agent %q cannot be used: %s: %s", name, f.Place(), f.Message)
	}
	hint := suggest.DidYouMean(name, primaryAgents(cfg.Config))
	if hint == "" {
		hint = "; there are: " + strings.Join(primaryAgents(cfg.Config), ", ")
	}
	return fmt.Errorf("there is no agent %q%s", name, hint)
}

// primaryAgents lists the agents that users can choose.
func primaryAgents(cfg *config.Config) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		if cfg.Agents[name].Primary() {
			out = append(out, name)
		}
	}
	return out
}
