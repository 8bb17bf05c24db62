package daemon

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/extensions"
	"github.com/seed-dec29ce4/eca/workspace"
)

// reader reads what snapshots are made of. Daemon.mu guards its fields, and is held by who
// reads.
type reader struct {
	*toolbox
	models  func() *providers.Models
	dynamic *config.Commands // runs ${cmd:...} of the configuration
	loader  *extensions.Loader

	initOptions json.RawMessage
	folders     []string // of the workspace
}

func newReader(b *toolbox, models func() *providers.Models) *reader {
	r := &reader{toolbox: b, models: models, loader: extensions.NewLoader(b.opts.Now)}
	r.dynamic = config.NewCommands(b.configCommands().Run)
	return r
}

// readLocked reads the configuration, with what is wrong in it and in all that adds to it, and
// the files that it names.
func (r *reader) readLocked(in inputs) inputs {
	in.workspace = workspace.New(r.folders...)
	var unreadable error
	in.trust, unreadable = r.record.Read()
	cfg := r.load(in, r.dynamic)
	in.config = cfg
	if r.opts.Ephemeral {
		cfg.Chat.Title = false // it would be paid for, and never seen
	}
	kept := map[string]error{
		r.record.File.Path: unreadable, r.agreed.File.Path: r.agreed.Check(), r.memory.Path(): r.memory.Check(),
		filepath.Join(r.opts.StateDir, "journal"): checkJournalEnd(r.opts.StateDir),
	}
	for path, err := range kept {
		if err != nil {
			cfg.Problems = append(cfg.Problems, settings.Damaged(path, err))
		}
	}
	for _, p := range in.extensions.Wrong() {
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: p.Path, Line: p.Line}, Cause: p.Cause})
	}
	for _, p := range in.plugins.Wrong() {
		cfg.Problems = append(cfg.Problems, pluginProblem(cfg, p))
	}
	in.claude = r.readClaudeHooks(in)
	in.identity = settings.Certificates(cfg, r.opts.Getenv)
	if dir := filepath.Join(r.opts.CacheDir, "state"); cfg.Env == config.EnvTest && in.storage.dir != dir {
		// Suites that compare traffic keep themselves apart by the cache folder alone.
		in.storage = r.storageIn(dir)
	}
	in.entered = readCredentials(cfg, in.storage)
	return in
}

// load reads the configuration, and has commands run what it takes from programs.
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
		Gone:         r.absent.gone,
		Commands:     commands,
		Patience:     patience,
		ToolText:     r.toolText,
		Trusts:       in.trusts,
		Unasked:      r.opts.Unasked,
		TurnBudget:   r.opts.TurnBudget,
	})
}

// extendLocked takes over what changed in the files of plugins and extensions, and reads the
// configuration again if that is different with them. It reports whether that was done.
func (r *reader) extendLocked(in inputs) (_ inputs, changed bool) {
	before := in.plugins
	set, plugged := r.plugins.Load(wanted(in.config))
	in.plugins = set
	if plugged && (before != nil || len(set.Plugins)+len(set.Problems)+len(set.Missing) > 0) {
		in, changed = r.readLocked(in), true
	}
	known := in.extensions
	var extended bool
	in.extensions, extended = r.loader.Load(r.extensionInputs(in))
	if extended && (known != nil || !in.extensions.Empty()) {
		in, changed = r.readLocked(in), true
	}
	return in, changed
}

// extensionInputs says where extensions are.
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
		Gone:       r.absent.gone,
		Claude:     cfg.ClaudeFiles,
		ClaudeHome: r.claudeHome(),
		Plugins:    folders,
		Expand: func(text, dir, plugin string) (string, []string, error) {
			return cfg.Expand(context.Background(), text, config.Place{Dir: dir, Plugin: plugin}) // commands have a time limit
		},
	}
}

// readCredentials keeps credentials where the configuration wants them, takes over what others
// stored, and returns it; what is wrong with it is added to the problems.
func readCredentials(cfg *config.Loaded, s *storage) map[string]auth.Credential {
	settings.KeepLogins(cfg, s.creds, s.serverCreds)
	return s.entered()
}
