// Package daemon assembles eca: one engine with its models, tools, contexts and
// store, from one configuration. The commands and the tests use it; nothing else
// does. Besides wiring it decides which model a name means and how its provider is
// reached (models.go, clients.go); it has no other behaviour.
package daemon

import (
	"encoding/json"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/fs"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/tools/search"
	"github.com/seed-dec29ce4/eca/tools/shell"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Options are what differs between a real start and a test.
type Options struct {
	Getenv     func(string) string // default: os.Getenv
	ConfigFile string              // --config-file
	StateDir   string              // default: $XDG_STATE_HOME/eca or ~/.local/state/eca
	CacheDir   string              // default: $XDG_CACHE_HOME/eca or ~/.cache/eca
	RecordDir  string              // --record; empty records nothing
	Executable string              // our own path, for children
	Supervisor string              // executable that supervises children (proc.Spec); empty: none
	Log        *slog.Logger        // default: slog.Default
	Now        func() time.Time    // default: time.Now
	NewID      func() string       // default: random UUIDs
}

// Daemon is an assembled eca. It implements the hosts of the faces.
type Daemon struct {
	opts   Options
	engine *chat.Engine
	store  *store.Store
	models *models
	memory *permission.Memory
	jobs   *shell.Jobs

	// Replaced as wholes by Configure.
	config    atomic.Pointer[config.Loaded]
	workspace atomic.Pointer[workspace.Workspace]
	registry  atomic.Pointer[func() *tools.Registry] // built when first asked for: not before initialize is answered
	policy    atomic.Pointer[permission.Policy]
}

// New assembles a daemon without reading any configuration: call Configure before
// anything else. Close must be called.
func New(o Options) *Daemon {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.StateDir == "" {
		o.StateDir = home(o.Getenv, "XDG_STATE_HOME", ".local/state")
	}
	if o.CacheDir == "" {
		o.CacheDir = home(o.Getenv, "XDG_CACHE_HOME", ".cache")
	}
	d := &Daemon{
		opts:   o,
		store:  store.New(o.StateDir),
		memory: permission.NewMemory(),
		jobs:   shell.NewJobs(filepath.Join(o.CacheDir, "jobs")),
	}
	d.models = newModels(o)
	d.engine = chat.New(chat.Deps{
		Store:    d.store,
		Models:   d.models,
		Contexts: contexts.Files{},
		Tools:    d.Tools,
		Policy:   func() tools.Policy { return d.policy.Load() },
		Config:   func() *config.Config { return d.config.Load().Config },
		Roots:    func() []string { return d.workspace.Load().Roots() },
		Now:      o.Now,
		NewID:    o.NewID,
		Log:      o.Log,
	})
	return d
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

// Configure loads the configuration for a client's options and workspace folders.
// It reads a few files and uses no network. Turns that run keep what they had.
func (d *Daemon) Configure(initOptions json.RawMessage, roots []string) {
	ws := workspace.New(roots...)
	cfg := config.Load(config.Inputs{
		InitOptions: initOptions,
		Getenv:      d.opts.Getenv,
		ConfigFile:  d.opts.ConfigFile,
		ConfigHome:  config.Home(d.opts.Getenv),
		Roots:       ws.Roots(),
	})
	outputs := filepath.Join(d.opts.CacheDir, "toolCallOutputs")
	own := workspace.New(outputs, filepath.Join(d.opts.CacheDir, "jobs"))
	inside := func(path string) bool { return ws.Contains(path) || own.Contains(path) }
	policy, errs := permission.New(cfg.Config, inside, d.memory)
	for _, err := range errs {
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: "toolCall.approval"}, Cause: err.Error()})
	}
	for _, p := range cfg.Problems {
		d.opts.Log.Warn("configuration problem", "at", p.Origin.String(), "cause", p.Cause)
	}
	d.config.Store(cfg)
	d.workspace.Store(ws)
	d.policy.Store(policy)
	registry := sync.OnceValue(func() *tools.Registry { return d.nativeTools(cfg.Config, outputs) })
	d.registry.Store(&registry)
	d.models.configure(cfg.Config)
}

func (d *Daemon) nativeTools(cfg *config.Config, outputs string) *tools.Registry {
	var list []tools.Tool
	list = append(list, fs.Tools(fs.Options{ReadMaxLines: cfg.ToolCall.ReadFile.MaxLines})...)
	list = append(list, search.Tools()...)
	list = append(list, shell.Tools(shell.Options{
		Path: cfg.ToolCall.ShellCommand.Path, Args: cfg.ToolCall.ShellCommand.Args,
		SummaryMax: cfg.ToolCall.ShellCommand.SummaryMaxLength,
		Executable: d.opts.Executable, Supervisor: d.opts.Supervisor, Jobs: d.jobs,
	})...)
	limits := tools.Limits{
		Lines: cfg.ToolCall.OutputTruncation.Lines, Bytes: cfg.ToolCall.OutputTruncation.SizeKb << 10, Dir: outputs,
	}
	for i, t := range list {
		list[i] = tools.Limit(t, limits)
	}
	return tools.NewRegistry(list...)
}

// Engine returns the engine.
func (d *Daemon) Engine() *chat.Engine { return d.engine }

// Config returns the current configuration.
func (d *Daemon) Config() *config.Loaded { return d.config.Load() }

// Tools returns the current tools.
func (d *Daemon) Tools() *tools.Registry { return (*d.registry.Load())() }

// Close ends everything: turns, background commands, connections, the store.
func (d *Daemon) Close() {
	d.engine.Close()
	d.jobs.Close()
	d.models.close()
	if err := d.store.Close(); err != nil {
		d.opts.Log.Warn("chat store could not be closed", "err", err)
	}
}

// demoNotice is what the user is told when answers come from the demo model.
const demoNotice = "No model provider is configured, so answers come from the built-in demo model " + demoModel +
	": a script, not a language model. Set OPENAI_API_KEY, or add a provider to the configuration."

// Notices are things the user should be told at start.
func (d *Daemon) Notices() []string {
	if d.models.onlyDemo() {
		return []string{demoNotice}
	}
	return nil
}

// demoModel is the id of the demo model.
const demoModel = demoProvider + "/offline"

const demoProvider = "demo"

// isLoopback says whether a URL leads to this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

var _ chat.Models = (*models)(nil)
