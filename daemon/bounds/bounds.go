// Package bounds decides the limits of child processes that calls start: sandbox level, environment
// and network. They depend on the authority that allows the call: a built-in rule, the user's or a
// workspace's configuration, or the user who approved it (docs/sandbox.md).
//
// It guarantees that commands that no user saw get no credentials, and that the commands of one
// chat share a loopback interface with no other process, from which only a proxy leads to other
// hosts. internal/sandbox and internal/proc enforce the limits.
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

// Options are the dependencies of Bounds. No function may be nil, but Environ may return nil.
type Options struct {
	Config       func() *config.Config // the current configuration, for proxies, which outlive a snapshot
	Children     *proc.Pool
	Getenv       func(string) string
	Environ      func() []string
	IsCredential func(string) bool // reports whether a value contains a known credential
	StateDir     string
	CacheDir     string
	Readable     []string // folders with results of earlier calls, which may be read like files of the workspace
	OwnFolders   []string // eca's own folders, including StateDir and CacheDir, as absolute paths: commands never write there
	OwnFiles     []string // the same, for files
	EphemeralDir string   // the folder in OwnFolders that is in the temporary folder (--ephemeral); may be empty
	Log          *slog.Logger
}

// Bounds decides the limits of child processes. Close must be called.
type Bounds struct {
	opts Options
	// Isolation returns the namespaces that commands can use on this machine; the first call probes
	// the system.
	Isolation func() sandbox.Isolation
	loopbacks loopbacks
	temp      string         // the system's temporary folder; empty if commands must not write to it
	trims     sync.WaitGroup // running trims of private caches

	mu      sync.Mutex      // guards trimmed
	trimmed map[string]bool // by workspace: its private caches have been trimmed
}

// New returns a Bounds. Close must be called.
func New(o Options) *Bounds {
	return &Bounds{
		opts: o, Isolation: sync.OnceValue(o.Children.Isolation), trimmed: map[string]bool{},
		temp: sharedTemp(os.TempDir(), append(slices.DeleteFunc(slices.Clone(o.OwnFolders), func(dir string) bool { return dir == o.EphemeralDir }), o.Getenv("HOME"))...),
	}
}

// sharedTemp returns the system's temporary folder if commands may write to all of it, or "". They
// may not if it contains a folder that they must not change, or a symbolic link on the path to one.
// The home folder is such a folder, and in some containers it is below /tmp.
func sharedTemp(temp string, private ...string) string {
	resolved := workspace.Resolve(temp)
	for _, dir := range private {
		if filepath.IsAbs(dir) && sandbox.ResolvePath(dir).Within(resolved) {
			return ""
		}
	}
	return temp
}

// sharedTemp returns the temporary folder that commands share, or "" if each command has its own.
// The folder that --ephemeral discards is in the shared one; with mount namespaces it is read-only
// for commands, and without them commands do not share.
func (b *Bounds) sharedTemp() string {
	if b.temp != "" && b.opts.EphemeralDir != "" && !b.Isolation().Mounts {
		return ""
	}
	return b.temp
}

// Close closes the networks of chats and waits for background work.
func (b *Bounds) Close() {
	b.loopbacks.close()
	b.trims.Wait()
}

// Values of toolCall.sandbox.
const (
	sandboxOff      = "off"
	sandboxOn       = "on"
	sandboxRequired = "required"
)

// PolicyFor returns the sandbox policy of a child that an authority allows to run (docs/sandbox.md).
func (b *Bounds) PolicyFor(cfg *config.Config, roots []string, by author) sandbox.Policy {
	p := b.levelFor(cfg, roots, by)
	p.UnixSockets = p.Network && by != byAutoApprove
	if p.Bounds() {
		isolation := b.Isolation()
		p.Isolate, p.OwnProcesses = isolation.Mounts, isolation.Processes
	}
	if p.Level == sandbox.Workspace {
		p.Guard = b.guard(roots)
		p.Loopback = p.Isolate && !p.Network && b.Isolation().Network
		b.addCaches(cfg, &p, roots, by)
	}
	return p
}

// guard returns what a child must not change in the folders to which it may write.
func (b *Bounds) guard(roots []string) *sandbox.Guard {
	return &sandbox.Guard{Roots: roots, Names: permission.ProtectedNames(), Own: b.opts.OwnFolders, OwnFiles: b.opts.OwnFiles, Home: b.opts.Getenv("HOME")}
}

