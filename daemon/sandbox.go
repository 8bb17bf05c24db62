package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/tools/shell"
)

// Words of toolCall.sandbox.
const (
	sandboxOff      = "off"
	sandboxOn       = "on"
	sandboxRequired = "required"
)

// author is what lets something run.
type author int

const (
	byBuiltInRule     author = iota
	byReadsRule              // the built-in rule for commands that only read
	byWorkspaceRule          // the built-in rule for commands that stay in the workspace
	byUserConfig             // the user's own configuration, what the user let eca remember, or auto-approve
	byWorkspaceConfig        // a workspace's file that the user trusts
	byHand                   // the user saw it and approved
)

// bounds returns how a child is bound that somebody's word lets run (docs/sandbox.md).
func (d *Daemon) bounds(cfg *config.Config, roots []string, by author) sandbox.Policy {
	p := d.levelFor(cfg, roots, by)
	if p.Bounds() {
		here := d.isolation()
		p.Isolate, p.OwnProcesses = here.Mounts, here.Processes
	}
	if p.Level == sandbox.Workspace {
		p.Guard = &sandbox.Guard{Roots: roots, Names: permission.ProtectedNames()}
		p.Loopback = p.Isolate && !p.Network && d.isolation().Network
		d.addCaches(cfg, &p, roots, by)
	}
	return p
}

// addCaches lets a child use caches of build tools: the user's if the user approved it, else
// private ones.
func (d *Daemon) addCaches(cfg *config.Config, p *sandbox.Policy, roots []string, by author) {
	if by == byHand || cfg.ToolCall.SandboxCaches == "shared" || len(roots) == 0 {
		p.Write = append(p.Write, sandbox.SharedCaches(d.opts.Getenv, d.opts.CacheDir)...)
		return
	}
	p.Caches = &sandbox.Caches{Dir: d.cacheLayers(), Root: roots[0], Overlay: p.Isolate && d.isolation().Overlay, Getenv: d.opts.Getenv}
	layers := *p.Caches
	if _, trimmed := d.trimmed.LoadOrStore(roots[0], true); !trimmed {
		d.trims.Go(func() {
			if err := layers.Trim(sandbox.LayerLimit); err != nil {
				d.opts.Log.Warn("private caches are not trimmed", "err", err)
			}
		})
	}
}

// cacheLayers is where private caches are: not below the cache folder, which is one of those that
// layers are put over.
func (d *Daemon) cacheLayers() string { return filepath.Join(d.opts.StateDir, "caches") }

// ClearSandboxCaches removes the private caches of all workspaces, and returns where they were.
func (d *Daemon) ClearSandboxCaches() (string, error) {
	return d.cacheLayers(), os.RemoveAll(d.cacheLayers())
}

// levelFor returns what such a child may do, wherever that is held: all that is known without
// looking for protected places and caches, which is done once, when the child starts.
func (d *Daemon) levelFor(cfg *config.Config, roots []string, by author) sandbox.Policy {
	p := sandbox.Policy{Level: sandbox.Workspace, Write: roots[:len(roots):len(roots)]}
	switch cfg.ToolCall.Sandbox {
	case sandboxOff:
		return sandbox.Policy{}
	case sandboxOn, sandboxRequired:
		p.Network, p.Required = cfg.ToolCall.SandboxNetwork.All, cfg.ToolCall.Sandbox == sandboxRequired
		if by == byWorkspaceRule {
			p.Network, p.Required = false, true
		}
		if by == byReadsRule {
			return sandbox.Policy{Level: sandbox.ReadOnly, Write: roots, Required: p.Required}
		}
		return p
	}
	switch by {
	case byHand:
		return sandbox.Policy{}
	case byBuiltInRule, byReadsRule:
		return sandbox.Policy{Level: sandbox.ReadOnly, Write: roots}
	case byUserConfig:
		p.Network = true
	case byWorkspaceRule:
		p.Required = true // nobody approved it outside of its bounds
	case byWorkspaceConfig:
	}
	return p
}

// callBounds returns how what a call runs is bound.
func (d *Daemon) callBounds(cfg *config.Loaded, call tools.Call) sandbox.Policy {
	p := d.bounds(cfg.Config, call.Roots, callAuthor(cfg, call))
	if p.Level == sandbox.ReadOnly { // the results of earlier calls are read like files of the workspace
		p.Read = sandbox.Reads(append(call.Roots[:len(call.Roots):len(call.Roots)], d.outputs.Dir(), d.jobs.Dir()), d.opts.Getenv)
	}
	return p
}

