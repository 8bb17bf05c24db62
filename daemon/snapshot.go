package daemon

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/bounds"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/extensions/plugins"
	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/otlp"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Snapshot is the configuration and everything derived from it at one moment. It never changes; it
// is replaced atomically. Code that needs several of its values gets the snapshot once. A turn uses
// one snapshot from its first step to its last.
type Snapshot struct {
	inputs
	policy    *permission.Policy
	hooks     *hooks.Set
	variants  *catalog.Variants
	telemetry otlp.Config
	native    func() *tools.Registry   // eca's own tools; created on first use, which must come after the response to initialize
	tools     *atomic.Pointer[toolset] // the last result of toolbox.toolsOf
}

// inputs are the configuration, the user's decisions and the clients that a snapshot is built from.
type inputs struct {
	config      *config.Loaded // nil before the first Configure
	workspace   *workspace.Workspace
	extensions  *extensions.Set // nil until they are read
	plugins     *plugins.Set    // nil until they are read
	client      client
	guard       guard // nil: none
	trust       consent.Folders
	trustAll    bool               // everything is trusted, see Daemon.UntrustedMistakes
	claudeHooks []hooks.Definition // from Claude Code's files, if they are trusted
	identity    *netclient.Identity
	storage     *storage
	logins      map[string]auth.Credential // stored logins when the inputs were read
}

// client lists the requests that the user's clients support.
type client struct {
	editor           editor.Client
	questions        ask.Client // nil: no client shows questions
	sandboxQuestions ask.Client // the same for questions about what the sandbox blocked or moved away
}

// guard wraps a tool, or leaves it out; see Daemon.Guard.
type guard func(tools.Tool) (t tools.Tool, offered bool)

// toolset holds eca's tools and those of the MCP servers at one moment.
type toolset struct {
	version uint64 // of the MCP servers' tools
	all     *tools.Registry
}

// newSnapshot creates a snapshot from inputs and the services. It reads no files. Its only side
// effect is that it adds problems to the configuration, which is not shared yet.
func (r *reader) newSnapshot(in inputs) *Snapshot {
	cfg := in.config
	s := &Snapshot{inputs: in, tools: new(atomic.Pointer[toolset])}
	s.policy = r.newPolicy(s)
	s.hooks = r.newHooks(s)
	s.variants = settings.Variants(cfg)
	cfg.Problems = append(cfg.Problems, bounds.Problems(cfg)...)
	cfg.Problems = append(cfg.Problems, providers.BadRetryRules(cfg)...)
	cfg.Problems = append(cfg.Problems, r.models().Problems(cfg, s.variants, in.logins)...)
	cfg.Problems = append(cfg.Problems, badHosts(cfg)...)
	cfg.Problems = append(cfg.Problems, r.badLanguageServers(s)...)
	cfg.Problems = append(cfg.Problems, r.readTelemetry(s)...)
	cfg.Problems = append(cfg.Problems, r.badCustomTools(cfg)...)
	cfg.Problems = append(cfg.Problems, r.badToolNames(cfg, nil)...)
	cfg.DropInvalidAgents()
	s.native = sync.OnceValue(func() *tools.Registry { return r.nativeTools(s) })
	return s
}

// amend replaces the snapshot with a copy that edit has modified. If edit changes an input, it must
// also update what was derived from that input.
func (d *Daemon) amend(edit func(*Snapshot)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.amendLocked(edit)
}

func (d *Daemon) amendLocked(edit func(*Snapshot)) {
	next := *d.current()
	next.tools = new(atomic.Pointer[toolset])
	edit(&next)
	d.snapshot.Store(&next)
}

