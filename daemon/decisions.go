package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

// decisions predicts the decision on calls that have not been made.
type decisions struct{ *toolbox }

// Explanation is the decision on a command, and why.
type Explanation struct {
	Verdict  tools.Verdict
	Sandbox  *event.Sandbox    // in which the command runs without a question; nil: it needs a question, or there is no sandbox
	Commands []cmdline.Command // that the line runs, if they are known
	Writes   []string          // files that redirections write, as written
	// Unparsed is the reason why commands that are not listed may run; empty if that is impossible.
	Unparsed string
	// Text is the canonical text that runs unless the user approves the call; empty if it does not
	// exist. NoText is the reason.
	Text, NoText string
	Files        permission.Files // that the command names
}

// CommandQuestion is a question about a command.
type CommandQuestion struct {
	Command string
	Agent   string // empty: the default agent
	Unasked string // replaces toolCall.unasked; empty: as configured
}

// ExplainCommand judges a command as if an agent called shell_command with it in the
// first workspace folder.
func (e *decisions) ExplainCommand(ctx context.Context, q CommandQuestion) (Explanation, error) {
	agent := q.Agent
	s := e.current()
	cfg := s.config
	if agent == "" {
		agent = cfg.DefaultAgent
	}
	if _, ok := cfg.Agents[agent]; !ok {
		if f, refused := cfg.RefusedAgent(agent); refused {
			return Explanation{}, fmt.Errorf("the agent %q cannot be used: %s: %s", agent, f.Place(), f.Message)
		}
		names := slices.Sorted(maps.Keys(cfg.Agents))
		return Explanation{}, fmt.Errorf("there is no agent %q%s (agents: %s)", agent, suggest.DidYouMean(agent, names), strings.Join(names, ", "))
	}
	tool, ok := e.toolsOf(s).Lookup(tools.FullName(tools.Native, "shell_command"))
	if !ok {
		return Explanation{}, errors.New("there is no tool shell_command")
	}
	args, err := json.Marshal(map[string]string{"command": q.Command})
	if err != nil {
		return Explanation{}, err
	}
	call := tools.Call{Agent: agent, Roots: s.roots(), Arguments: args}
	plan, err := tool.Plan(ctx, call)
	if err != nil {
		return Explanation{}, err
	}
	policy := s.policy
	if q.Unasked != "" {
		policy = policy.WithUnasked(q.Unasked)
	}
	out := Explanation{Verdict: policy.Judge(call, tool.Spec(), plan)}
	if d := out.Verdict.Details; d != nil && d.ShellCommand != nil {
		out.Sandbox = d.ShellCommand.Sandbox
	}
	if plan.Command != nil {
		program := plan.Command.Program
		out.Commands, out.Writes, out.Unparsed = program.Commands, program.Writes, program.Unresolved
		out.Files = policy.Files(plan.Command)
		out.NoText = "the command is for another shell, or denied"
		if printed := out.Verdict.Printed; printed != nil {
			out.Text, out.NoText = printed.Text, "the command has no canonical form: "+printed.Why
			if out.Verdict.Decision == tools.Allow && printed.Text != "" { // the canonical text runs, not the original
				out.Unparsed = printed.Program.Unresolved
			}
		}
	}
	return out, nil
}

// Remembered lists what the user chose to remember beyond a session.
func (e *decisions) Remembered() ([]permission.Remembered, error) { return e.memory.Kept() }

// Forget removes the approvals that are remembered under a key. It reports whether there were any.
func (e *decisions) Forget(key string) (bool, error) { return e.memory.Forget(key) }

// SandboxUnavailable returns why commands do not run in the sandbox; empty if they do.
func (e *decisions) SandboxUnavailable() string {
	return e.bounds.Unavailable(e.current().config.Config)
}

// NotContained returns why an agent's commands still need approval although a command-line flag
// makes them run in the workspace sandbox, or "" if they do not need approval.
func (e *decisions) NotContained(agent string) string {
	s := e.current()
	return e.bounds.NotContained(s.config, agent, s.untrusted())
}

// ClearSandboxCaches removes the private caches of all workspaces and returns their folder.
func (e *decisions) ClearSandboxCaches() (string, error) { return e.bounds.ClearSandboxCaches() }

// Unattended judges a call that is made outside a chat, where no user can be asked. The caller
// must treat a verdict that requires a question as a denial. If there are hooks that run before
// calls, every call is denied, because hooks run only in chats.
func (e *decisions) Unattended(call tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	s := e.current()
	switch {
	case s.hooks.Any(hooks.PreToolCall):
		return tools.Verdict{Decision: tools.Deny, Rule: "hooks", Reason: "there are hooks that check tool calls, and hooks run only in chats"}
	case s.policy.HiddenBy(call.Agent, spec) != "":
		return tools.Verdict{Decision: tools.Deny, Reason: "agent " + call.Agent + " does not have the tool"}
	}
	return s.policy.Judge(call, spec, plan)
}

// ToolChoices lists the native tools for an agent.
func (e *decisions) ToolChoices(agent string) []tools.Choice {
	s := e.current()
	var out []tools.Choice
	for _, t := range e.toolsOf(s).All() {
		spec := t.Spec()
		if spec.Server == tools.Native {
			disabled := s.policy.HiddenBy(agent, spec) != ""
			if spec.For != nil {
				_, offered := spec.For(agent)
				disabled = disabled || !offered
			}
			out = append(out, tools.Choice{Spec: spec, Disabled: disabled})
		}
	}
	return out
}