// needsUndo says whether a rollback must be able to undo what a call does to files: it runs
// a command that nobody approved, which may write to the workspace. An error says why such a
// command cannot run by the rule that keeps it in the workspace.
func (d *Daemon) needsUndo(call tools.Call, plan tools.Plan) (bool, error) {
	if plan.Command == nil {
		return false, nil
	}
	if reads, _ := plan.Command.Program.Reads(); reads {
		return false, nil
	}
	cfg := d.Config()
	by := callAuthor(cfg, call)
	if by == byWorkspaceRule && !sandbox.FindPlaces(sandbox.Guard{Roots: call.Roots, Names: permission.ProtectedNames()}).Whole {
		return false, errors.New("the workspace has too many folders or repositories to keep all protected places in them from being changed")
	}
	return by != byHand && d.levelFor(cfg.Config, call.Roots, by).Level == sandbox.Workspace, nil
}

// callAuthor says whose word lets a call run.
func callAuthor(cfg *config.Loaded, call tools.Call) author {
	switch {
	case call.Grant.Approved:
		return byHand
	case call.Grant.Auto, strings.HasPrefix(call.Grant.Rule, "remembered"): // nobody saw this call
		return byUserConfig
	}
	return ruleAuthor(cfg, call.Roots, call.Grant.Rule)
}

// customBounds returns how a custom tool is bound.
func (d *Daemon) customBounds(cfg *config.Loaded, name string, call tools.Call) sandbox.Policy {
	return d.bounds(cfg.Config, call.Roots, d.customAuthor(cfg, name, call))
}

// customAuthor says whose word lets a custom tool run: unless the user approved the call, that
// of who wrote the tool.
func (d *Daemon) customAuthor(cfg *config.Loaded, name string, call tools.Call) author {
	by := callAuthor(cfg, call)
	if by != byHand && by != byWorkspaceConfig && by != byReadsRule {
		origin, _ := cfg.Origin("customTools", name)
		by = sourceAuthor(call.Roots, origin.Source)
	}
	return by
}

// ruleAuthor says whose a rule of the permission policy is. What is not found in the
// configuration is built in.
func ruleAuthor(cfg *config.Loaded, roots []string, rule string) author {
	switch rule {
	case permission.RuleReads:
		return byReadsRule
	case tools.RuleWorkspace:
		return byWorkspaceRule
	}
	path := rulePath(rule)
	origin, ok := cfg.Origin(path...)
	if !ok || path == nil || origin.IsDefault() {
		return byBuiltInRule
	}
	return sourceAuthor(roots, origin.Source)
}

// rulePath returns where a rule stands: its name is that of the approval it belongs to,
// and what it selects. Names of agents and tools may have dots.
func rulePath(rule string) []string {
	const approval = "toolCall.approval."
	var path []string
	before, rest, ok := strings.Cut(rule, approval)
	if !ok {
		return nil
	}
	if name, isAgent := strings.CutPrefix(before, "agent."); isAgent {
		path = append(path, "agent", strings.TrimSuffix(name, "."))
	}
	path = append(path, "toolCall", "approval")
	kind, selector, _ := strings.Cut(rest, ".")
	if path = append(path, kind); selector != "" {
		path = append(path, selector)
	}
	return path
}

// sourceAuthor says whose a place is: a workspace's if it is a file in one.
func sourceAuthor(roots []string, source string) author {
	for _, root := range roots {
		if rel, err := filepath.Rel(root, source); err == nil && filepath.IsAbs(source) && filepath.IsLocal(rel) {
			return byWorkspaceConfig
		}
	}
	return byUserConfig
}

// hookBounds returns how scripts of hooks are bound: like what the user approved by hand,
// since the user wrote them, or read and trusted them. They log where they like and use what
// the user's programs use. Where they are bound all the same, they may read chats, for which
// the store is opened.
func (d *Daemon) hookBounds(cfg *config.Config, roots []string) sandbox.Policy {
	p := d.bounds(cfg, roots, byHand)
	if p.Bounds() {
		p.Write = append(p.Write, d.opts.StateDir)
	}
	return p
}

