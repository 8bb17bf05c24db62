package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/workspace"
)

// reader reads the inputs of snapshots. Daemon.mu guards its fields and is held during each read.
type reader struct {
	*toolbox
	models  func() *providers.Models
	dynamic *config.Commands // runs ${cmd:...} of the configuration
	loader  *extensions.Loader

	initOptions json.RawMessage
	folders     []string             // workspace folders
	stamps      map[string]fileStamp // states of the configuration's files when they were read last
}

func newReader(b *toolbox, models func() *providers.Models) *reader {
	r := &reader{toolbox: b, models: models, loader: extensions.NewLoader(b.opts.Now)}
	r.dynamic = config.NewCommands(b.configCommands().Run, cmp.Or(max(b.opts.CommandTime, 0), config.CommandTime))
	return r
}

// readLocked reads the configuration and the files that it names. Mistakes in the configuration, in
// extensions and in plugins are added to its problems.
func (r *reader) readLocked(in inputs) inputs {
	in.workspace = workspace.New(r.folders...)
	var trustErr error
	in.trust, trustErr = r.trustedFolders.Read()
	cfg := r.load(in, r.dynamic)
	in.config = cfg
	if r.opts.Ephemeral {
		cfg.Chat.Title = false // a title would cost money and never be shown
	}
	stateErrors := map[string]error{ // by path
		r.trustedFolders.File.Path: trustErr, r.approvedServers.File.Path: r.approvedServers.Check(), r.memory.Path(): r.memory.Check(),
		filepath.Join(r.opts.StateDir, "journal"): checkJournalEnd(r.opts.StateDir),
	}
	for path, err := range stateErrors {
		if err != nil {
			cfg.Problems = append(cfg.Problems, settings.DamagedFile(path, err))
		}
	}
	cfg.Problems = append(cfg.Problems, in.extensions.AllProblems()...)
	cfg.Problems = append(cfg.Problems, in.extensions.RuleProblems(slices.Sorted(maps.Keys(cfg.Agents)))...)
	for _, p := range in.plugins.AllProblems() {
		cfg.Problems = append(cfg.Problems, pluginProblem(cfg, p))
	}
	in.claudeHooks = r.readClaudeHooks(in)
	in.identity = settings.Certificates(cfg, r.opts.Getenv)
	if dir := filepath.Join(r.opts.CacheDir, "state"); cfg.Conformance().Offline && in.storage.dir != dir {
		in.storage = r.storageIn(dir)
	}
	in.logins = readCredentials(cfg, in.storage)
	r.stamps = r.fileStamps(cfg, in.workspace.Roots())
	return in
}

// load reads the configuration. commands runs its ${cmd:...}.
func (r *reader) load(in inputs, commands *config.Commands) *config.Loaded {
	return config.Load(config.Inputs{
		InitOptions: r.initOptions,
		Getenv:      r.opts.Getenv,
		ConfigFile:  r.opts.ConfigFile,
		ConfigHome:  config.Home(r.opts.Getenv),
		Roots:       in.workspace.Roots(),
		Fragments:   in.extensions.Fragments(),

		PluginLayers: in.plugins.Configuration(),
		Previous:     in.config,
		Removed:      r.absences.removed,
		Commands:     commands,
		CommandWait:  maxCommandWait,
		ToolText:     r.toolText,
		Trusts:       in.trusts,
		Unasked:      r.opts.Unasked,
		TurnBudget:   r.opts.TurnBudget,
	})
}

// extendLocked reads changed files of plugins and extensions. If the changes affect the
// configuration, it reads the configuration again and reports true.
func (r *reader) extendLocked(in inputs) (_ inputs, changed bool) {
	old := in.plugins
	set, pluginsChanged := r.plugins.Load(pluginInputs(in.config))
	in.plugins = set
	if pluginsChanged && (old != nil || len(set.Plugins)+len(set.Problems)+len(set.Missing) > 0) {
		in, changed = r.readLocked(in), true
	}
	oldExtensions := in.extensions
	var extensionsChanged bool
	in.extensions, extensionsChanged = r.loader.Load(r.extensionInputs(in))
	if extensionsChanged && (oldExtensions != nil || !in.extensions.Empty()) {
		in, changed = r.readLocked(in), true
	}
	return in, changed
}

// extensionInputs returns where to look for extensions.
func (r *reader) extensionInputs(in inputs) extensions.Inputs {
	cfg := in.config
	paths := func(entries []config.PathEntry) (out []string) {
		for _, e := range entries {
			out = append(out, e.Path)
		}
		return out
	}
	var folders []extensions.Plugin
	for _, p := range in.plugins.Installed() {
		folders = append(folders, extensions.Plugin{Name: p.Name, Dir: p.Dir})
	}
	return extensions.Inputs{
		ConfigHome: config.Home(r.opts.Getenv),
		Roots:      in.workspace.Roots(),
		Rules:      paths(cfg.Rules),
		Commands:   paths(cfg.Commands),
		Skills:     paths(cfg.Skills),
		Pure:       cfg.PureConfig,
		Trusts:     in.trusts,
		Removed:    r.absences.removed,
		Claude:     cfg.ClaudeFiles,
		ClaudeHome: r.claudeHome(),
		Plugins:    folders,
		Expand: func(text, dir, plugin string) (string, []string, error) {
			return cfg.Expand(context.Background(), text, config.Place{Dir: dir, Plugin: plugin}) // commands have a time limit
		},
	}
}

// readCredentials returns the stored credentials, in the store that the configuration selects.
// Mistakes in it are added to the problems.
func readCredentials(cfg *config.Loaded, s *storage) map[string]auth.Credential {
	settings.UseLoginStore(cfg, s.creds, s.serverCreds)
	return s.credentials()
}
