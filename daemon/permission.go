package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

// Explanation says what would become of a command.
type Explanation struct {
	Verdict  tools.Verdict
	Sandbox  *event.Sandbox    // that it runs in without a question; nil: none, or it does not
	Commands []cmdline.Command // that it runs, as far as they are known
	Writes   []string          // files that redirections write, as written
	// Unparsed says why other commands may run that are not listed; empty if none can.
	Unparsed string
	// Text is what runs unless the user approves the call by hand; empty if there is no such
	// text. NoText says why.
	Text, NoText string
	Files        permission.Files // that the command names
}

// CommandQuestion is a question about a command.
type CommandQuestion struct {
	Command string
	Agent   string // empty: the default one
	Unasked string // instead of toolCall.unasked; empty: as configured
}

// ExplainCommand judges a command as if an agent called shell_command with it in the
// first workspace folder.
func (d *Daemon) ExplainCommand(ctx context.Context, q CommandQuestion) (Explanation, error) {
	agent := q.Agent
	cfg := d.Config()
	if agent == "" {
		agent = cfg.DefaultAgent
	}
	if _, ok := cfg.Agents[agent]; !ok {
		return Explanation{}, fmt.Errorf("there is no agent %q%s", agent, suggest.DidYouMean(agent, slices.Sorted(maps.Keys(cfg.Agents))))
	}
	tool, ok := d.Tools().Lookup(tools.FullName(tools.Native, "shell_command"))
	if !ok {
		return Explanation{}, errors.New("there is no tool shell_command")
	}
	args, err := json.Marshal(map[string]string{"command": q.Command})
	if err != nil {
		return Explanation{}, err
	}
	call := tools.Call{Agent: agent, Roots: d.workspace.Load().Roots(), Arguments: args}
	plan, err := tool.Plan(ctx, call)
	if err != nil {
		return Explanation{}, err
	}
	policy := d.policy.Load()
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
		}
	}
	return out, nil
}

// Remembered lists what the user chose to remember beyond a session.
func (d *Daemon) Remembered() ([]permission.Remembered, error) { return d.memory.Kept() }

// Forget drops what is remembered under a key. It reports whether it was.
func (d *Daemon) Forget(key string) (bool, error) { return d.memory.Forget(key) }