// promises says what can be held here of what is promised about commands that run unasked.
func (d *Daemon) promises(cfg *config.Config) permission.Sandbox {
	if cfg.ToolCall.Sandbox == sandboxOff {
		return permission.Sandbox{NoReads: "it would only read, but the sandbox is switched off (toolCall.sandbox)"}
	}
	if s := d.children.Bounds(); !s.Holds {
		return permission.Sandbox{NoReads: "it would only read, but there is no sandbox here to hold it to that: " + s.Without}
	}
	hosts := len(cfg.ToolCall.SandboxHosts)+len(cfg.ToolCall.SandboxNetwork.Allow) > 0
	return permission.Sandbox{Writable: []string{os.TempDir()}, Hosts: hosts, NoWorkspace: func() string {
		here := d.isolation()
		switch untrusted := d.Untrusted(); {
		case !here.Mounts || !here.Processes || !here.Network:
			return "the sandbox of the workspace cannot be held here: " + here.Without
		case len(untrusted) > 0:
			return untrusted[0].File + " is not trusted"
		}
		return ""
	}}
}

// NotContained says why commands of an agent ask although the command line says that they run in
// the sandbox of the workspace; empty if they do not ask.
func (d *Daemon) NotContained(agent string) string {
	cfg := d.Config()
	switch origin, _ := cfg.Origin("agent", agent, "toolCall", "unasked"); {
	case cfg.Agents[agent].ReadOnly:
		return "the agent " + agent + " is read-only"
	case cfg.UnaskedCommands(agent) != config.UnaskedWorkspace:
		if origin.Source == "" {
			origin, _ = cfg.Origin("toolCall", "unasked")
		}
		return fmt.Sprintf("a workspace's file makes it stricter: toolCall.unasked is %s (%s)", cfg.UnaskedCommands(agent), origin)
	}
	s := d.promises(cfg.Config)
	if s.NoReads != "" {
		return strings.TrimPrefix(s.NoReads, "it would only read, but ")
	}
	return s.NoWorkspace()
}

// shownBounds is how a call is bound, for the user; nil if it is not.
func (d *Daemon) shownBounds(cfg *config.Loaded, call tools.Call) *event.Sandbox {
	p := d.levelFor(cfg.Config, call.Roots, callAuthor(cfg, call))
	if !p.Bounds() || !p.Required && !d.children.Bounds().Holds {
		return nil
	}
	network := "none"
	if p.Network {
		network = "all"
	}
	return &event.Sandbox{Level: string(p.Level), Network: network}
}

// checkSandbox says what bounds commands here, and what does not.
func (d *Daemon) checkSandbox(context.Context) []doctor.Finding {
	mode, s := d.Config().ToolCall.Sandbox, d.children.Bounds()
	switch {
	case mode == sandboxOff:
		return []doctor.Finding{finding(doctor.Note, "sandbox", "switched off (toolCall.sandbox)")}
	case !s.Holds && mode == sandboxRequired:
		return []doctor.Finding{finding(doctor.Problem, "sandbox", "required, but not possible: %s; no command runs", s.Without)}
	case !s.Holds:
		return []doctor.Finding{finding(doctor.Warning, "sandbox", "not possible: %s; commands run with your rights", s.Without)}
	}
	out := []doctor.Finding{finding(doctor.OK, "sandbox", "%s (toolCall.sandbox: %s)", s.With, mode)}
	switch here := d.isolation(); {
	case !here.Mounts:
		out = append(out, finding(doctor.Note, "sandbox", "not held: protected places in the workspace (.git/config, .eca, .envrc, ...) against commands that may write to it: no namespaces: %s", here.Without))
	case here.Missing() != "":
		out = append(out, finding(doctor.Note, "sandbox", "namespaces, without %s: %s", here.Missing(), here.Without))
	default:
		out = append(out, finding(doctor.OK, "sandbox", "namespaces: protected places in the workspace are read-only, commands have processes of their own"))
	}
	for _, gap := range sandbox.Gaps() {
		out = append(out, finding(doctor.Note, "sandbox", "not enforced: %s", gap))
	}
	return out
}

// askAboutCommand asks the user about what a command did, or was not let do; nil without a client
// that shows questions.
func askAboutCommand(c ask.Client) func(context.Context, tools.Call, string, []shell.Choice) string {
	if c == nil {
		return nil
	}
	return func(ctx context.Context, call tools.Call, question string, choices []shell.Choice) string {
		q := ask.Question{ChatID: call.ChatID, CallID: call.ID, Text: question}
		for _, one := range choices {
			q.Options = append(q.Options, ask.Option{Label: one.Label, Description: one.Description})
		}
		answer, err := c.Ask(ctx, q)
		if err != nil || answer.Cancelled {
			return ""
		}
		return answer.Text
	}
}
