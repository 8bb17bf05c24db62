package daemon

import (
	"context"
	"path/filepath"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat/budget"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/bounds"
	"github.com/seed-dec29ce4/eca/daemon/changes"
	"github.com/seed-dec29ce4/eca/daemon/telemetry"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/extensions/plugins"
	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/internal/heldback"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/lsp"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/tools/shell"
	"github.com/seed-dec29ce4/eca/workspace"
)

// services holds what lives as long as the daemon, independently of the configuration, and gives
// access to the current snapshot.
type services struct {
	opts            Options
	children        *proc.Pool         // starts all children except those that outlive the daemon
	network         *netclient.Network // for all HTTP clients
	store           *store.Store
	journal         *journal.Journal
	indexer         *indexer
	exporter        *telemetry.Telemetry
	spending        *budget.Keeper
	memory          *permission.Memory
	jobs            *shell.Jobs
	bash            *shell.Bash     // runs commands that no user approved
	heldBack        *heldback.Store // protected files that commands created
	bounds          *bounds.Bounds
	lsp             *lsp.Servers
	outputs         *tools.Outputs // results of tools that are too long for the model
	finder          workspace.Finder
	maps            mapper
	trustedFolders  *consent.FolderStore // the workspace files that the user trusts
	approvedServers *consent.ServerStore // the MCP servers that the user agreed to
	absences        *absences            // of configuration files
	plugins         *plugins.Store
	changes         *changes.Bus

	ephemeralDir string // the folder of --ephemeral; empty without it

	snapshot atomic.Pointer[Snapshot]
	cleaner  cleaner
}

func newServices(o Options) *services {
	s := &services{
		opts:            o,
		children:        proc.NewPool(o.Supervisor, 1),
		network:         netclient.New(o.Getenv),
		store:           o.openStore(o.StateDir),
		memory:          permission.NewMemory(filepath.Join(o.StateDir, "permissions.json")),
		jobs:            shell.NewJobs(filepath.Join(o.CacheDir, "jobs"), o.Now),
		bash:            shell.NewBash(filepath.Join(o.CacheDir, "shell")),
		heldBack:        heldback.New(o.StateDir),
		outputs:         tools.NewOutputs(filepath.Join(o.CacheDir, "toolCallOutputs"), o.Now),
		trustedFolders:  consent.NewFolders(o.StateDir, o.Now),
		approvedServers: consent.NewServers(o.StateDir, o.Now),
		absences:        newAbsences(o.Now),
		changes:         changes.New(),

		ephemeralDir: makeEphemeralDir(o),
	}
	s.bounds = bounds.New(bounds.Options{
		Config: func() *config.Config { return s.Config().Config }, Children: s.children,
		Getenv: o.Getenv, Environ: o.Environ, IsCredential: func(text string) bool { return s.Presentable(text) != text },
		StateDir: o.StateDir, CacheDir: o.CacheDir, Readable: []string{s.outputs.Dir(), s.jobs.Dir()}, Log: o.Log,
		OwnFolders: o.ownFolders(s.ephemeralDir), OwnFiles: o.ownFiles(), EphemeralDir: s.ephemeralDir,
	})
	s.plugins = plugins.New(plugins.Options{
		Cache: filepath.Join(o.CacheDir, "plugins"), Children: s.children, Getenv: o.Getenv, Now: o.Now, NewID: uuid.NewString, Removed: s.absences.removed,
	})
	s.lsp = lsp.New(lsp.Options{
		Children: s.children, Getenv: o.Getenv, Now: o.Now, Version: o.Version, Log: o.Log,
		Failed: func() { s.changes.Publish(changes.Notices) },
	})
	s.maps = s.newMapper()
	s.snapshot.Store(&Snapshot{inputs: inputs{workspace: workspace.New(), storage: newStorage(o.StateDir, o.Keychain, o.Now)}})
	s.journal = s.newJournal()
	s.exporter = s.newTelemetry()
	s.indexer = newIndexer(s.store, o)
	s.spending = budget.New(budget.Options{
		Dir: o.StateDir, Now: o.Now, Log: o.Log,
		Config: func() config.Budget {
			if cfg := s.Config(); cfg != nil {
				return cfg.Budget
			}
			return config.Budget{}
		},
		Source: func(scope string, limit config.Amount) (flag, key string) {
			if cfg := s.Config(); cfg != nil {
				return cfg.BudgetSource(scope, limit)
			}
			return "", ""
		},
	})
	return s
}

// current returns the current snapshot.
func (s *services) current() *Snapshot { return s.snapshot.Load() }

// Config returns the current configuration.
func (s *services) Config() *config.Loaded { return s.current().config }

// questions returns the client that shows questions to the user, or nil if no client does.
func (s *services) questions() ask.Client { return s.current().client.questions }

// askUser lets the user choose; asked is false if no client shows questions.
func (s *services) askUser(ctx context.Context, chatID, question string, choices []string) (choice string, asked bool) {
	client := s.questions()
	if client == nil {
		return "", false
	}
	q := ask.Question{ChatID: chatID, Text: question}
	for _, label := range choices {
		q.Options = append(q.Options, ask.Option{Label: label})
	}
	answer, err := client.Ask(ctx, q)
	return answer.Text, err == nil
}

// Units lists the parts of the workspace's configuration that need trust, trusted or not. Those of
// extensions are included once Extensions has been called.
func (s *services) Units() []config.Unit { return s.current().units() }

// Untrusted lists the units that have no effect because they are not trusted.
func (s *services) Untrusted() []config.Unit { return s.current().untrusted() }

// Roots returns the workspace folders.
func (s *services) Roots() []string { return s.current().roots() }
