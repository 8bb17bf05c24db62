// Package bounds says how what calls run is bound: which level of the sandbox, which
// environment, which network. That depends on who lets it run: a built-in rule, the user's
// or a workspace's configuration, or the user who approved the call (docs/sandbox.md).
//
// It guarantees that commands no user saw get no credentials, and that commands of one chat
// share a loopback that nothing else is on, out of which only a proxy leads. How a child is
// held to its bounds is internal/sandbox's and internal/proc's.
//
// The entry points are New and Bounds.Call.
package bounds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Options are what Bounds needs. None may be nil, but Environ may return nil.
type Options struct {
	Config       func() *config.Config // in effect; for proxies, which outlive a snapshot
	Children     *proc.Pool
	Getenv       func(string) string
	Environ      func() []string
	IsCredential func(string) bool // says whether a value has a known credential in it
	StateDir     string
	CacheDir     string
	Readable     []string // folders of results of earlier calls, which are read like files of the workspace
	Own          []string // eca's own folders, StateDir and CacheDir too: commands never write there; absolute
	OwnFiles     []string // likewise files
	Discarded    string   // the one of Own that is in the temporary folder (--ephemeral); may be empty
	Log          *slog.Logger
}

// Bounds says how children are bound. Close must be called.
type Bounds struct {
	opts Options
	// Isolation says which namespaces commands can have here; found out when first asked for.
	Isolation func() sandbox.Isolation
	loopbacks loopbacks
	temp      string         // the system's temporary folder; empty if commands must not write there
	trims     sync.WaitGroup // of private caches

	mu      sync.Mutex      // guards trimmed
	trimmed map[string]bool // workspaces whose private caches were trimmed
}

// New returns bounds.
func New(o Options) *Bounds {
	return &Bounds{
		opts: o, Isolation: sync.OnceValue(o.Children.Isolation), trimmed: map[string]bool{},
		temp: sharedTemp(os.TempDir(), append(slices.DeleteFunc(slices.Clone(o.Own), func(dir string) bool { return dir == o.Discarded }), o.Getenv("HOME"))...),
	}
}

// sharedTemp returns the system's temporary folder if commands may write to all of it: none of
// the folders that they must not change is in it, nor a link on the way to one. The home folder is
// one of these, which in some containers is below /tmp.
func sharedTemp(temp string, private ...string) string {
	resolved := workspace.Resolve(temp)
	for _, dir := range private {
		if filepath.IsAbs(dir) && sandbox.ResolvePath(dir).Within(resolved) {
			return ""
		}
	}
	return temp
}

// sharedTemp is the temporary folder that commands share; empty if each has its own. The folder that
// --ephemeral discards is in it, read-only for commands where they have mount namespaces.
func (b *Bounds) sharedTemp() string {
	if b.temp != "" && b.opts.Discarded != "" && !b.Isolation().Mounts {
		return ""
	}
	return b.temp
}

// Close ends the networks of chats, and waits for what runs in the background.
func (b *Bounds) Close() {
	b.loopbacks.close()
	b.trims.Wait()
}

// Words of toolCall.sandbox.
const (
	sandboxOff      = "off"
	sandboxOn       = "on"
	sandboxRequired = "required"
)

// For returns how a child is bound that somebody's word lets run (docs/sandbox.md).
func (b *Bounds) For(cfg *config.Config, roots []string, by author) sandbox.Policy {
	p := b.levelFor(cfg, roots, by)
	p.UnixSockets = p.Network && by != byAutoApprove
	if p.Bounds() {
		here := b.Isolation()
		p.Isolate, p.OwnProcesses = here.Mounts, here.Processes
	}
	if p.Level == sandbox.Workspace {
		p.Guard = b.guard(roots)
		p.Loopback = p.Isolate && !p.Network && b.Isolation().Network
		b.addCaches(cfg, &p, roots, by)
	}
	return p
}

// guard says what stays as it is in the folders that a child may write to.
func (b *Bounds) guard(roots []string) *sandbox.Guard {
	return &sandbox.Guard{Roots: roots, Names: permission.ProtectedNames(), Own: b.opts.Own, OwnFiles: b.opts.OwnFiles, Home: b.opts.Getenv("HOME")}
}

// addCaches lets a child use caches of build tools: the user's if the user approved it, else
// private ones.
func (b *Bounds) addCaches(cfg *config.Config, p *sandbox.Policy, roots []string, by author) {
	if by == byHand || cfg.ToolCall.SandboxCaches == "shared" || len(roots) == 0 {
		p.Write = append(p.Write, sandbox.SharedCaches(b.opts.Getenv, b.opts.CacheDir)...)
		return
	}
	p.Caches = &sandbox.Caches{Dir: b.CacheLayers(), Root: roots[0], Overlay: p.Isolate && b.Isolation().Overlay, Getenv: b.opts.Getenv}
	layers := *p.Caches
	b.trimOnce(layers)
}

