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

// Snapshot is what the daemon works with at one time: the configuration and all that follows
// from it. It never changes; another one takes its place as a whole. Code that needs
// more than one value of it takes the snapshot once. A turn has one from its first step to its last.
type Snapshot struct {
	inputs
	policy   *permission.Policy
	hooks    *hooks.Set
	variants *catalog.Variants
	exported otlp.Config
	native   func() *tools.Registry   // our tools; built when first asked for: not before initialize is answered
	tools    *atomic.Pointer[toolset] // the last result of Daemon.toolsOf
}

// inputs are what a snapshot is made of.
type inputs struct {
	config     *config.Loaded // nil before the first Configure
	workspace  *workspace.Workspace
	extensions *extensions.Set // nil until they are read
	plugins    *plugins.Set    // nil until they are read
	client     client
	guard      guard // nil: none
	trust      consent.Folders
	trustAll   bool               // everything is trusted, see Daemon.UntrustedMistakes
	claude     []hooks.Definition // of Claude Code's files, if they are trusted
	identity   *netclient.Identity
	storage    *storage
	entered    map[string]auth.Credential // when it was made
}

// client is what the tools may ask of the user's client.
type client struct {
	editor        editor.Client
	questions     ask.Client // nil: it takes none
	aboutCommands ask.Client // likewise, for questions about what the sandbox stopped or moved away
}

// guard decorates a tool, or leaves it out; see Daemon.Guard.
type guard func(tools.Tool) (t tools.Tool, offered bool)

// toolset are our tools and those of the MCP servers at one time.
type toolset struct {
	version uint64 // of those of the MCP servers
	all     *tools.Registry
}

// newSnapshot makes a snapshot. It depends on the inputs and on the services, which stay the
// same, reads no files and changes nothing, but that it adds to the problems of the configuration,
// which is not shared yet.
func (r *reader) newSnapshot(in inputs) *Snapshot {
	cfg := in.config
	s := &Snapshot{inputs: in, tools: new(atomic.Pointer[toolset])}
	s.policy = r.newPolicy(s)
	s.hooks = r.newHooks(s)
	s.variants = settings.Variants(cfg)
	cfg.Problems = append(cfg.Problems, bounds.Problems(cfg)...)
	cfg.Problems = append(cfg.Problems, providers.BadRetryRules(cfg)...)
	cfg.Problems = append(cfg.Problems, r.models().Problems(cfg, s.variants, in.entered)...)
	cfg.Problems = append(cfg.Problems, badHosts(cfg)...)
	cfg.Problems = append(cfg.Problems, r.badLanguageServers(s)...)
	cfg.Problems = append(cfg.Problems, r.readTelemetry(s)...)
	cfg.Problems = append(cfg.Problems, r.badCustomTools(cfg)...)
	cfg.Problems = append(cfg.Problems, r.badToolNames(cfg)...)
	cfg.LeaveOutAgents()
	s.native = sync.OnceValue(func() *tools.Registry { return r.nativeTools(s) })
	return s
}

// amend replaces the snapshot by one that differs in inputs from which nothing else of it
// follows.
func (d *Daemon) amend(change func(*Snapshot)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.amendLocked(change)
}

func (d *Daemon) amendLocked(change func(*Snapshot)) {
	next := *d.current()
	next.tools = new(atomic.Pointer[toolset])
	change(&next)
	d.snapshot.Store(&next)
}

// Join adds a client, with what it can be asked. Questions go to all clients that show them,
// requests to the editor to the first that can answer. Without such a client there are no tools
// that need one; tools that come or go do so between turns.
func (d *Daemon) Join(e editor.Client, questions ask.Client) (leave func()) {
	unask := func() {}
	if questions != nil {
		unask = d.board.Join(questions)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.editors = append(d.editors, &e)
	d.clientsChangedLocked()
	return func() {
		unask()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.editors = slices.DeleteFunc(d.editors, func(other *editor.Client) bool { return other == &e })
		d.clientsChangedLocked()
	}
}

// clientsChangedLocked has the next turns use the clients that there are now.
func (d *Daemon) clientsChangedLocked() {
	var c client
	for _, e := range d.editors {
		c.editor = c.editor.Or(*e)
	}
	if !d.board.Empty() {
		c.questions, c.aboutCommands = d.board, d.board
	}
	if d.opts.OnlyCommandQuestions {
		c.questions = nil
	}
	d.amendLocked(func(s *Snapshot) {
		s.client = c
		s.native = sync.OnceValue(func() *tools.Registry { return d.nativeTools(s) })
	})
}

// Guard has all tools pass through a function before models get them, from now on: it may
// decorate them, or leave them out. A face calls it again when it decides otherwise.
func (d *Daemon) Guard(g func(tools.Tool) (t tools.Tool, offered bool)) {
	d.amend(func(s *Snapshot) { s.guard = g })
}

// roots are the workspace folders.
func (s *Snapshot) roots() []string { return s.workspace.Roots() }

// units lists what needs trust in the workspace folders, trusted or not. Without extensions
// it is about the configuration alone.
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

// untrusted lists what has no effect because it is not trusted.
func (s *Snapshot) untrusted() []config.Unit {
	return slices.DeleteFunc(s.units(), func(u config.Unit) bool { return u.Trusted })
}

// trusts says whether the user trusts a unit.
func (in *inputs) trusts(u config.Unit) bool {
	return in.trustAll || in.trust.Trusts(u.Root, u.Key(), u.Sum)
}

// newPolicy decides about calls as the configuration says; what is wrong with that is added
// to its problems.
func (r *reader) newPolicy(s *Snapshot) *permission.Policy {
	cfg, own := s.config, workspace.New(r.outputs.Dir(), r.jobs.Dir())
	held := r.bounds.Promises(cfg.Config, s.untrusted())
	held.Unsearched = func() bool { return r.heldBack.Due(s.roots()) }
	policy, errs := permission.New(cfg.Config, permission.Options{
		Contains:  func(real string) bool { return s.workspace.ContainsResolved(real) || own.ContainsResolved(real) },
		Memory:    r.memory,
		Sandbox:   held,
		Children:  r.children,
		Getenv:    r.opts.Getenv,
		Bounds:    func(call tools.Call) *event.Sandbox { return r.bounds.Shown(cfg, call) },
		Protected: append(r.opts.ownFolders(r.discarded), r.opts.ownFiles()...),
	})
	slices.SortFunc(errs, func(a, b *permission.RuleError) int { return strings.Compare(a.Error(), b.Error()) })
	for _, err := range errs {
		cfg.Problems = append(cfg.Problems, cfg.Problem(append(bounds.RulePath(err.Rule), err.Path...), "%v", err))
	}
	return policy
}

// Tools returns the current tools.
func (d *Daemon) Tools() *tools.Registry { return d.toolsOf(d.current()) }

// chatSnapshot is the current snapshot for the engine; before the first Configure there is
// nothing in it.
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
