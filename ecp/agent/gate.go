package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/tools"
)

// gate wraps all tools. It leaves out tools that the configuration of initialize excludes, and checks
// the budget whenever a call is about to run, including the calls of subagents.
type gate struct {
	mu        sync.Mutex // guards the fields below
	config    ecp.Config
	toolNames []string // names of all tools
	run       *run     // the turn whose budget applies; nil: no step is running
}

func (g *gate) configure(cfg ecp.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config, g.run = cfg, nil
}

// setRun sets the run whose budget applies from now on.
func (g *gate) setRun(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run = r
}

// currentRun returns the running turn and the budgets.
func (g *gate) currentRun() (*run, ecp.Budgets) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.run, g.config.Budgets
}

// offers reports whether the configuration allows offering a tool to models.
func (g *gate) offers(spec tools.Spec) bool {
	names := []string{spec.FullName(), spec.Written(), shortName(spec.Server, spec.Name)}
	named := func(list []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range names {
		if !slices.Contains(g.toolNames, n) {
			g.toolNames = append(g.toolNames, n)
		}
	}
	rules := g.config.Tools
	return !named(rules.Deny) && (len(rules.Allow) == 0 || named(rules.Allow))
}

// unknownNames lists the names in the rules that match no tool so far. The name of a tool is among them
// if its MCP server is not running. step has already refused names in deny that are certainly wrong.
func (g *gate) unknownNames() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range slices.Concat(g.config.Tools.Allow, g.config.Tools.Deny) {
		if !slices.Contains(g.toolNames, n) && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// guard wraps a tool in the gate (Host.Guard).
func (a *Agent) guard(t tools.Tool) (tools.Tool, bool) {
	if !a.gate.offers(t.Spec()) {
		return nil, false
	}
	return guardedTool{t, &a.gate}, true
}

type guardedTool struct {
	tools.Tool
	gate *gate
}

// Run implements tools.Tool.
func (t guardedTool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	r, budgets := t.gate.currentRun()
	if r != nil && !r.admitCall(ctx, call, budgets) {
		// The turn is about to be stopped, which ends the call.
		<-ctx.Done()
		return tools.Result{}, context.Cause(ctx)
	}
	return t.Tool.Run(ctx, call, out)
}
