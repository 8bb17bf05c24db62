// Package daemon assembles eca: one engine with its models, tools, contexts and
// store, from one configuration. The commands and the tests use it; nothing else
// does. Besides wiring it decides which model a name means and how its provider is
// reached (models.go, clients.go), keeps the configuration up to date (configure.go),
// asks whether workspaces' files are trusted (trust.go), bounds what runs (sandbox.go),
// logs in and out (login.go, logins.go, oauth.go, copilot.go), edits the configuration of MCP servers (mcp.go) and
// has them run (servers.go), has chats of the reference server imported (import.go), and
// keeps the plugins (plugins.go).
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/chat/undo"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/extensions/plugins"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/pinned"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/internal/trust"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/mcp/login"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/agent"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/tools/fs"
	"github.com/seed-dec29ce4/eca/tools/permission"
	toolmap "github.com/seed-dec29ce4/eca/tools/repomap"
	"github.com/seed-dec29ce4/eca/tools/search"
	"github.com/seed-dec29ce4/eca/tools/shell"
	"github.com/seed-dec29ce4/eca/tools/task"
	"github.com/seed-dec29ce4/eca/tools/web"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Options are what differs between a real start and a test.
type Options struct {
	Getenv     func(string) string // default: os.Getenv
	Environ    func() []string     // default: os.Environ, or nothing if Getenv is set
	ConfigFile string              // --config-file
	StateDir   string              // default: $XDG_STATE_HOME/eca or ~/.local/state/eca
	CacheDir   string              // default: $XDG_CACHE_HOME/eca or ~/.cache/eca
	RecordDir  string              // --record; empty records nothing
	CatalogURL string              // where to fetch the public catalogue of models; empty: nowhere
	Executable string              // our own path, for children
	Version    string              // of eca, for /doctor and exported chats
	Command    []string            // how eca was started, for /doctor
	Keychain   auth.Keychain       // where secrets are kept, if it takes them; nil: in a file
	Supervisor string              // executable that supervises children (proc.NewPool); empty: none
	NoCommands bool                // ${cmd:...} of the configuration are not run; a mark stands for what they print
	Log        *slog.Logger        // default: slog.Default
	Now        func() time.Time    // default: time.Now
	NewID      func() string       // default: random UUIDs

	// RetryTotal bounds how long a request is waited for and repeated until it is answered, where the
	// configuration does not say how often; 0 is no bound.
	RetryTotal time.Duration

	// Unasked replaces toolCall.unasked of the user's configuration; empty: it counts.
	Unasked string

	// Ephemeral keeps chats, and the records of calls, in a folder that is removed by Close.
	Ephemeral bool

	// WrapStore replaces the store of chats by one that uses it; nil keeps it as it is.
	WrapStore func(chat.Store) chat.Store

	// OpenURL has the user's browser open a URL; nil: there is none.
	OpenURL func(ctx context.Context, url string) error

	// Sleep waits between questions whether a login is done, and until a file of the
	// configuration counts as removed; default: for real.
	Sleep  func(context.Context, time.Duration) error
	Random func() float64 // in [0,1), spreads the waits before retries; default: random
}

