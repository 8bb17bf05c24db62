// Package agent has the native tool spawn_agent, with which a model delegates a task to another
// agent (eca-features.md, sections 12 and 17).
//
// The package defines the available agents and the format of requests. It does not manage a
// subagent's chat, permissions or end: the engine does, and calls reach it through tools.Subagents.
package agent

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed spawn_agent.md
var doc string

// Agent is an agent that can be started.
type Agent struct {
	Name        string
	Description string
}

// Options are the available agents.
type Options struct {
	// All lists every agent that some agent can start.
	All []Agent
	// For lists the agents that the given agent can start.
	For func(agent string) []Agent
}

type args struct {
	Agent      string `json:"agent" jsonschema:"The name of the agent."`
	Task       string `json:"task" jsonschema:"The task, with everything that the agent needs to know."`
	Activity   string `json:"activity,omitempty" jsonschema:"The task in a few words, shown to the user."`
	Model      string `json:"model,omitempty" jsonschema:"A model to use instead of the agent's own. Only if the user asked for it."`
	Variant    string `json:"variant,omitempty" jsonschema:"A variant of the model. Only if the user asked for it."`
	Background bool   `json:"background,omitempty" jsonschema:"Return immediately; the result follows later."`
	Resume     string `json:"resume,omitempty" jsonschema:"The id of a subagent's chat that should continue with this task; empty starts a new one."`
}

// maxActivity is how much of a task is shown to the user, in runes.
const maxActivity = 40

// Tools returns the tools of this package; empty if there are no agents to start.
func Tools(o Options) []tools.Tool {
	if len(o.All) == 0 {
		return nil
	}
	return []tools.Tool{tools.Definition[args]{
		Name: "spawn_agent", Description: describe(o.All), Preparing: "Preparing subagent", Progress: "Waiting subagent",
		// Only the subagent's own calls change anything, and the rules for this agent apply to them
		// as well.
		ReadOnly: true, PrimaryOnly: true,
		For: func(agent string) (string, bool) {
			list := o.For(agent)
			return describe(list), len(list) > 0
		},
		Plan: func(_ context.Context, call tools.Call, a args) (tools.Plan, error) {
			if call.Subagents == nil {
				return tools.Plan{}, errors.New("no subagents can be started here")
			}
			sub, err := call.Subagents.Plan(tools.SubagentRequest(a))
			if err != nil {
				return tools.Plan{}, err
			}
			return tools.Plan{Summary: summary(a), Details: &event.Details{Subagent: &sub}}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a args, _ tools.Sink) (tools.Result, error) {
			if call.Subagents == nil {
				return tools.Result{}, errors.New("no subagents can be started here")
			}
			return call.Subagents.Run(ctx, tools.SubagentRequest(a))
		},
	}.Build()}
}

// describe returns the tool's description with a list of agents.
func describe(list []Agent) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(doc) + "\n\nAgents:\n")
	for _, a := range list {
		fmt.Fprintf(&b, "- %s", a.Name)
		if text := strings.Join(strings.Fields(a.Description), " "); text != "" {
			b.WriteString(": " + text)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

// summary returns a short line for the user (eca-protocol.md 7.5).
func summary(a args) string {
	text := cmp.Or(strings.Join(strings.Fields(a.Activity), " "), strings.Join(strings.Fields(a.Task), " "))
	return a.Agent + ": " + shorten.Text(text, maxActivity)
}
