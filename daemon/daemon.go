// Package daemon assembles eca: one engine with its models, tools, contexts and store, from one
// configuration. Only commands and tests use it; it knows no protocol and no client.
//
// Everything derived from the configuration is in one immutable Snapshot, which is replaced
// atomically; a turn uses the same snapshot from its first step to its last. Changes that clients
// see are published on a bus (package changes), which Daemon.Watch reads. Each package below this
// one has one topic: providers and models, MCP servers, the limits of child processes, trust in
// workspaces, edits of configuration files, pending logins. This package wires them, creates the
// tools (toolbox), reads the configuration (reader), and checks all of it (checkup).
//
// Entry points: New, then Daemon.Configure.
package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/chat/undo"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/changes"
	"github.com/seed-dec29ce4/eca/daemon/edits"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/daemon/servers"
	"github.com/seed-dec29ce4/eca/daemon/trust"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/diagnostics"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Daemon is an assembled eca. It implements the host interfaces of the faces, mostly with embedded
// types. It has more than 40 methods because each of them is asked for by one command or face.
type Daemon struct {
	*services
	*toolbox
	*reader
	*providers.Models
	*providers.Logins
	*servers.Servers
	*trust.Workspaces
	*housekeeper
	backgroundJobs
	webAccess
	decisions

	edits    *edits.Editor
	engine   *chat.Engine
	inline   *inline.Engine
	undo     *undo.Files
	commands *command.Commands

	importNotice atomic.Pointer[string] // the notice about an import
	searchNotice atomic.Pointer[string] // the notice about finished sandbox searches

	board    *ask.Board // questions to the user
	watchers watchers   // callers of Watch
	remote   remoteRun

	mu      sync.Mutex       // guards the fields below and the reader; held to replace the snapshot, so that replacements are in order
	editors []*editor.Client // the clients' editors, in the order in which the clients joined
}

// New assembles a daemon without reading any configuration: call Configure before
// anything else. Close must be called.
func New(o Options) *Daemon {
	o = withDefaults(o)
	base := newServices(o)
	d := &Daemon{
		services: base, backgroundJobs: backgroundJobs{base}, webAccess: webAccess{base}, board: ask.NewBoard(o.NewID), remote: remoteRun{work: newBackground()},
	}
	d.toolbox = &toolbox{services: base, servers: func() *mcp.Manager { return d.MCP() }, reporter: diagnostics.New()}
	d.reader = newReader(d.toolbox, func() *providers.Models { return d.Models })
	d.decisions = decisions{d.toolbox}
	if d.ephemeralDir != "" {
		d.amend(func(s *Snapshot) { s.storage = d.ephemeral(s.storage) })
	}
	d.Models = providers.New(providers.Options{
		Current:       func() (*config.Loaded, *catalog.Variants) { s := d.current(); return s.config, s.variants },
		Credentials:   func() *auth.Store { return d.current().storage.creds },
		AwaitCommands: d.awaitCommands, Changed: func() { d.changes.Publish(changes.Models) },
		Network: d.network, Record: func(m llm.Model, id string) llm.Model { return d.exporter.Model(d.journal.Model(m, id), id) },
		Getenv: o.Getenv, CacheDir: o.CacheDir, CatalogURL: o.CatalogURL, RecordDir: o.RecordDir, Recordings: cassette.Folders(filepath.Join(o.StateDir, recordingsFile)), Version: o.Version,
		RetryTotal: o.RetryTotal, Log: o.Log, Now: o.Now, Sleep: o.Sleep, Random: o.Random,
	})
	d.Logins = providers.NewLogins(d.Models, d.reload, func() { d.changes.Publish(changes.Credentials) })
	d.Workspaces = trust.New(trust.Options{
		Record: d.trustedFolders, Units: d.Units, Extend: func() { d.Extensions() }, Reload: d.reload,
		Changed:   func() { d.changes.Publish(changes.Trust) },
		Questions: d.questions, Log: o.Log,
	})
	d.edits = edits.New(d.Config, d.reload, d.Workspaces)
	d.Servers = d.newServers()
	d.commands = d.newCommands()
	d.undo = undo.New(undo.Options{
		Artifacts:  func() *artifact.Store { return d.current().storage.artifacts },
		Dir:        func() string { return d.current().storage.undo },
		OwnFolders: []string{o.StateDir, o.CacheDir}, Now: o.Now, Covers: func(call tools.Call, plan tools.Plan) (bool, error) {
			return d.bounds.NeedsUndo(d.Config(), call, plan)
		},
	})
	d.engine = d.newEngine()
	d.housekeeper = &housekeeper{base, d.engine, d.undo, newBackground()}
	d.inline = d.newInline()
	return d
}