// trimOnce trims the private caches of a workspace in the background, once.
func (b *Bounds) trimOnce(c sandbox.Caches) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trimmed[c.Root] {
		return
	}
	b.trimmed[c.Root] = true
	b.trims.Go(func() {
		if err := c.Trim(sandbox.LayerLimit); err != nil {
			b.opts.Log.Warn("private caches are not trimmed", "err", err)
		}
	})
}

// CacheLayers is where private caches are: not below the cache folder, which is one of those that
// layers are put over.
func (b *Bounds) CacheLayers() string { return filepath.Join(b.opts.StateDir, "caches") }

// ClearSandboxCaches removes the private caches of all workspaces, and returns where they were.
func (b *Bounds) ClearSandboxCaches() (string, error) {
	return b.CacheLayers(), os.RemoveAll(b.CacheLayers())
}

// levelFor returns what such a child may do, wherever that is held: all that is known without
// looking for protected places and caches, which is done once, when the child starts.
func (b *Bounds) levelFor(cfg *config.Config, roots []string, by author) sandbox.Policy {
	temp := b.sharedTemp()
	p := sandbox.Policy{Level: sandbox.Workspace, Write: roots[:len(roots):len(roots)], PrivateTemp: temp == ""}
	if temp != "" {
		p.Write = append(p.Write, temp)
	}
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
	case byUserConfig, byAutoApprove:
		p.Network = true
	case byWorkspaceRule:
		p.Required = true // nobody approved it outside of its bounds
	case byWorkspaceConfig:
	}
	return p
}

// Call returns how what a call runs is bound.
func (b *Bounds) Call(cfg *config.Loaded, call tools.Call) sandbox.Policy {
	p := b.For(cfg.Config, call.Roots, callAuthor(cfg, call))
	if p.Level == sandbox.ReadOnly { // the results of earlier calls are read like files of the workspace
		p.Read = sandbox.Reads(append(call.Roots[:len(call.Roots):len(call.Roots)], b.opts.Readable...), b.opts.Getenv)
	}
	return p
}

// NeedsUndo says whether a rollback must be able to undo what a call does to files: it runs
// a command that nobody approved, which may write to the workspace. An error says why such a
// command cannot run by the rule that keeps it in the workspace.
func (b *Bounds) NeedsUndo(cfg *config.Loaded, call tools.Call, plan tools.Plan) (bool, error) {
	if plan.Command == nil {
		return false, nil
	}
	if reads, _ := plan.Command.Program.Reads(); reads {
		return false, nil
	}
	by := callAuthor(cfg, call)
	if by == byWorkspaceRule && !sandbox.FindPlaces(*b.guard(call.Roots)).Whole {
		return false, errors.New("the workspace has too many folders, repositories or files with other names (hard links) to keep all protected places from being changed")
	}
	return by != byHand && b.levelFor(cfg.Config, call.Roots, by).Level == sandbox.Workspace, nil
}

// Custom returns how a custom tool is bound.
func (b *Bounds) Custom(cfg *config.Loaded, name string, call tools.Call) sandbox.Policy {
	return b.For(cfg.Config, call.Roots, b.customAuthor(cfg, name, call))
}

// Hook returns how scripts of hooks are bound: like what the user approved by hand,
// since the user wrote them, or read and trusted them. They log where they like and use what
// the user's programs use. Where they are bound all the same, they may read chats, for which
// the store is opened.
func (b *Bounds) Hook(cfg *config.Config, roots []string) sandbox.Policy {
	p := b.For(cfg, roots, byHand)
	if p.Bounds() {
		p.Write = append(p.Write, b.opts.StateDir)
		p.Guard.Own = slices.DeleteFunc(slices.Clone(p.Guard.Own), func(dir string) bool { return dir == b.opts.StateDir })
	}
	return p
}

// LanguageServer returns how a language server is bound, and its environment: like a build tool that
// runs unasked, since it may run code of the workspace. An error says why it must not run: the
// workspace is not trusted, or the sandbox cannot be held and no configuration names the server.
func (b *Bounds) LanguageServer(cfg *config.Config, roots []string, named bool, untrusted []config.Unit) (sandbox.Policy, []string, error) {
	by := byWorkspaceConfig
	if len(untrusted) > 0 {
		return sandbox.Policy{}, nil, fmt.Errorf("%s is not trusted", untrusted[0].File)
	}
	if !named {
		by = byWorkspaceRule
		s := b.Promises(cfg, untrusted)
		why := s.NoReads
		if why == "" {
			why = s.NoWorkspace()
		}
		if why != "" {
			return sandbox.Policy{}, nil, fmt.Errorf("it starts only if your configuration names it (lsp): %s", strings.TrimPrefix(why, "it would only read, but "))
		}
	}
	p := b.For(cfg, roots, by)
	return p, b.environment(cfg, by, p.Level), nil
}