// addCaches lets a child use caches of build tools: the user's own if the user approved the call,
// otherwise private ones.
func (b *Bounds) addCaches(cfg *config.Config, p *sandbox.Policy, roots []string, by author) {
	if by == byHand || cfg.ToolCall.SandboxCaches == "shared" || len(roots) == 0 {
		p.Write = append(p.Write, sandbox.SharedCaches(b.opts.Getenv, b.opts.CacheDir)...)
		return
	}
	p.Caches = &sandbox.Caches{Dir: b.CacheLayers(), Root: roots[0], Overlay: p.Isolate && b.Isolation().Overlay, Getenv: b.opts.Getenv}
	layers := *p.Caches
	b.trimOnce(layers)
}

// trimOnce trims the private caches of a workspace in the background, once per process.
func (b *Bounds) trimOnce(c sandbox.Caches) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trimmed[c.Root] {
		return
	}
	b.trimmed[c.Root] = true
	b.trims.Go(func() {
		if err := c.Trim(sandbox.LayerLimit); err != nil {
			b.opts.Log.Warn("cannot trim private caches", "err", err)
		}
	})
}

// CacheLayers returns the folder of private caches. It is not below the cache folder, because that
// is one of the folders that the layers cover.
func (b *Bounds) CacheLayers() string { return filepath.Join(b.opts.StateDir, "caches") }

// ClearSandboxCaches removes the private caches of all workspaces and returns their folder.
func (b *Bounds) ClearSandboxCaches() (string, error) {
	return b.CacheLayers(), os.RemoveAll(b.CacheLayers())
}

// levelFor returns a child's policy without the parts that PolicyFor adds, such as namespaces,
// protected files and caches.
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
		p.Required = true // no user approved it to run without the sandbox
	case byWorkspaceConfig:
	}
	return p
}

// Call returns the sandbox policy of what a call runs.
func (b *Bounds) Call(cfg *config.Loaded, call tools.Call) sandbox.Policy {
	p := b.PolicyFor(cfg.Config, call.Roots, callAuthor(cfg, call))
	if p.Level == sandbox.ReadOnly { // the results of earlier calls may be read like files of the workspace
		p.Read = sandbox.Reads(append(call.Roots[:len(call.Roots):len(call.Roots)], b.opts.Readable...), b.opts.Getenv)
	}
	return p
}

// NeedsUndo reports whether a rollback must be able to undo what a call does to files: true for a
// command that may write to the workspace and that no user approved. An error means that the
// built-in workspace rule cannot allow the command.
func (b *Bounds) NeedsUndo(cfg *config.Loaded, call tools.Call, plan tools.Plan) (bool, error) {
	if plan.Command == nil {
		return false, nil
	}
	if reads, _ := plan.Command.Program.Reads(); reads {
		return false, nil
	}
	by := callAuthor(cfg, call)
	if by == byWorkspaceRule && !sandbox.FindPlaces(*b.guard(call.Roots)).Whole {
		return false, errors.New("the workspace has too many folders, repositories or hard links to protect every file that must not change")
	}
	return by != byHand && b.levelFor(cfg.Config, call.Roots, by).Level == sandbox.Workspace, nil
}

// Custom returns the sandbox policy of a custom tool.
func (b *Bounds) Custom(cfg *config.Loaded, name string, call tools.Call) sandbox.Policy {
	return b.PolicyFor(cfg.Config, call.Roots, b.customAuthor(cfg, name, call))
}

// Hook returns the sandbox policy of hook scripts: that of a call that the user approved, because
// the user wrote the scripts, or read and trusted them. So they normally run without a sandbox. If
// the configuration requires one, they may write to the state directory, because opening the chat
// store to read chats writes to it.
func (b *Bounds) Hook(cfg *config.Config, roots []string) sandbox.Policy {
	p := b.PolicyFor(cfg, roots, byHand)
	if p.Bounds() {
		p.Write = append(p.Write, b.opts.StateDir)
		p.Guard.Own = slices.DeleteFunc(slices.Clone(p.Guard.Own), func(dir string) bool { return dir == b.opts.StateDir })
	}
	return p
}

