package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// agentName is the name of the agent for runtimes.
const agentName = "eca"

// settings are the checked parameters of initialize.
type settings struct {
	ecp.Config
	root     *workspace.Workspace
	patience time.Duration // remaining time that steps wait for plugins and MCP servers
}

// ownOptions are the engine's options for evaluations: no titles, because each would cost a request
// and no user reads them.
const ownOptions = `{"chat": {"title": false}}`

// readyTime is the total time that steps wait for plugins and MCP servers.
const readyTime = 10 * time.Second

// initialize configures the agent and begins a conversation. Runtimes call it once for each
// scenario, and some never call reset (defect 1 of the contract). If it fails, nothing has changed.
func (a *Agent) initialize(ctx context.Context, params json.RawMessage, _ time.Time) (any, *ecp.Error) {
	version, refused := ecp.NegotiateParams(params)
	if refused != nil {
		return nil, refused
	}
	cfg, err := ecp.ParseConfig(params)
	if err != nil {
		return nil, ecp.Errorf(ecp.CodeInvalidParams, "Invalid params: %v", err)
	}
	if err := a.configure(ctx, cfg); err != nil {
		return nil, ecp.Errorf(ecp.CodeInvalidParams, "Invalid params: %s", a.host.Clean(err.Error()))
	}
	return ecp.InitializeResult{
		Name: agentName, ProtocolVersion: version,
		Capabilities: ecp.Capabilities{
			ecp.CanReportTools: encoded(struct{}{}), ecp.CanGiveEvidence: encoded(struct{}{}), ecp.CanReportUsage: encoded(struct{}{}),
			ecp.CanReset: encoded(struct{}{}), ecp.CanKeepMultiTurn: encoded(struct{}{}),
			"eca": encoded(map[string]any{
				"version": a.version, "usage": true, "notifications": false, "reset": true,
				"config": []string{"model", "agent", "workspace", "tools", "approval", "budgets"},
			}),
		},
	}, nil
}

// configure puts settings into effect, and ends the previous conversation.
func (a *Agent) configure(ctx context.Context, cfg ecp.Config) error {
	before := a.settings
	if cfg.Workspace == "" {
		cfg.Workspace = a.workspace
	}
	if info, err := os.Stat(cfg.Workspace); err != nil || !info.IsDir() {
		return fmt.Errorf("config.workspace: %s is not a directory, or cannot be read", cfg.Workspace)
	}
	if before == nil || before.Workspace != cfg.Workspace {
		a.host.Configure(json.RawMessage(ownOptions), []string{cfg.Workspace})
	}
	s := &settings{Config: cfg, root: workspace.New(cfg.Workspace), patience: readyTime}
	if err := a.check(ctx, s); err != nil {
		if before != nil && before.Workspace != cfg.Workspace {
			a.host.Configure(json.RawMessage(ownOptions), []string{before.Workspace})
		}
		return err
	}
	if before != nil && before.Workspace == cfg.Workspace {
		s.patience = before.patience
	}
	if before == nil {
		a.work.Go(func() { a.host.Watch(a.ctx, func() {}) })
	}
	a.forget()
	a.settings = s
	a.gate.configure(s.Config)
	a.host.Guard(a.guard) // it offers other tools now
	return nil
}

// check checks that the agent and the model of the settings exist.
func (a *Agent) check(ctx context.Context, s *settings) error {
	if s.Agent != "" {
		a.host.Extensions() // they may define the agent
		if found, ok := a.host.Config().Agents[s.Agent]; !ok || !found.Primary() {
			return fmt.Errorf("config.agent: there is no agent %q; there are %s", s.Agent, strings.Join(primary(a.host), ", "))
		}
	}
	if s.Model != "" {
		id, err := a.host.CheckModel(ctx, s.Model)
		if err != nil {
			return fmt.Errorf("config.model: %w", err)
		}
		s.Model = id
	}
	return nil
}

// primary lists the agents that can be chosen.
func primary(host Host) []string {
	var names []string
	for name, agent := range host.Config().Agents {
		if agent.Primary() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// getReady waits for plugins and MCP servers, because a step does not use tools that appear later.
// If a step is stopped meanwhile, the next step waits for the remaining time.
func (a *Agent) getReady(ctx context.Context) {
	if a.settings.patience <= 0 {
		return
	}
	began := a.now()
	limited, cancel := context.WithTimeout(ctx, a.settings.patience)
	defer cancel()
	a.host.SyncPlugins(limited)
	a.host.StartMCPServers(limited) // this includes those of plugins
	a.settings.patience -= a.now().Sub(began)
	if ctx.Err() == nil {
		a.settings.patience = 0
	}
}

// shortName is the name of a tool for runtimes: native tools have no prefix.
func shortName(server, name string) string {
	if server == tools.Native || server == "" {
		return name
	}
	return server + "__" + name
}