// Promises says what can be held here of what is promised about commands that run unasked.
func (b *Bounds) Promises(cfg *config.Config, untrusted []config.Unit) permission.Sandbox {
	if cfg.ToolCall.Sandbox == sandboxOff {
		return permission.Sandbox{NoReads: "it would only read, but the sandbox is switched off (toolCall.sandbox)"}
	}
	if s := b.opts.Children.Bounds(); !s.Holds {
		return permission.Sandbox{NoReads: "it would only read, but there is no sandbox here to hold it to that: " + s.Without}
	}
	hosts := len(cfg.ToolCall.SandboxHosts)+len(cfg.ToolCall.SandboxNetwork.Allow) > 0
	var writable []string
	if temp := b.sharedTemp(); temp != "" {
		writable = append(writable, temp)
	}
	return permission.Sandbox{ReadsHeld: runtime.GOOS == "linux", Writable: writable, Hosts: hosts, NoWorkspace: func() string {
		here := b.Isolation()
		switch {
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
func (b *Bounds) NotContained(cfg *config.Loaded, agent string, untrusted []config.Unit) string {
	switch origin, _ := cfg.Origin("agent", agent, "toolCall", "unasked"); {
	case cfg.Agents[agent].ReadOnly:
		return "the agent " + agent + " is read-only"
	case cfg.UnaskedCommands(agent) != config.UnaskedWorkspace:
		if origin.Source == "" {
			origin, _ = cfg.Origin("toolCall", "unasked")
		}
		return fmt.Sprintf("a workspace's file makes it stricter: toolCall.unasked is %s (%s)", cfg.UnaskedCommands(agent), origin)
	}
	s := b.Promises(cfg.Config, untrusted)
	if s.NoReads != "" {
		return strings.TrimPrefix(s.NoReads, "it would only read, but ")
	}
	return s.NoWorkspace()
}

// Shown is how a call is bound, for the user; nil if it is not.
func (b *Bounds) Shown(cfg *config.Loaded, call tools.Call) *event.Sandbox {
	p := b.levelFor(cfg.Config, call.Roots, callAuthor(cfg, call))
	if !p.Bounds() || !p.Required && !b.opts.Children.Bounds().Holds {
		return nil
	}
	network := "none"
	if p.Network {
		network = "all"
	}
	return &event.Sandbox{Level: string(p.Level), Network: network}
}

// Check says what bounds commands here, and what does not.
func (b *Bounds) Check(context.Context) []doctor.Finding {
	mode, s := b.opts.Config().ToolCall.Sandbox, b.opts.Children.Bounds()
	switch {
	case mode == sandboxOff:
		return []doctor.Finding{doctor.Found(doctor.Note, "sandbox", "switched off (toolCall.sandbox)")}
	case !s.Holds && mode == sandboxRequired:
		return []doctor.Finding{doctor.Found(doctor.Problem, "sandbox", "required, but not possible: %s; no command runs", s.Without)}
	case !s.Holds:
		return []doctor.Finding{doctor.Found(doctor.Warning, "sandbox", "not possible: %s; commands run with your rights", s.Without)}
	}
	out := []doctor.Finding{doctor.Found(doctor.OK, "sandbox", "%s (toolCall.sandbox: %s)", s.With, mode)}
	switch here := b.Isolation(); {
	case !here.Mounts:
		out = append(out, doctor.Found(doctor.Note, "sandbox", "not held: protected places in the workspace (.git/config, .eca, .envrc, ...) against commands that may write to it: no namespaces: %s", here.Without))
	case here.Missing() != "":
		out = append(out, doctor.Found(doctor.Note, "sandbox", "namespaces, without %s: %s", here.Missing(), here.Without))
	default:
		out = append(out, doctor.Found(doctor.OK, "sandbox", "namespaces: protected places in the workspace are read-only, commands have processes of their own"))
	}
	if limit, err := b.opts.Children.MemoryLimit(); err != nil {
		out = append(out, doctor.Found(doctor.Note, "sandbox", "not enforced: a limit on memory (commands that use up the machine's are ended first): %v", err))
	} else {
		out = append(out, doctor.Found(doctor.OK, "sandbox", "a command may use %d MiB of memory", limit>>20))
	}
	for _, gap := range sandbox.Gaps() {
		out = append(out, doctor.Found(doctor.Note, "sandbox", "not enforced: %s", gap))
	}
	return out
}