// LanguageServer returns the sandbox policy and the environment of a language server. Because it
// may run code of the workspace, it is limited like a build tool that runs without a question. An
// error means that it must not run: the workspace is not trusted, or the sandbox cannot be enforced
// and the configuration does not name the server.
func (b *Bounds) LanguageServer(cfg *config.Config, roots []string, named bool, untrusted []config.Unit) (sandbox.Policy, []string, error) {
	by := byWorkspaceConfig
	if len(untrusted) > 0 {
		return sandbox.Policy{}, nil, fmt.Errorf("%s is not trusted", untrusted[0].File)
	}
	if !named {
		by = byWorkspaceRule
		s := b.Enforceable(cfg, untrusted)
		why := b.Unavailable(cfg)
		if why == "" {
			why = s.WorkspaceUnavailable()
		}
		if why != "" {
			return sandbox.Policy{}, nil, fmt.Errorf("it starts only if your configuration names it (lsp): %s", why)
		}
	}
	p := b.PolicyFor(cfg, roots, by)
	return p, b.environment(cfg, by, p.Level), nil
}

// Unavailable returns why commands do not run in the sandbox; empty if they do.
func (b *Bounds) Unavailable(cfg *config.Config) string {
	if cfg.ToolCall.Sandbox == sandboxOff {
		return "the sandbox is switched off (toolCall.sandbox)"
	}
	if s := b.opts.Children.Bounds(); !s.Holds {
		return "there is no sandbox on this machine: " + s.Without
	}
	return ""
}

// Enforceable returns which guarantees about commands that run without a question can be enforced
// on this machine.
func (b *Bounds) Enforceable(cfg *config.Config, untrusted []config.Unit) permission.Sandbox {
	if why := b.Unavailable(cfg); why != "" {
		return permission.Sandbox{ReadsUnavailable: "it would only read, but " + why}
	}
	hosts := len(cfg.ToolCall.SandboxHosts)+len(cfg.ToolCall.SandboxNetwork.Allow) > 0
	var writable []string
	if temp := b.sharedTemp(); temp != "" {
		writable = append(writable, temp)
	}
	return permission.Sandbox{ReadsConfined: runtime.GOOS == "linux", Writable: writable, Hosts: hosts, WorkspaceUnavailable: func() string {
		isolation := b.Isolation()
		switch {
		case !isolation.Mounts || !isolation.Processes || !isolation.Network:
			return "the sandbox of the workspace is not available here: " + isolation.Without
		case len(untrusted) > 0:
			return untrusted[0].File + " is not trusted"
		}
		return ""
	}}
}

// NotContained returns why an agent's commands still need approval although a command-line flag
// makes them run in the workspace sandbox, or "" if they do not need approval.
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
	s := b.Enforceable(cfg.Config, untrusted)
	if s.ReadsUnavailable != "" {
		return strings.TrimPrefix(s.ReadsUnavailable, "it would only read, but ")
	}
	return s.WorkspaceUnavailable()
}

// Describe returns the sandbox of a call as the user is shown it; nil if the call runs without one.
func (b *Bounds) Describe(cfg *config.Loaded, call tools.Call) *event.Sandbox {
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

// Check reports which limits of commands are enforced on this machine, and which are not.
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
	switch isolation := b.Isolation(); {
	case !isolation.Mounts:
		out = append(out, doctor.Found(doctor.Note, "sandbox", "not enforced: protection of .git/config, .eca, .envrc, ... in the workspace against commands that may write to it; no namespaces: %s", isolation.Without))
	case isolation.Missing() != "":
		out = append(out, doctor.Found(doctor.Note, "sandbox", "namespaces, without %s: %s", isolation.Missing(), isolation.Without))
	default:
		out = append(out, doctor.Found(doctor.OK, "sandbox", "namespaces: protected files in the workspace are read-only, and commands see only their own processes"))
	}
	if limit, err := b.opts.Children.MemoryLimit(); err != nil {
		out = append(out, doctor.Found(doctor.Note, "sandbox", "not enforced: a memory limit (when the machine runs out of memory, commands are killed first): %v", err))
	} else {
		out = append(out, doctor.Found(doctor.OK, "sandbox", "a command may use %d MiB of memory", limit>>20))
	}
	for _, gap := range sandbox.Gaps() {
		out = append(out, doctor.Found(doctor.Note, "sandbox", "not enforced: %s", gap))
	}
	return out
}
