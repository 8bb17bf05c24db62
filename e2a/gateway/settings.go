package gateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
)

// configGet says what a session can be set to, and what it is. Without a session it says so
// of the next new one.
func (a *answer) configGet(ctx context.Context) error {
	var meta chat.Meta
	result := map[string]any{}
	if a.sessionID() != "" {
		session, err := a.known(ctx)
		if err != nil {
			return err
		}
		meta, result = session.Meta(), sessionInfo(session)
	}
	maps.Copy(result, a.g.choices(meta))
	return a.complete(result)
}

// choices is what a chat uses, its defaults included, and what else it could.
func (g *Gateway) choices(meta chat.Meta) map[string]any {
	g.host.Extensions() // which may define agents
	cfg, models := g.host.Config(), g.host.ModelChoice()
	name := cfg.AgentOrDefault(meta.Agent)
	agents := []any{}
	for _, n := range g.Agents() {
		agents = append(agents, map[string]any{"id": n, "description": cfg.Agents[n].Description})
	}
	model := cmp.Or(meta.Model, cfg.Agents[name].DefaultModel, models.Default)
	variants, ok := g.host.Variants(model)
	if !ok {
		variants = nil
	}
	return map[string]any{
		"agent": name, "agents": agents, "model": model, "models": list(models.IDs),
		"variant": cmp.Or(meta.Variant, cfg.Agents[name].Variant), "variants": list(variants), "trust": meta.Trust,
	}
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// commandList lists the slash commands that a prompt may begin with.
func (a *answer) commandList() error {
	commands := []any{}
	for _, c := range a.g.host.Commands() {
		args := []any{}
		for _, arg := range c.Arguments {
			args = append(args, map[string]any{"name": arg.Name, "description": arg.Description, "required": arg.Required})
		}
		commands = append(commands, map[string]any{"name": c.Name, "description": c.Description, "arguments": args, "type": c.Type})
	}
	return a.complete(map[string]any{"commands": commands})
}

// configSet changes what the next prompts of a session use.
func (a *answer) configSet(ctx context.Context) error {
	session, err := a.known(ctx)
	if err != nil {
		return err
	}
	change, err := a.settings(ctx)
	if err != nil {
		return err
	}
	if _, err := session.Change(change).Wait(ctx); err != nil {
		return err
	}
	return a.complete(sessionInfo(session))
}

// settings reads model, agent, variant and trust of the params.
func (a *answer) settings(ctx context.Context) (func(*chat.Meta), error) {
	model, hasModel := a.text("model")
	if hasModel {
		id, err := a.g.host.CheckModel(ctx, model)
		if err != nil {
			return nil, fail(codeBadParams, "params.model: %v", err)
		}
		model = id
	}
	agent, hasAgent := a.text("agent")
	if hasAgent {
		if err := a.g.checkAgent(agent); err != nil {
			return nil, err
		}
	}
	variant, hasVariant := a.envelope.Params["variant"].(string)
	trust, hasTrust := a.envelope.Params["trust"].(bool)
	return func(m *chat.Meta) {
		if hasModel {
			m.Model = model
		}
		if hasAgent {
			m.Agent = agent
		}
		if hasVariant {
			m.Variant = variant
		}
		if hasTrust {
			m.Trust = trust
		}
	}, nil
}

func (g *Gateway) checkAgent(name string) error {
	g.host.Extensions() // which may define it
	if found, ok := g.host.Config().Agents[name]; ok && found.Primary() {
		return nil
	}
	return fail(codeBadParams, "params.agent: there is no agent %q; there are %s", name, strings.Join(g.Agents(), ", "))
}

// Agents lists the agents that can be chosen, sorted.
func (g *Gateway) Agents() []string {
	var names []string
	for name, agent := range g.host.Config().Agents {
		if agent.Primary() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
