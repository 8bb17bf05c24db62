package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/tools"
)

// gate controls all tools. It leaves out tools that initialize did not offer, and lets no call
// exceed the budget, including the calls of subagents. It checks each call when the call is about
// to run, so no call can slip through.
type gate struct {
	mu     sync.Mutex // guards the fields below
	config ecp.Config
	known  []string // names of all tools
	run    *run     // the turn whose calls run; nil: the calls belong to no step
}

func (g *gate) configure(cfg ecp.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config, g.run = cfg, nil
}

// admit sets the run whose budget counts from now on.
func (g *gate) admit(r *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run = r
}

// current returns the running turn and the budgets.
func (g *gate) current() (*run, ecp.Budgets) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.run, g.config.Budgets
}

// offers reports whether models may have a tool.
func (g *gate) offers(spec tools.Spec) bool {
	names := []string{spec.FullName(), spec.Written(), shortName(spec.Server, spec.Name)}
	named := func(list []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range names {
		if !slices.Contains(g.known, n) {
			g.known = append(g.known, n)
		}
	}
	rules := g.config.Tools
	return !named(rules.Deny) && (len(rules.Allow) == 0 || named(rules.Allow))
}

// unknown lists names in the rules that match no tool.
func (g *gate) unknown() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range slices.Concat(g.config.Tools.Allow, g.config.Tools.Deny) {
		if !slices.Contains(g.known, n) && !slices.Contains(names, n) {
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
	return guarded{t, &a.gate}, true
}

type guarded struct {
	tools.Tool
	gate *gate
}

// Run implements tools.Tool.
func (t guarded) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	r, budgets := t.gate.current()
	if r != nil && !r.pass(ctx, call, budgets) {
		// The turn is about to be stopped, and that ends the call too.
		<-ctx.Done()
		return tools.Result{}, context.Cause(ctx)
	}
	return t.Tool.Run(ctx, call, out)
}