// Engine returns the engine.
func (d *Daemon) Engine() *chat.Engine { return d.engine }

// Inline returns the engine of rewrites and completions.
func (d *Daemon) Inline() *inline.Engine { return d.inline }

// Close stops everything (turns, background commands, connections) and closes the store.
func (d *Daemon) Close() {
	d.remote.work.close()
	d.daily.close()
	d.EndProviderLogins()
	d.EndServerLogins()
	d.dynamic.Close()
	d.plugins.Close()
	d.engine.Close()
	d.CloseMCPServers()
	d.current().storage.creds.Close()
	d.current().storage.serverCreds.Close()
	d.jobs.Close()
	d.lsp.Close()
	d.bounds.Close()
	d.finder.Close()
	d.exporter.Close()
	d.maps.index.Close()
	d.network.Close()
	d.journal.Close()
	d.indexer.close()
	d.spending.Close()
	d.children.Close()
	if err := d.store.Close(); err != nil {
		d.opts.Log.Warn("cannot close the chat store", "err", err)
	}
	if d.ephemeralDir != "" {
		if err := os.RemoveAll(d.ephemeralDir); err != nil {
			d.opts.Log.Error("cannot remove the folder of --ephemeral", "err", err)
		}
	}
}

// demoNotice is shown when answers come from the demo model.
const demoNotice = "No model provider is configured, so answers come from the built-in demo model " + providers.DemoModel +
	": a script, not a language model. Log in to a provider (`eca login anthropic`, or /login in a chat), set ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY or the key of another provider that `eca models` lists, or add a provider to the configuration."

// demoFallbackNotice is shown when the demo model replaces a provider that cannot be used.
const demoFallbackNotice = "Until that is fixed, answers come from the built-in demo model " + providers.DemoModel + ": a script, not a language model."

// TelemetryNotice returns why telemetry cannot be exported, or "". It is valid after Close, too.
func (d *Daemon) TelemetryNotice() string { return d.exporter.Notice() }

// Notices are messages for the user, each shown once.
func (d *Daemon) Notices() []string {
	var out []string
	unavailable := d.Unavailable()
	switch {
	case !d.OnlyDemo():
	case len(unavailable) > 0:
		unavailable = append(unavailable, demoFallbackNotice)
	case !d.AnyProviderSetUp(): // otherwise that provider has not been asked yet
		out = append(out, demoNotice)
	}
	if len(unavailable) > 0 {
		out = append(out, strings.Join(unavailable, "\n"))
	}
	for _, f := range d.KnownUnlistedModels() {
		if f.Severity == config.SeverityError {
			out = append(out, "Configuration: "+f.Place()+": "+f.Message)
		}
	}
	out = append(out, d.remote.notices()...)
	if n := d.importNotice.Load(); n != nil {
		out = append(out, *n)
	}
	if n := d.searchNotice.Load(); n != nil {
		out = append(out, *n)
	}
	if n := d.TelemetryNotice(); n != "" {
		out = append(out, n)
	}
	if n := d.TrustNotice(); n != "" {
		out = append(out, n)
	}
	out = append(out, d.lsp.Failures()...)
	return append(out, d.ChangedServers()...)
}

// newServers wires the MCP servers.
func (d *Daemon) newServers() *servers.Servers {
	o := d.opts
	return servers.New(servers.Options{
		Config: d.Config, Workspace: func() *workspace.Workspace { return d.current().workspace },
		Policy:      func() *permission.Policy { return d.current().policy },
		Questions:   d.questions,
		Credentials: func() *auth.Store { return d.current().storage.serverCreds },
		ForgetTools: func(server string) error { _, err := d.memory.ForgetServer(server); return err },
		Edits:       d.edits, ConfigFile: o.ConfigFile, Agreed: d.approvedServers,
		Environ: d.configCommands().Environ, Clean: d.cleanOutput, Presentable: d.Presentable, BeforeStart: d.cleaner.setLaunchCredentials,
		Sample: func(ctx context.Context, chatID, model string, r llm.Request) (mcp.Sampled, error) {
			a, err := d.engine.SideRequest(ctx, chatID, model, r)
			return mcp.Sampled(a), err
		},
		Changed: func() { d.changes.Publish(changes.Servers) },
		OpenURL: o.OpenURL, Network: d.network, Children: d.children, Getenv: o.Getenv,
		Version: o.Version, Log: o.Log, Now: o.Now,
	})
}

// AskTrust asks the user, in a chat, whether to trust the workspace's configuration, and whether to
// accept MCP servers that have changed. It asks once about each.
func (d *Daemon) AskTrust(ctx context.Context, chatID string) {
	if questions := d.questions(); questions != nil {
		d.AskUnits(ctx, chatID, questions)
		d.AskChanged(ctx, chatID, questions)
	}
}
