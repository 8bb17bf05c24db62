package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// agentName is the name of the agent in answers to initialize.
const agentName = "eca"

// settings are the checked parameters of initialize.
type settings struct {
	ecp.Config
	root          *workspace.Workspace
	readyTimeLeft time.Duration // how long steps may still wait for plugins and MCP servers
}

// engineOptions are the engine's options for evaluations. They disable titles, because each title
// costs a request to a model.
const engineOptions = `{"chat": {"title": false}}`

// readyTime is how long steps together wait for plugins and MCP servers.
const readyTime = 10 * time.Second

// initialize configures the agent and begins a conversation. Runtimes call it once for each
// scenario, and some never call reset (defect 1 in docs/ecp-defects.md). If it fails, the previous
// settings and conversation remain.
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
		return nil, ecp.Errorf(ecp.CodeInvalidParams, "Invalid params: %s", a.opts.Host.Clean(err.Error()))
	}
	return ecp.InitializeResult{
		Name: agentName, ProtocolVersion: version,
		Capabilities: ecp.Capabilities{
			ecp.CanReportTools: rawJSON(struct{}{}), ecp.CanGiveEvidence: rawJSON(struct{}{}), ecp.CanReportUsage: rawJSON(struct{}{}),
			ecp.CanReset: rawJSON(struct{}{}), ecp.CanKeepMultiTurn: rawJSON(struct{}{}),
			"eca": rawJSON(map[string]any{
				"version": a.opts.Version, "usage": true, "notifications": false, "reset": true,
				"config": []string{"model", "agent", "workspace", "tools", "approval", "budgets"},
			}),
		},
	}, nil
}

// configure applies settings, and deletes the previous conversation.
func (a *Agent) configure(ctx context.Context, cfg ecp.Config) error {
	previous := a.settings
	if cfg.Workspace == "" {
		cfg.Workspace = a.opts.Workspace
	}
	if info, err := os.Stat(cfg.Workspace); err != nil || !info.IsDir() {
		return fmt.Errorf("config.workspace: %s is not a directory, or cannot be read", cfg.Workspace)
	}
	if previous == nil || previous.Workspace != cfg.Workspace {
		a.opts.Host.Configure(json.RawMessage(engineOptions), []string{cfg.Workspace})
	}
	s := &settings{Config: cfg, root: workspace.New(cfg.Workspace), readyTimeLeft: readyTime}
	if err := a.check(ctx, s); err != nil {
		if previous != nil && previous.Workspace != cfg.Workspace {
			a.opts.Host.Configure(json.RawMessage(engineOptions), []string{previous.Workspace})
		}
		return err
	}
	if previous != nil && previous.Workspace == cfg.Workspace {
		s.readyTimeLeft = previous.readyTimeLeft
	}
	if previous == nil {
		a.work.Go(func() { a.opts.Host.Watch(a.ctx, func() {}) })
	}
	a.deleteChat()
	a.settings = s
	a.gate.configure(s.Config)
	a.opts.Host.Guard(a.guard) // again, because the gate now offers other tools
	return nil
}

// check checks that the agent and the model of the settings can be used, and completes the model's id.
func (a *Agent) check(ctx context.Context, s *settings) error {
	if err := a.opts.Host.CheckAgent(s.Agent); err != nil {
		return fmt.Errorf("config.agent: %w", err)
	}
	if s.Model != "" {
		id, err := a.opts.Host.CheckModel(ctx, s.Model)
		if err != nil {
			return fmt.Errorf("config.model: %w", err)
		}
		s.Model = id
	}
	return nil
}

// waitForTools waits for plugins and MCP servers, because a turn does not use tools that become
// available after it started. If a step is stopped while it waits, the next step waits for the
// remaining time.
func (a *Agent) waitForTools(ctx context.Context) {
	if a.settings.readyTimeLeft <= 0 {
		return
	}
	began := a.opts.Now()
	limited, cancel := context.WithTimeout(ctx, a.settings.readyTimeLeft)
	defer cancel()
	a.opts.Host.SyncPlugins(limited)
	a.opts.Host.StartMCPServers(limited) // this includes those of plugins
	a.settings.readyTimeLeft -= a.opts.Now().Sub(began)
	if ctx.Err() == nil {
		a.settings.readyTimeLeft = 0
	}
}

// shortName returns the name of a tool as runtimes see it. Only the tools of MCP servers have a
// prefix.
func shortName(server, name string) string {
	if server == tools.Native || server == "" {
		return name
	}
	return server + "__" + name
}