// Daemon is an assembled eca. It implements the hosts of the faces.
type Daemon struct {
	opts     Options
	engine   *chat.Engine
	inline   *inline.Engine
	store    *store.Store
	models   *models
	memory   *permission.Memory
	jobs     *shell.Jobs
	bash     *shell.Bash // runs what nobody approved by hand
	children *proc.Pool  // starts all children, but those that outlive us
	// isolation says which namespaces commands can have here; found out when first asked for.
	isolation func() sandbox.Isolation
	loopbacks loopbacks
	trimmed   sync.Map       // workspaces whose private caches were trimmed
	trims     sync.WaitGroup // of those
	// outputs are those of tools that are too long to be shown.
	outputs *tools.Outputs
	finder  workspace.Finder
	maps    mapper
	undo    *undo.Files
	calls   *journal.Journal
	logins  *logins

	servedLogins *logins       // those to MCP servers that wait for the user
	accounts     *login.Logins // those that there are
	launched     sync.Map      // *login.Account by the server's name, as of its last start

	mcp *mcp.Manager

	network *netclient.Network // of all that speaks HTTP

	commands *command.Commands
	dynamic  *config.Commands // runs ${cmd:...} of the configuration
	loader   *extensions.Loader
	record   *trust.Store  // which workspaces' files the user trusts
	agreed   *pinned.Store // what MCP servers were when the user agreed to them
	pins     pins
	absent   *absences // of files of the configuration
	plugins  *plugins.Store

	reconfigured chan struct{} // hears of Configure; for Watch
	loginDone    chan struct{} // hears of LoginDone; for Watch
	extended     chan struct{} // hears of another Set of extensions; for Watch
	served       chan struct{} // hears of MCP servers that changed; for Watch
	trusted      chan struct{} // hears of what the user trusts now; for Watch

	discarded string // the folder of what is not kept; empty: all is kept

	mu          sync.Mutex // guards what follows, and that configurations come in order
	initOptions json.RawMessage
	roots       []string
	entered     map[string]auth.Credential // as of the last load
	trust       trust.View                 // as of the last load
	asked       map[string]bool            // sums of units the user was asked about
	claude      []hooks.Definition         // as of the last load

	// Replaced as wholes, by loadLocked and Connect.
	artifacts   atomic.Pointer[artifact.Store]
	undoDir     atomic.Pointer[string]
	creds       atomic.Pointer[auth.Store]
	servedCreds atomic.Pointer[auth.Store] // of MCP servers
	identity    atomic.Pointer[netclient.Identity]
	imported    atomic.Pointer[string]         // what the user is told of an import
	set         atomic.Pointer[extensions.Set] // nil until they are read
	plugged     atomic.Pointer[plugins.Set]    // nil until they are read
	scrubbers   atomic.Pointer[scrubbers]
	config      atomic.Pointer[config.Loaded]
	workspace   atomic.Pointer[workspace.Workspace]
	client      atomic.Pointer[client]
	registry    atomic.Pointer[func() *tools.Registry] // of our tools; built when first asked for: not before initialize is answered
	allTools    atomic.Pointer[allTools]
	guard       atomic.Pointer[func(tools.Tool) (tools.Tool, bool)] // see Guard
	policy      atomic.Pointer[permission.Policy]
	hooks       atomic.Pointer[hooks.Set]
}

// New assembles a daemon without reading any configuration: call Configure before
// anything else. Close must be called.
func New(o Options) *Daemon {
	o = withDefaults(o)
	d := &Daemon{
		opts:     o,
		children: proc.NewPool(o.Supervisor, 1),
		store:    store.New(o.StateDir),
		memory:   permission.NewMemory(filepath.Join(o.StateDir, "permissions.json")),
		jobs:     shell.NewJobs(filepath.Join(o.CacheDir, "jobs"), o.Now),
		bash:     shell.NewBash(filepath.Join(o.CacheDir, "shell")),
		outputs:  tools.NewOutputs(filepath.Join(o.CacheDir, "toolCallOutputs"), o.Now),
		logins:   newLogins(), servedLogins: newLogins(),

		network:      netclient.New(o.Getenv),
		loader:       extensions.NewLoader(o.Now),
		reconfigured: make(chan struct{}, 1),
		loginDone:    make(chan struct{}, 1),
		extended:     make(chan struct{}, 1),
		served:       make(chan struct{}, 1),
		trusted:      make(chan struct{}, 1),
		record:       trust.New(o.StateDir, o.Now),
		agreed:       pinned.New(o.StateDir, o.Now),
		pins:         pins{held: map[string]heldLaunch{}, renewing: map[string]int{}},
		asked:        map[string]bool{},
		absent:       newAbsences(o.Now),
	}
	d.isolation = sync.OnceValue(d.children.Isolation)
	d.plugins = plugins.New(plugins.Options{
		Cache: filepath.Join(o.CacheDir, "plugins"), Children: d.children, Getenv: o.Getenv, Now: o.Now, NewID: uuid.NewString, Gone: d.absent.gone,
	})
	d.maps = d.newMapper()
	d.dynamic = config.NewCommands(d.runCommand)
	d.client.Store(&client{})
	d.calls = d.newJournal()
	d.keepStateIn(o.StateDir)
	if o.Ephemeral {
		d.keepNothing()
	}
	d.models = newModels(o, d.creds.Load, d.network)
	d.models.calls = d.calls
	d.models.settle = func() { d.settle(context.Background()) } // each command has its time limit
	d.accounts = d.newAccounts()
	d.mcp = d.newServers()
	d.commands = d.newCommands()
	d.undo = undo.New(undo.Options{
		Kept: d.artifacts.Load, Dir: func() string { return *d.undoDir.Load() },
		Own: []string{o.StateDir, o.CacheDir}, Now: o.Now, Covers: d.needsUndo,
	})
	d.engine = d.newEngine()
	d.inline = d.newInline()
	return d
}