// Join adds a client that supports the given requests. Questions go to all clients that show
// them; requests to the editor go to the first client that supports them. Tools that need a client
// exist only while there is one; the set of tools changes between turns.
func (d *Daemon) Join(e editor.Client, questions ask.Client) (leave func()) {
	leaveBoard := func() {}
	if questions != nil {
		leaveBoard = d.board.Join(questions)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.editors = append(d.editors, &e)
	d.clientsChangedLocked()
	return func() {
		leaveBoard()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.editors = slices.DeleteFunc(d.editors, func(other *editor.Client) bool { return other == &e })
		d.clientsChangedLocked()
	}
}

// clientsChangedLocked makes later turns use the current clients.
func (d *Daemon) clientsChangedLocked() {
	var c client
	for _, e := range d.editors {
		c.editor = c.editor.Or(*e)
	}
	if !d.board.Empty() {
		c.questions, c.sandboxQuestions = d.board, d.board
	}
	if d.opts.OnlyCommandQuestions {
		c.questions = nil
	}
	d.amendLocked(func(s *Snapshot) {
		s.client = c
		s.native = sync.OnceValue(func() *tools.Registry { return d.nativeTools(s) })
	})
}

// Guard sets a function that wraps each tool, or leaves it out, before models get it. A front
// end calls Guard again to change the function.
func (d *Daemon) Guard(g func(tools.Tool) (t tools.Tool, offered bool)) {
	d.amend(func(s *Snapshot) { s.guard = g })
}

func (s *Snapshot) roots() []string { return s.workspace.Roots() }

// units lists the parts of the workspace's configuration that need trust, trusted or not. Those of
// extensions are included once extensions have been read.
func (s *Snapshot) units() []config.Unit {
	var out []config.Unit
	if s.config != nil {
		out = append(out, s.config.Units...)
	}
	if s.extensions != nil {
		out = append(out, s.extensions.Units...)
	}
	slices.SortStableFunc(out, func(a, b config.Unit) int { return strings.Compare(a.File, b.File) })
	return out
}

// untrusted lists the units that have no effect because they are not trusted.
func (s *Snapshot) untrusted() []config.Unit {
	return slices.DeleteFunc(s.units(), func(u config.Unit) bool { return u.Trusted })
}

// trusts reports whether the user trusts a unit.
func (in *inputs) trusts(u config.Unit) bool {
	return in.trustAll || in.trust.Trusts(u.Root, u.Key(), u.Sum)
}

// newPolicy returns the permission policy that the configuration defines, and adds mistakes in its
// rules to the problems.
func (r *reader) newPolicy(s *Snapshot) *permission.Policy {
	cfg, own, private := s.config, workspace.New(r.outputs.Dir(), r.jobs.Dir()), workspace.New(r.opts.StateDir)
	inWorkspace := func(real string) bool { // a home folder as the workspace does not include eca's keys and chats
		return s.workspace.ContainsResolved(real) && (!private.ContainsResolved(real) || slices.ContainsFunc(s.roots(), func(root string) bool { return private.ContainsResolved(workspace.Resolve(root)) }))
	}
	enforceable := r.bounds.Enforceable(cfg.Config, s.untrusted())
	enforceable.SearchPending = func() bool { return r.heldBack.Due(s.roots()) }
	policy, errs := permission.New(cfg.Config, permission.Options{
		Contains:  func(real string) bool { return inWorkspace(real) || own.ContainsResolved(real) },
		Memory:    r.memory,
		Sandbox:   enforceable,
		Children:  r.children,
		Getenv:    r.opts.Getenv,
		Bounds:    func(call tools.Call) *event.Sandbox { return r.bounds.Describe(cfg, call) },
		Protected: append(r.opts.ownFolders(r.ephemeralDir), r.opts.ownFiles()...),
	})
	slices.SortStableFunc(errs, func(a, b *permission.RuleError) int { return strings.Compare(a.Error(), b.Error()) })
	for _, err := range errs {
		cfg.Problems = append(cfg.Problems, cfg.Problem(append(bounds.RulePath(err.Rule), err.Path...), "%v", err))
	}
	return policy
}

// Tools returns the current tools.
func (d *Daemon) Tools() *tools.Registry { return d.toolsOf(d.current()) }

// chatSnapshot returns the current snapshot for the engine; it is empty before the first Configure.
func (d *Daemon) chatSnapshot() chat.Snapshot {
	s := d.current()
	if s.config == nil {
		return chat.Snapshot{}
	}
	return chat.Snapshot{
		Config: s.config.Config, Roots: s.roots(), Policy: s.policy, Hooks: s.hooks, System: d.systemSources(s), Models: engineModels{d.With(s.config, s.variants), d.spending},
		Tools: func() *tools.Registry { return d.toolsOf(s) },
	}
}
