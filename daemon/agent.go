package daemon

import (
	"fmt"
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
	switch { // agent and build are earlier names of code
	case name == "" || known && a.Primary() || cfg.AgentOrDefault(name) == "code" && (name == "agent" || name == "build"):
		return nil
	case known:
		return fmt.Errorf("the agent %q is a subagent: other agents start it; choose one of: %s", name, strings.Join(cfg.PrimaryAgents(), ", "))
	}
	if f, refused := cfg.RefusedAgent(name); refused {
		return fmt.Errorf("the agent %q cannot be used: %s: %s", name, f.Place(), f.Message)
	}
	hint := suggest.DidYouMean(name, cfg.PrimaryAgents())
	if hint == "" {
		hint = "; there are: " + strings.Join(cfg.PrimaryAgents(), ", ")
	}
	return fmt.Errorf("there is no agent %q%s", name, hint)
}