// withDefaults fills in what is left to us.
func withDefaults(o Options) Options {
	if o.Environ == nil {
		o.Environ = environ(o)
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.WrapStore == nil {
		o.WrapStore = func(s chat.Store) chat.Store { return s }
	}
	if o.OpenURL == nil {
		o.OpenURL = func(context.Context, string) error { return errors.New("there is no browser") }
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Sleep == nil {
		o.Sleep = llm.Sleep
	}
	if o.StateDir == "" {
		o.StateDir = StateDir(o.Getenv)
	}
	if o.CacheDir == "" {
		o.CacheDir = CacheDir(o.Getenv)
	}
	return o
}

// StateDir returns where chats are kept.
func StateDir(getenv func(string) string) string {
	return home(getenv, "XDG_STATE_HOME", ".local/state")
}

// CacheDir returns where is kept what can be made again.
func CacheDir(getenv func(string) string) string {
	return home(getenv, "XDG_CACHE_HOME", ".cache")
}

// home returns eca's folder below an XDG base directory.
func home(getenv func(string) string, xdg, fallback string) string {
	if x := getenv(xdg); x != "" {
		return filepath.Join(x, "eca")
	}
	if h, err := os.UserHomeDir(); err == nil {
		return filepath.Join(h, filepath.FromSlash(fallback), "eca")
	}
	return filepath.Join(os.TempDir(), "eca")
}

// keepStateIn says where what must survive is kept. It has no effect on what is in use.
func (d *Daemon) keepStateIn(dir string) {
	d.store.Move(dir)
	d.calls.Move(dir)
	d.creds.Store(auth.New(dir, d.opts.Keychain))
	d.servedCreds.Store(auth.New(filepath.Join(dir, "mcp"), d.opts.Keychain))
	d.artifacts.Store(artifact.New(filepath.Join(dir, "artifacts"), artifact.Options{Now: d.opts.Now}))
	d.undoDir.Store(new(filepath.Join(dir, "undo")))
}

// keepNothing has what chats leave behind go to a folder that Close removes.
func (d *Daemon) keepNothing() {
	dir, err := os.MkdirTemp("", "eca-ephemeral-")
	if err != nil {
		d.opts.Log.Error("no folder for what is not kept", "err", err)
		return
	}
	d.discarded = dir
	d.store.Move(dir)
	d.calls.Move(dir)
	d.artifacts.Store(artifact.New(filepath.Join(dir, "artifacts"), artifact.Options{Now: d.opts.Now}))
	d.undoDir.Store(new(filepath.Join(dir, "undo")))
}

// client is what the tools may ask of the user's client.
type client struct {
	editor    editor.Client
	questions ask.Client
}

// Connect says what the client can be asked, now that it is known; the next Configure
// builds the tools for it. Without it there are no tools that need a client.
func (d *Daemon) Connect(e editor.Client, questions ask.Client) {
	d.client.Store(&client{e, questions})
}

// builtIn returns the tools that eca has itself.
func (d *Daemon) builtIn(cfg *config.Config, set *extensions.Set, asked client) []tools.Tool {
	var list []tools.Tool
	for _, t := range fs.Tools(fs.Options{ReadMaxLines: cfg.ToolCall.ReadFile.MaxLines}) {
		list = append(list, tools.WithBuffers(t, asked.editor.Files))
	}
	list = append(list, search.Tools()...)
	list = append(list, toolmap.Tools(d.maps)...)
	commands := d.shellOptions(cfg)
	commands.Ask = askAboutCommand(asked.questions)
	list = append(list, shell.Tools(commands)...)
	list = append(list, web.Tools(d.pages(cfg))...)
	list = append(list, editor.Tools(editor.Options{
		Client: asked.editor, Navigation: cfg.ToolCall.EditorNav.Enabled,
		Timeout: time.Duration(cfg.LSPTimeoutSeconds * float64(time.Second)),
	})...)
	list = append(list, ask.Tools(asked.questions)...)
	list = append(list, task.Tools()...)
	list = append(list, agent.Tools(subagentOptions(cfg))...)
	return d.guided(list, cfg, set)
}

func (d *Daemon) nativeTools(cfg *config.Config, set *extensions.Set, asked client) *tools.Registry {
	list := d.builtIn(cfg, set, asked)
	custom, _ := d.customTools(cfg, list) // what is wrong with them was said when they were loaded
	list = append(list, custom...)
	return tools.NewRegistry(d.bounded(list, cfg)...)
}

// bounded has what tools return cleaned of secrets, cut to what the configuration says, and
// recorded like that.
func (d *Daemon) bounded(list []tools.Tool, cfg *config.Config) []tools.Tool {
	limits := tools.Limits{
		Lines: cfg.ToolCall.OutputTruncation.Lines, Bytes: cfg.ToolCall.OutputTruncation.SizeKb << 10, Whole: d.outputs,
	}
	for i, t := range list {
		list[i] = d.calls.Tool(tools.Limit(tools.Redact(tools.WithNews(t, d.jobs.News), d.cleanOutput), limits))
	}
	return list
}

// shellOptions says how commands are run.
func (d *Daemon) shellOptions(cfg *config.Config) shell.Options {
	return shell.Options{
		Path: cfg.ToolCall.ShellCommand.Path, Args: cfg.ToolCall.ShellCommand.Args,
		SummaryMax: cfg.ToolCall.ShellCommand.SummaryMaxLength,
		Executable: d.opts.Executable, Children: d.children, Jobs: d.jobs, Getenv: d.opts.Getenv, Bash: d.bash,
		Network: d.joinNetwork, Memory: d.memory,
		HeldBack: filepath.Join(d.opts.StateDir, "held-back"),
		Sandbox:  func(call tools.Call) sandbox.Policy { return d.callBounds(d.Config(), call) },
		Environ:  func(call tools.Call) []string { return d.callEnvironment(d.Config(), call) },
	}
}

// Engine returns the engine.
func (d *Daemon) Engine() *chat.Engine { return d.engine }

// Inline returns the engine of rewrites and completions.
func (d *Daemon) Inline() *inline.Engine { return d.inline }

// Config returns the current configuration.
func (d *Daemon) Config() *config.Loaded { return d.config.Load() }

// Close ends everything: turns, background commands, connections, the store.
func (d *Daemon) Close() {
	d.logins.close()
	d.servedLogins.close()
	d.dynamic.Close()
	d.plugins.Close()
	d.engine.Close()
	d.mcp.Close()
	d.creds.Load().Close()
	d.servedCreds.Load().Close()
	d.jobs.Close()
	d.loopbacks.close()
	d.trims.Wait()
	d.finder.Close()
	d.maps.index.Close()
	d.network.Close()
	d.calls.Close()
	d.children.Close()
	if err := d.store.Close(); err != nil {
		d.opts.Log.Warn("chat store could not be closed", "err", err)
	}
	if d.discarded != "" {
		if err := os.RemoveAll(d.discarded); err != nil {
			d.opts.Log.Error("what was not to be kept could not be removed", "err", err)
		}
	}
}

// demoNotice is what the user is told when answers come from the demo model.
const demoNotice = "No model provider is configured, so answers come from the built-in demo model " + demoModel +
	": a script, not a language model. Log in to a provider (`eca login anthropic`, or /login in a chat), set ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY or the key of another provider that `eca models` lists, or add a provider to the configuration."

// Notices are things the user should be told, once each.
func (d *Daemon) Notices() []string {
	var out []string
	if d.models.onlyDemo() {
		out = append(out, demoNotice)
	}
	if n := d.imported.Load(); n != nil {
		out = append(out, *n)
	}
	if n := d.trustNotice(); n != "" {
		out = append(out, n)
	}
	return append(out, d.changedNotices()...)
}

// demoModel is the id of the demo model.
const demoModel = demoProvider + "/offline"

const demoProvider = "demo"

var _ chat.Models = (*models)(nil)
